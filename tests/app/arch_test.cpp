// SPDX-License-Identifier: GPL-3.0-or-later
// A model under names of its own: what the verbs say about it, and what they do with --arch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/run_cli.h"
#include "capture/checkpoint/model_files.h"
#include "core/capture_reader.h"
#include "tests/app/cli_run.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using test::cli;
using test::CliRun;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kPlanted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";

std::string own_name(std::string name) {
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"model.layers.", "trunk."},
                                 {"self_attn.q_proj", "mix.query"}})
    if (const auto at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  return name;
}

// The planted model under other names, with a config of an architecture that nobody knows.
std::string renamed_model() {
  const std::string folder = test::scratch_folder();
  const auto model = open_model(kPlanted);
  test::SafetensorsBytes file;
  for (const TensorInfo& tensor : model->checkpoint().tensors()) {
    std::vector<float> values(static_cast<std::size_t>(tensor.n_elements()));
    model->checkpoint().read_rows(model->checkpoint().find(tensor.name), 0, tensor.n_rows(),
                                  values.data());
    file.floats(own_name(tensor.name), tensor.shape, values);
  }
  file.write(folder + "/model.safetensors");
  test::write_file(folder, "config.json", R"({"model_type": "our_transformer"})");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    fs::copy_file(kPlanted + "/" + name, folder + "/" + name);
  return folder;
}

std::string arch_of_renamed() {
  auto arch = nlohmann::ordered_json::parse(cli({"info", kPlanted, "--arch-json"}).out);
  for (auto& [role, names] : arch["roles"].items()) {
    if (names.is_string()) names = own_name(names);
    if (names.is_array())
      for (auto& name : names)
        if (name.is_string()) name = own_name(name);
  }
  return test::write_file(test::scratch_folder(), "arch.json", arch.dump());
}

TEST(Arch, AnUnknownArchitectureIsLookedAtAndPointsToTheFlag) {
  const std::string model = renamed_model();
  const CliRun info = cli({"info", model});
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_THAT(info.out, AllOf(HasSubstr("our_transformer"), HasSubstr("--arch")));
  const CliRun run =
      cli({"capture", model, "--text", "ab", "-o", test::scratch_folder() + "/x.h5"});
  EXPECT_NE(run.code, 0);
  EXPECT_THAT(run.err, AllOf(HasSubstr("\"our_transformer\" is not known here"),
                             HasSubstr("--arch"), HasSubstr("tensors have no role: ")));
  // What is there to start from: the tensors without a role, once each.
  const auto start = nlohmann::json::parse(cli({"info", model, "--arch-json"}).out);
  EXPECT_EQ(start["schema"], "sinkscope.arch/1");
  EXPECT_THAT(start["unmapped"].dump(), HasSubstr("trunk.{layer}.mix.query.weight"));
}

#ifdef SINKSCOPE_WITH_TORCH
TEST(Arch, WithItsDescriptionTheModelIsRecordedAsUnderTheUsualNames) {
  const std::string model = renamed_model(), arch = arch_of_renamed();
  const std::string folder = test::scratch_folder();
  for (const auto& [name, args] :
       {std::pair<std::string, std::vector<std::string>>{"usual", {"capture", kPlanted}},
        {"own", {"capture", model, "--arch", arch}}}) {
    std::vector<std::string> all = args;
    for (const std::string& more :
         {std::string("--text"), std::string("a cat sat"), std::string("--record"),
          std::string("stream,logits"), std::string("-o"), folder + "/" + name + ".h5"})
      all.push_back(more);
    const CliRun run = cli(all);
    ASSERT_EQ(run.code, 0) << run.err;
  }
  const auto usual = CaptureReader::open(folder + "/usual.h5");
  const auto own = CaptureReader::open(folder + "/own.h5");
  for (const char* dataset : {"residual/stream", "logits/full"}) {
    const auto dims = usual->dims("run0", dataset);
    const std::vector<std::int64_t> start(dims.size(), 0);
    EXPECT_EQ(usual->read_f64("run0", dataset, start, dims),
              own->read_f64("run0", dataset, start, dims))
        << dataset;
  }
}
#endif

TEST(Arch, EveryVerbThatOpensAModelTakesTheFlag) {
  const std::string model = renamed_model(), arch = arch_of_renamed();
  const std::string folder = test::scratch_folder();
  const auto works = [&](std::vector<std::string> args) {
    args.insert(args.end(), {"--arch", arch});
    const CliRun run = cli(args);
    EXPECT_EQ(run.code, 0) << args.front() << ": " << run.err;
    return run.out;
  };
  EXPECT_THAT(works({"info", model}), ::testing::Not(HasSubstr("cannot be run")));
  EXPECT_THAT(works({"norms", model}), HasSubstr("trunk.0."));
  works({"figure", "norm-gains", model, "-o", folder + "/n.csv"});
#ifdef SINKSCOPE_WITH_TORCH
  works({"sinks", model, "--text", "a cat sat"});
  works({"probe", model, "--text", "a cat sat", "--dims", "37"});
  works({"whatif", model, "--text", "a cat sat", "--edit",
         R"({"edit":"residual.clip","limit":100})", "-o", folder + "/w.h5"});
  works({"capture", model, "--text", "a cat sat", "-o", folder + "/c.h5"});
  works({"rescale", folder + "/c.h5", "--model", model});
  // What it writes describes itself.
  works({"absorb", model, "--text", "a cat sat", "--dims", "37", "-o", folder + "/a"});
  EXPECT_THAT(cli({"info", folder + "/a"}).out, ::testing::Not(HasSubstr("cannot be run")));
#endif
}

}  // namespace
}  // namespace sinkscope
