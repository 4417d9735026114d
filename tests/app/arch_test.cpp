// SPDX-License-Identifier: GPL-3.0-or-later
// A model under names of its own: what the verbs say about it, and what they do with --arch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/cli/run_cli.h"
#include "app/window_request.h"
#include "capture/checkpoint/model_files.h"
#include "core/capture_reader.h"
#include "tests/app/cli_run.h"
#include "tests/support/gguf_writer.h"
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
                                 {"self_attn.q_proj", "mix.query"},
                                 {"input_layernorm.W_", "pre.gate_"}})
    if (const auto at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  return name;
}

// A model under other names, with a config of an architecture that nobody knows.
std::string renamed_model(const std::string& usual = kPlanted) {
  const std::string folder = test::scratch_folder();
  const auto model = open_model(usual);
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
    if (fs::exists(usual + "/" + name)) fs::copy_file(usual + "/" + name, folder + "/" + name);
  return folder;
}

std::string arch_of_renamed(const std::string& usual = kPlanted) {
  auto arch = nlohmann::ordered_json::parse(cli({"info", usual, "--arch-json"}).out);
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
  // Beside a model that describes itself.
  const CliRun both = cli({"figure", "compare", "--of", "norm-gains", model, kPlanted, "--arch",
                           arch + ",", "-o", folder + "/both.csv"});
  EXPECT_EQ(both.code, 0) << both.err;
  works({"tokenize", model, "--text", "a cat"});
  EXPECT_THAT(works({model}), AllOf(HasSubstr("planted"), HasSubstr("--arch " + arch)));
#ifdef SINKSCOPE_WITH_TORCH
  works({"sinks", model, "--text", "a cat sat"});
  works({"probe", model, "--text", "a cat sat", "--dims", "37"});
  works({"whatif", model, "--text", "a cat sat", "--edit",
         R"({"edit":"residual.clip","limit":100})", "-o", folder + "/w.h5"});
  works({"compare", "--kl", model, model, "--text", "a cat sat"});
  works({"capture", model, "--text", "a cat sat", "-o", folder + "/c.h5"});
  works({"rescale", folder + "/c.h5", "--model", model});
  // What it writes describes itself.
  works({"absorb", model, "--text", "a cat sat", "--dims", "37", "-o", folder + "/a"});
  EXPECT_THAT(cli({"info", folder + "/a"}).out, ::testing::Not(HasSubstr("cannot be run")));
#endif
}

#ifdef SINKSCOPE_WITH_TORCH
// These datasets of a run.
void expect_same_numbers(const std::string& a_path, const std::string& b_path,
                         const std::vector<std::string>& datasets,
                         const std::string& run = "run0") {
  const auto a = CaptureReader::open(a_path), b = CaptureReader::open(b_path);
  for (const std::string& dataset : datasets) {
    ASSERT_TRUE(a->has(run, dataset)) << dataset;
    const auto dims = a->dims(run, dataset);
    EXPECT_EQ(dims, b->dims(run, dataset));
    const std::vector<std::int64_t> start(dims.size(), 0);
    std::vector<double> x = a->read_f64(run, dataset, start, dims),
                        y = b->read_f64(run, dataset, start, dims);
    for (std::vector<double>* values : {&x, &y})
      std::replace_if(
          values->begin(), values->end(), [](double v) { return std::isnan(v); }, -1e9);
    EXPECT_EQ(x, y) << dataset;
  }
}

// Someone's own checkpoint with gated norms, under names of its own and without a config that
// anybody knows, from the first look to the last verb: what every verb finds is what it finds under
// the usual names.
TEST(Arch, OnesOwnGatedNormCheckpointGoesThroughEveryVerb) {
  SINKSCOPE_REQUIRE_SHARED(usual, "oracles/axk2");
  const std::string own = renamed_model(usual), arch = arch_of_renamed(usual),
                    folder = test::scratch_folder();
  const auto both = [&](std::vector<std::string> args, const std::string& output = "") {
    std::vector<std::string> outs;
    for (const bool is_own : {false, true}) {
      std::vector<std::string> words;
      for (const std::string& word : args)
        words.push_back(word == "MODEL" ? (is_own ? own : usual)
                        : word == "RUN" ? folder + (is_own ? "/own.h5" : "/usual.h5")
                                        : word);
      if (is_own) words.insert(words.end(), {"--arch", arch});
      if (!output.empty())
        words.insert(words.end(), {"-o", folder + (is_own ? "/own" : "/usual") + output});
      const CliRun run = cli(words);
      EXPECT_EQ(run.code, 0) << args.front() << ": " << run.err;
      outs.push_back(run.out);
    }
    return std::pair{outs[0], outs[1]};
  };
  const auto json_of = [](const std::string& text) { return nlohmann::json::parse(text); };
  const std::string ids = "3,9,4,1,7,22,15";

  const auto info = both({"info", "MODEL", "--json"});
  EXPECT_TRUE(json_of(info.second)["obstacles"].empty()) << info.second;
  EXPECT_THAT(both({"norms", "MODEL"}).second, HasSubstr("trunk.0."));
  both({"capture", "MODEL", "--tokens", ids, "--record", "all,logits"}, ".h5");
  expect_same_numbers(
      folder + "/usual.h5", folder + "/own.h5",
      {"residual/stream", "logits/full", "attention/pattern", "taps/ln1.hook_gate/values",
       "taps/ln2.hook_gate/values", "taps/attn.hook_gate/values", "taps/mlp.hook_router/values"});
  const auto sinks = both({"sinks", "MODEL", "--tokens", ids, "--json"});
  EXPECT_EQ(json_of(sinks.first).at("runs"), json_of(sinks.second).at("runs"));
  EXPECT_THAT(sinks.second, HasSubstr("norm_gate"));
  const auto rescaled = both({"rescale", "RUN", "--model", "MODEL", "--json"});
  EXPECT_EQ(json_of(rescaled.first).at("norms"), json_of(rescaled.second).at("norms"));
  both({"probe", "MODEL", "--tokens", ids, "--dims", "5,18"}, ".json");
  std::ifstream usual_probe(folder + "/usual.json"), own_probe(folder + "/own.json");
  EXPECT_EQ(nlohmann::json::parse(usual_probe).at("probes"),
            nlohmann::json::parse(own_probe).at("probes"));
  // The gates taken out: the same again.
  both({"whatif", "MODEL", "--tokens", ids, "--record", "stream,logits", "--edit",
        R"({"edit":"norm.replace","norms":["ln1","ln2"],"with":"rmsnorm"})"},
       "-edited.h5");
  expect_same_numbers(folder + "/usual-edited.h5", folder + "/own-edited.h5",
                      {"residual/stream", "logits/full"}, "run0_edit0");
  both({"absorb", "MODEL", "--tokens", ids, "--dims", "5"}, "-absorbed");
  EXPECT_THAT(cli({"info", folder + "/own-absorbed"}).out,
              ::testing::Not(HasSubstr("cannot be run")));
  const CliRun again =
      cli({"capture", folder + "/own-absorbed", "--tokens", ids, "-o", folder + "/again.h5"});
  EXPECT_EQ(again.code, 0) << again.err;
}
#endif

// GGUF files have no room for an architecture that nobody knows: the same flag describes them.
TEST(Arch, AGgufFileOfAnUnknownArchitectureIsDescribedByTheFlag) {
  const std::string folder = test::scratch_folder();
  const auto planted = open_model(kPlanted);
  const std::string known = test::write_gguf(*planted, folder + "/known.gguf");
  const std::string arch =
      test::write_file(folder, "arch.json", cli({"info", known, "--arch-json"}).out);
  std::string bytes = test::read_file(known);
  for (auto at = bytes.find("llama"); at != std::string::npos; at = bytes.find("llama", at))
    bytes.replace(at, 5, "alpha");  // in every key
  const std::string own = test::write_file(folder, "own.gguf", bytes);
  EXPECT_THAT(cli({"info", own}).out, HasSubstr("\"alpha\" cannot be run"));
  const CliRun info = cli({"info", own, "--arch", arch});
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_THAT(info.out, ::testing::Not(HasSubstr("cannot be run")));
#ifdef SINKSCOPE_WITH_TORCH
  const std::vector<std::string> rest = {"--tokens", "256,97,98,99", "--record", "stream,logits"};
  for (std::vector<std::string> args :
       {std::vector<std::string>{"capture", own, "--arch", arch, "-o", folder + "/own.h5"},
        {"capture", kPlanted, "-o", folder + "/usual.h5"}}) {
    args.insert(args.end(), rest.begin(), rest.end());
    const CliRun run = cli(args);
    ASSERT_EQ(run.code, 0) << run.err;
  }
  expect_same_numbers(folder + "/usual.h5", folder + "/own.h5", {"residual/stream", "logits/full"});
#endif
}

// The words that open a window take it as well.
TEST(Arch, TheWindowIsAskedForWithTheFlag) {
  const auto request = [](const std::vector<std::string>& words) { return window_request(words); };
  const WindowRequest model{"M", "F.json"};
  EXPECT_EQ(request({"view", "M", "--arch", "F.json"}), model);
  EXPECT_EQ(request({"view", "--arch=F.json", "M"}), model);
  EXPECT_EQ(request({"M", "--arch", "F.json"}), model);
  EXPECT_EQ(request({"view", "M"}), (WindowRequest{"M", ""}));
  EXPECT_EQ(request({"view"}), WindowRequest());
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"info", "M", "--arch", "F.json"},
        {"view", "M", "--arch"},
        {"view", "--arch", "F.json"},
        {"view", "M", "--force"},
        {"M", "N", "--arch", "F.json"}})
    EXPECT_EQ(request(words), std::nullopt);
}

}  // namespace
}  // namespace sinkscope
