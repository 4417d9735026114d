// SPDX-License-Identifier: GPL-3.0-or-later
// What reading roles takes of the files, counted where it comes out of them.
#include "capture/checkpoint/read_together.h"

#include <gtest/gtest.h>

#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

// Lines [begin, end) of each role in turn, by read_rows.
std::vector<float> one_by_one(const ModelFiles& model, int layer, std::vector<Stretch> wanted) {
  std::vector<float> values;
  for (Stretch& s : wanted) {
    std::vector<float> part(
        static_cast<std::size_t>((s.end - s.begin) * model.cols(s.role, layer)));
    model.read_rows(s.role, layer, s.begin, s.end, part.data());
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

struct Together {
  std::vector<float> values;
  std::int64_t bytes = 0;
};

Together together(const ModelFiles& model, int layer, std::vector<Stretch> wanted) {
  std::size_t n = 0;
  for (const Stretch& s : wanted)
    n += static_cast<std::size_t>((s.end - s.begin) * model.cols(s.role, layer));
  Together read{std::vector<float>(n), model.bytes_read()};
  float* into = read.values.data();
  for (Stretch& s : wanted) {
    s.out = into;
    into += (s.end - s.begin) * model.cols(s.role, layer);
  }
  read_together(model, layer, wanted);
  read.bytes = model.bytes_read() - read.bytes;
  return read;
}

// Gate and up rows of one expert.
std::vector<Stretch> expert(const ModelFiles& model, int layer, int index) {
  const std::int64_t each = model.rows(Role::expert_gate, layer) / model.spec().moe.n_experts;
  return {{Role::expert_gate, index * each, (index + 1) * each, nullptr},
          {Role::expert_up, index * each, (index + 1) * each, nullptr}};
}

// gate_up_proj [5, 48, 2·28] F32: gate and up are its even and odd columns.
TEST(ReadTogether, AStackedExpertIsReadOnce) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/gpt_oss");
  const auto model = open_model(folder);
  const auto wanted = expert(*model, 1, 3);
  const Together read = together(*model, 1, wanted);
  EXPECT_EQ(read.values, one_by_one(*model, 1, wanted));
  EXPECT_EQ(read.bytes, 48 * 2 * 28 * 4);
}

// Rows alternate: 64 of two blocks of 32 codes, 16 bytes and a scale each.
TEST(ReadTogether, AnExpertOfCodesIsReadOnceWithItsScales) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/gpt_oss_mxfp4");
  const auto model = open_model(folder);
  const auto wanted = expert(*model, 2, 1);
  const Together read = together(*model, 2, wanted);
  EXPECT_EQ(read.values, one_by_one(*model, 2, wanted));
  EXPECT_EQ(read.bytes, 64 * 2 * (16 + 1));
}

// c_attn [48, 3·48] F32: columns of one matrix.
TEST(ReadTogether, AFusedProjectionIsReadOnce) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/gpt2");
  const auto model = open_model(folder);
  const std::vector<Stretch> wanted = {
      {Role::q, 0, 48, nullptr}, {Role::k, 0, 48, nullptr}, {Role::v, 5, 48, nullptr}};
  const Together read = together(*model, 0, wanted);
  EXPECT_EQ(read.values, one_by_one(*model, 0, wanted));
  EXPECT_EQ(read.bytes, 48 * 3 * 48 * 4);
}

// Roles that have tensors of their own take what these take, in either container.
TEST(ReadTogether, RolesOfTheirOwnTakeTheirTensors) {
  for (const char* name : {"oracles/llama", "oracles/llama_gguf"}) {
    SINKSCOPE_REQUIRE_SHARED(folder, name);
    const std::string gguf = folder + "/model.gguf";
    const auto model =
        open_model(shared_path(std::string(name) + "/model.gguf").empty() ? folder : gguf);
    std::vector<Stretch> wanted;
    std::int64_t bytes = 0;
    for (const Role role : {Role::q, Role::v, Role::gate}) {
      wanted.push_back({role, 0, model->rows(role, 1), nullptr});
      const Checkpoint& checkpoint = model->checkpoint();
      const int index = checkpoint.find(model->tensor_name(role, 1));
      bytes +=
          static_cast<std::int64_t>(checkpoint.tensors()[static_cast<std::size_t>(index)].n_bytes);
    }
    const Together read = together(*model, 1, wanted);
    EXPECT_EQ(read.values, one_by_one(*model, 1, wanted)) << name;
    EXPECT_EQ(read.bytes, bytes) << name;
  }
}

TEST(ReadTogether, RowsThatAreNotThereAreRefused) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/gpt2");
  const auto model = open_model(folder);
  EXPECT_ANY_THROW(together(*model, 0, {{Role::q, 0, 49, nullptr}, {Role::k, 0, 48, nullptr}}));
}

}  // namespace
}  // namespace sinkscope::test
