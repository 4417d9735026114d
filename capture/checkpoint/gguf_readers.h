// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "capture/checkpoint/gguf_config.h"
#include "capture/checkpoint/gguf_keys.h"

namespace sinkscope {

// What the keys of one kind of GGUF file say beyond sizes, heads, positions and windows, which are
// in model.spec already; gguf_families.cpp names the families of each.
void read_mixture(const GgufKeys& keys, const GgufFile& file, GgufModel& model);
void read_qwen2(const GgufKeys& keys, const GgufFile& file, GgufModel& model);
void read_qwen3(const GgufKeys& keys, const GgufFile& file, GgufModel& model);
void read_qwen3_moe(const GgufKeys& keys, const GgufFile& file, GgufModel& model);
void read_gpt(const GgufKeys& keys, const GgufFile& file, GgufModel& model);
void read_gemma(const GgufKeys& keys, const GgufFile& file, GgufModel& model);
void read_olmo2(const GgufKeys& keys, const GgufFile& file, GgufModel& model);
void read_phi3(const GgufKeys& keys, const GgufFile& file, GgufModel& model);
void read_granite(const GgufKeys& keys, const GgufFile& file, GgufModel& model);
void read_gpt_oss(const GgufKeys& keys, const GgufFile& file, GgufModel& model);
void read_qwen3_next(const GgufKeys& keys, const GgufFile& file, GgufModel& model);
void read_bert(const GgufKeys& keys, const GgufFile& file, GgufModel& model);
void read_smollm3(const GgufKeys& keys, const GgufFile& file, GgufModel& model);
void read_mistral3(const GgufKeys& keys, const GgufFile& file, GgufModel& model);
void read_deepseek2(const GgufKeys& keys, const GgufFile& file, GgufModel& model);

}  // namespace sinkscope
