// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/checkpoint/model_files.h"

namespace sinkscope::test {

// Which of the forms that converters have written over time.
enum class GgufForm { current, old };

// A tensor of a GGUF file that holds several roles, or one in another form.
struct ConvertedTensor {
  std::string name;  // after "blk.N."
  std::vector<std::int64_t> shape;
  std::vector<float> values;
  std::vector<Role> roles;
};

// The values of a role as converters write them: gains of norms 1 + w with the 1 added, but for
// that of a delta-net.
std::vector<float> converted_values(const ModelFiles& model, Role role, int layer);

// What converters of `arch` make of a block's tensors beyond renaming: fused q, k, v (GPT-2,
// GPT-NeoX, Phi-3), queries with gates and the parts of a delta-net (Qwen3-Next), keys and values
// out of a latent (DeepSeek). old: the delta-net's projection in one piece (ssm_in, ssm_dt), keys
// and values of a latent in one matrix.
std::vector<ConvertedTensor> converted_tensors(const ModelFiles& model, const std::string& arch,
                                               int layer, GgufForm form);

}  // namespace sinkscope::test
