// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>

#include "capture/checkpoint/family.h"

// One function a file of this folder; family.cpp lists them.
namespace sinkscope {

std::span<const Family> llama_families();
std::span<const Family> mixture_families();
std::span<const Family> gpt_families();
std::span<const Family> gemma_families();
std::span<const Family> olmo_families();
std::span<const Family> phi_families();
std::span<const Family> granite_families();
std::span<const Family> gpt_oss_families();
std::span<const Family> deepseek_families();
std::span<const Family> deepseek_v4_families();
std::span<const Family> qwen_next_families();
std::span<const Family> sink_families();
std::span<const Family> bert_families();
std::span<const Family> inkling_families();

}  // namespace sinkscope
