// SPDX-License-Identifier: GPL-3.0-or-later
// One model as a Hugging Face folder and as a GGUF file, which stores norms and rows otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capture/checkpoint/model_files.h"
#include "capture/checkpoint/model_norms.h"
#include "core/snapshot/compare_snapshot.h"
#include "tests/checkpoint/gguf_test_files.h"
#include "tests/support/gguf_writer.h"

namespace sinkscope {
namespace {

using namespace test;  // NOLINT: the helpers of the tests
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string as_gguf(const ModelFiles& folder) {
  return write_gguf(folder, scratch_folder() + "/model.gguf");
}

// Gemma's folder stores w and its GGUF file w + 1: both show 1 + w, q, k and the final norm
// included, and each the values that it stores.
TEST(FieldCases, FC15_FolderAndGgufShowTheSameEffectiveGains) {
  for (const char* name : {"gemma2", "gemma3"}) {
    SINKSCOPE_REQUIRE_SHARED(path, std::string("oracles/") + name);
    const auto folder = open_model(path);
    const ModelNorms stored = read_norms(*folder),
                     converted = read_norms(*open_model(as_gguf(*folder)));
    ASSERT_EQ(stored.roles.size(), converted.roles.size()) << name;
    EXPECT_THAT(converted.unread, IsEmpty());
    std::vector<std::string> roles;
    for (std::size_t r = 0; r < stored.roles.size(); ++r) {
      const NormFacts &w = stored.roles[r].facts, &one_more = converted.roles[r].facts;
      roles.push_back(w.role);
      ASSERT_EQ(w.role, one_more.role);
      ASSERT_EQ(w.layers, one_more.layers);
      ASSERT_EQ(w.gain.size(), one_more.gain.size());
      ASSERT_FALSE(w.gain.empty());
      for (std::size_t i = 0; i < w.gain.size(); ++i) {
        EXPECT_EQ(w.gain[i], one_more.gain[i]) << name << " " << w.role;
        EXPECT_EQ(one_more.gain_raw[i], w.gain_raw[i] + 1.0F) << name << " " << w.role;
      }
    }
    EXPECT_THAT(roles, ::testing::IsSupersetOf({"ln1", "ln1_post", "ln2", "ln2_post", "ln_final"}));
    if (std::string(name) == "gemma3") {
      EXPECT_THAT(roles, ::testing::IsSupersetOf({"q_norm", "k_norm"}));
    }
  }
}

// "My GGUF norms are corrupt": from two real files. The stored values all differ by one, which is
// what raised the alarm; what is compared are the effective gains.
TEST(FieldCases, FC16_TwoFilesOfOneModelHaveEqualNorms) {
  SINKSCOPE_REQUIRE_SHARED(path, "oracles/gemma3");
  const auto folder = open_model(path);
  const auto gguf = open_model(as_gguf(*folder));
  const auto side_of = [](const std::string& title, const ModelFiles& model, bool effective) {
    const NormFacts norm = read_norms(model).roles.front().facts;
    CompareSide side;
    side.title = title;
    side.kind = MapKind::norms;
    side.source = effective ? "effective gain" : "stored gain";
    side.rows = norm.layers;
    for (int d = 0; d < norm.width; ++d) side.cols.push_back(d);
    side.map = Grid(static_cast<int>(norm.layers.size()), norm.width,
                    effective ? norm.gain : norm.gain_raw);
    return side;
  };
  const auto notes = [&](bool effective) {
    return compare({side_of("folder", *folder, effective), side_of("gguf", *gguf, effective)})
        .notes;
  };
  EXPECT_THAT(notes(true), ElementsAre(HasSubstr("max |gguf − folder| = 0 over")));
  EXPECT_THAT(notes(false), ElementsAre(HasSubstr("max |gguf − folder| = 1 over")));
}

// Only llama and granite files are permuted: those of Gemma, Qwen and NeoX hold the folder's rows.
TEST(FieldCases, FC14_GemmaAndNeoxRowsAreNotPermutedInGguf) {
  for (const char* name : {"gemma2", "gemma3", "qwen3", "gpt_neox"}) {
    SINKSCOPE_REQUIRE_SHARED(path, std::string("oracles/") + name);
    const auto folder = open_model(path), gguf = open_model(as_gguf(*folder));
    const bool is_stacked = std::string(name) == "gpt_neox";
    for (int layer = 0; layer < folder->spec().n_layers; ++layer)
      for (const Role role : {Role::q, Role::k}) {
        const std::vector<float> expected = folder->read_vector(role, layer);
        EXPECT_EQ(gguf->read_vector(role, layer), expected) << name << " " << to_string(role);
        // The stored rows themselves, past what undoes a permutation.
        const Checkpoint& raw = gguf->checkpoint();
        const int tensor = raw.find("blk." + std::to_string(layer) + ".attn_" +
                                    (is_stacked        ? "qkv"
                                     : role == Role::q ? "q"
                                                       : "k") +
                                    ".weight");
        ASSERT_GE(tensor, 0) << name;
        const std::int64_t rows = folder->rows(role, layer);
        const std::int64_t begin = is_stacked && role == Role::k ? folder->rows(Role::q, layer) : 0;
        std::vector<float> stored(expected.size());
        raw.read_rows(tensor, begin, begin + rows, stored.data());
        EXPECT_EQ(stored, expected) << name << " " << to_string(role);
      }
  }
}

}  // namespace
}  // namespace sinkscope
