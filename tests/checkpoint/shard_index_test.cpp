// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/shard_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "capture/checkpoint/model_files.h"
#include "tests/checkpoint/gguf_test_files.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/tiny_folder.h"

namespace sinkscope {
namespace {

using namespace test;  // NOLINT: the helpers of the tests
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr const char* kIndex = "/model.safetensors.index.json";

// Rewrites the index of `folder`.
void edit_index(const std::string& folder, const std::function<void(nlohmann::json&)>& edit) {
  nlohmann::json index = nlohmann::json::parse(read_bytes(folder + kIndex));
  edit(index["weight_map"]);
  write_bytes(folder + kIndex, index.dump());
}

std::vector<float> values_of(const ModelFiles& model, const std::string& name) {
  const int index = model.checkpoint().find(name);
  const TensorInfo& info = model.checkpoint().tensors().at(static_cast<std::size_t>(index));
  std::vector<float> values(static_cast<std::size_t>(info.n_elements()));
  model.checkpoint().read_rows(index, 0, info.n_rows(), values.data());
  return values;
}

TEST(ShardIndex, ShardsReadAsOneModel) {
  const TinyFolder tiny = tiny_folder();
  const auto model = open_model(tiny.write(scratch_folder(), 3));
  EXPECT_THAT(model->obstacles(), IsEmpty());
  EXPECT_THAT(model->warnings(), IsEmpty());
  EXPECT_EQ(model->checkpoint().tensors().size(), tiny.tensors.size());
  for (const auto& [name, tensor] : tiny.tensors) {
    EXPECT_EQ(values_of(*model, name), tensor.values) << name;
  }
}

TEST(ShardIndex, SingleFileComesBeforeTheIndex) {
  const std::string folder = tiny_folder().write(scratch_folder(), 2);
  tiny_folder().write(folder);
  const ShardSet shards = find_shards(folder, {});
  EXPECT_THAT(shards.files, ElementsAre(folder + "/model.safetensors"));
  EXPECT_THAT(shards.warnings, ElementsAre(HasSubstr("index.json beside it is not")));
}

TEST(ShardIndex, ShardNames) {
  ShardName name;
  ASSERT_TRUE(parse_shard_name("model-00002-of-00003.safetensors", name));
  EXPECT_EQ(name, (ShardName{"model", 2, 3}));
  for (const char* other :
       {"model.safetensors", "-00001-of-00002.safetensors", "m-00000-of-00002.safetensors",
        "m-00003-of-00002.safetensors", "m-0001-of-00002.safetensors", "m-00001-of-00002.bin"}) {
    EXPECT_FALSE(parse_shard_name(other, name)) << other;
  }
}

TEST(ShardIndex, FileNamesThatAreNotPlainAreRefused) {
  for (const char* bad : {"../model.safetensors", "/etc/passwd", "a/b.safetensors", "..", ""}) {
    const std::string folder = tiny_folder().write(scratch_folder(), 2);
    edit_index(folder, [&](nlohmann::json& map) { map["lm_head.weight"] = bad; });
    const auto [kind, message] = failure_of([&] { open_model(folder); });
    EXPECT_EQ(kind, ErrorKind::corrupt);
    EXPECT_THAT(message, HasSubstr("expected a plain file name")) << bad;
  }
}

TEST(ShardIndex, AnIndexThatIsNoIndexIsRefused) {
  const std::string folder = tiny_folder().write(scratch_folder(), 2);
  for (const char* bad : {"{}", "[]", "{\"weight_map\":[]}", "{\"weight_map\":{}}",
                          "{\"weight_map\":", "version https://git-lfs.github.com/spec/v1\n"}) {
    write_bytes(folder + kIndex, bad);
    EXPECT_EQ(failure_of([&] { open_model(folder); }).first, ErrorKind::corrupt) << bad;
  }
}

TEST(ShardIndex, ExtraTensorsAreAWarning) {
  const std::string folder = tiny_folder().write(scratch_folder(), 2);
  edit_index(folder, [](nlohmann::json& map) { map.erase("lm_head.weight"); });
  EXPECT_THAT(
      open_model(folder)->warnings(),
      ElementsAre(HasSubstr("1 tensors of the shards are not in the index: lm_head.weight")));
}

TEST(FieldCases, FC01_EveryMissingShardIsNamedBeforeAnythingIsRead) {
  const std::string folder = tiny_folder().write(scratch_folder(), 4);
  fs::remove(folder + "/" + shard_name(2, 4));
  fs::remove(folder + "/" + shard_name(4, 4));
  write_bytes(folder + "/" + shard_name(1, 4), "not even a header");  // must not be opened
  const auto [kind, message] = failure_of([&] { open_model(folder); });
  EXPECT_EQ(kind, ErrorKind::not_found);
  EXPECT_THAT(message, AllOf(HasSubstr(shard_name(2, 4)), HasSubstr(shard_name(4, 4)),
                             HasSubstr("incomplete download?"), Not(HasSubstr("\n"))));
}

TEST(FieldCases, FC01_ABlobThatWasNotDownloadedIsMissing) {
  const std::string folder = tiny_folder().write(scratch_folder(), 2);
  fs::remove(folder + "/" + shard_name(2, 2));
  fs::create_symlink("../../blobs/0123abcd", folder + "/" + shard_name(2, 2));
  EXPECT_THAT(failure_of([&] { open_model(folder); }).second, HasSubstr(shard_name(2, 2)));
}

TEST(FieldCases, FC03_StaleIndexBesideACompleteSet) {
  const TinyFolder tiny = tiny_folder();
  const std::string folder = tiny.write(scratch_folder(), 3);
  const std::string stale = read_bytes(folder + kIndex);
  for (int i = 1; i <= 3; ++i) fs::remove(folder + "/" + shard_name(i, 3));
  tiny.write(folder, 2);
  write_bytes(folder + kIndex, stale);

  const auto [kind, message] = failure_of([&] { open_model(folder); });
  EXPECT_EQ(kind, ErrorKind::not_found);
  EXPECT_THAT(message, AllOf(HasSubstr(shard_name(1, 3)), HasSubstr("2 of the 2 files"),
                             HasSubstr("--ignore-index")));
  const auto model = open_model(folder, {.ignore_index = true, .arch_file = ""});
  EXPECT_THAT(model->obstacles(), IsEmpty());
  EXPECT_THAT(model->warnings(), ElementsAre(HasSubstr("the index is ignored, 2 shards")));
  EXPECT_EQ(values_of(*model, "lm_head.weight"), tiny.tensors.at("lm_head.weight").values);
}

TEST(FieldCases, FC03_IndexThatCoversPartOfTheFamily) {
  const std::string folder = tiny_folder().write(scratch_folder(), 2);
  edit_index(folder, [](nlohmann::json& map) {
    const nlohmann::json whole = map;
    for (const auto& [tensor, file] : whole.items()) {
      if (file == shard_name(2, 2)) map.erase(tensor);
    }
  });
  const auto [kind, message] = failure_of([&] { open_model(folder); });
  EXPECT_EQ(kind, ErrorKind::corrupt);
  EXPECT_THAT(message, AllOf(HasSubstr("covers 1 of the 2 files"), HasSubstr(shard_name(2, 2)),
                             HasSubstr("--ignore-index")));
  EXPECT_THAT(open_model(folder, {.ignore_index = true, .arch_file = ""})->obstacles(), IsEmpty());
}

TEST(FieldCases, FC03_IgnoringTheIndexStillSaysWhatIsMissing) {
  const std::string folder = tiny_folder().write(scratch_folder(), 3);
  fs::remove(folder + "/" + shard_name(2, 3));
  const auto model = open_model(folder, {.ignore_index = true, .arch_file = ""});
  EXPECT_THAT(model->warnings(), Contains(HasSubstr(shard_name(2, 3))));
  EXPECT_THAT(model->obstacles(), Contains(HasSubstr("missing tensor")));
  tiny_folder().write(folder, 2);
  tiny_folder().write(folder, 4);
  EXPECT_EQ(failure_of([&] { open_model(folder, {.ignore_index = true, .arch_file = ""}); }).first,
            ErrorKind::invalid_argument);
}

TEST(FieldCases, FC04_ThreeCausesThreeMessages) {
  // The name is in no index: another architecture.
  TinyFolder other = tiny_folder();
  other.remove("model.layers.1.mlp.up_proj.weight");
  const std::string absent = other.write(scratch_folder(), 2);
  EXPECT_THAT(open_model(absent)->obstacles(),
              ElementsAre(AllOf(HasSubstr("missing tensor model.layers.1.mlp.up_proj.weight"),
                                HasSubstr(absent + kIndex), HasSubstr("another architecture?"))));
  // The shard is absent.
  const std::string no_shard = tiny_folder().write(scratch_folder(), 2);
  fs::remove(no_shard + "/" + shard_name(1, 2));
  EXPECT_THAT(failure_of([&] { open_model(no_shard); }).second,
              AllOf(HasSubstr("are not there: " + shard_name(1, 2)),
                    HasSubstr("tensor lm_head.weight should be in " + shard_name(1, 2))));
  // The shard is there without the tensor: elsewhere, or nowhere.
  const std::string moved = tiny_folder().write(scratch_folder(), 2);
  edit_index(moved, [](nlohmann::json& map) { map["lm_head.weight"] = shard_name(2, 2); });
  EXPECT_THAT(
      failure_of([&] { open_model(moved); }).second,
      AllOf(HasSubstr(shard_name(2, 2) + ": the index promises tensor lm_head.weight here, it "
                                         "is in "),
            HasSubstr(shard_name(1, 2))));
  const std::string nowhere = tiny_folder().write(scratch_folder(), 2);
  edit_index(nowhere, [](nlohmann::json& map) { map["extra.weight"] = shard_name(1, 2); });
  EXPECT_THAT(failure_of([&] { open_model(nowhere); }).second,
              AllOf(HasSubstr(shard_name(1, 2) + ": the index promises tensor extra.weight here"),
                    HasSubstr("does not hold it")));
}

// Formats that training frameworks write for themselves: how to convert them is said.
TEST(ShardIndex, TrainingCheckpointsAreRefusedWithTheWayToConvertThem) {
  const auto refusal = [](const std::vector<std::string>& names) {
    const std::string folder = scratch_folder();
    for (const std::string& name : names) write_bytes(folder + "/" + name, "x");
    const auto failure = failure_of([&] { open_model(folder); });
    EXPECT_EQ(failure.first, ErrorKind::unsupported);
    EXPECT_THAT(failure.second, Not(HasSubstr("\n")));
    return failure.second;
  };
  EXPECT_THAT(refusal({".metadata", "__0_0.distcp", "__1_0.distcp"}), HasSubstr("dcp_to_torch"));
  EXPECT_THAT(refusal({"latest_checkpointed_iteration.txt", "notes.pt"}),
              HasSubstr("a Megatron checkpoint"));
  EXPECT_THAT(refusal({"common.pt", "metadata.json", ".metadata", "__0_0.distcp"}),
              HasSubstr("a Megatron checkpoint"));
  const std::string run = scratch_folder();
  fs::create_directory(run + "/iter_0005000");
  EXPECT_THAT(failure_of([&] { open_model(run); }).second, HasSubstr("Megatron Bridge"));
}

}  // namespace
}  // namespace sinkscope
