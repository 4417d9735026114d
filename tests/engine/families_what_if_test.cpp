// SPDX-License-Identifier: GPL-3.0-or-later
// What-ifs on every family: what does nothing leaves each model as it is, what takes a mechanism
// out changes it, and what puts it back is the model again, to the bit.
#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "core/error.h"
#include "tests/engine/captured.h"
#include "tests/support/h5_reference.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

using ::testing::HasSubstr;
using Losses = std::vector<float>;

struct Opened {
  std::unique_ptr<ModelFiles> model;
  std::vector<int> ids;
};

Opened opened(const std::string& folder) {
  Opened result{open_model(folder), {}};
  for (std::int64_t id : H5Reference(folder + "/expected.h5").integers("/input_ids"))
    // A token without a logit (Inkling 2 has some) has no finite loss.
    result.ids.push_back(static_cast<int>(id) % result.model->spec().head_rows());
  return result;
}

// Losses of the model as it is, then of each what-if.
std::vector<Losses> losses(const Opened& from, const std::vector<std::string>& what_ifs) {
  EvaluateRequest request;
  request.device = "cpu";
  request.threads = test_threads();
  RunInput run;
  run.token_ids = from.ids;
  request.runs.push_back(run);
  for (const std::string& text : what_ifs) request.variants.push_back(parse_what_if(text));
  Progress progress;
  const Evaluation got = *engine().evaluate(*from.model, request, {std::stop_token(), progress});
  std::vector<Losses> result;
  for (const auto& set : got.loss) result.push_back(set.front());
  return result;
}

double largest_change(const Losses& a, const Losses& b) {
  double largest = 0;
  for (std::size_t t = 0; t < a.size(); ++t) largest = std::fmax(largest, std::fabs(a[t] - b[t]));
  return largest;
}

class Families : public ::testing::TestWithParam<std::string> {};

TEST_P(Families, EditsThatDoNothingChangeNothingAndOthersDo) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  std::vector<std::string> what_ifs = {
      R"({"edit":"residual.clip","limit":1e9})",
      R"({"edit":"attention.value","tokens":[0],"scale":1})",
      R"({"edit":"norm.replace","with":"preaffine"})",
      // A gate of its own goes when another one comes: A.X K2's ordinary norm is the last one.
      GetParam() == "axk2" ? R"({"edit":"norm.replace","with":"gatednorm","norms":["ln_final"]})"
                           : R"({"edit":"norm.replace","with":"gatednorm"})",
      R"({"edit":"residual.set","scale":0.5,"dims":[3]})",
      R"({"edit":"attention.mask_key","keys":[0],"renormalize":true})",
      R"({"edit":"attention.gate","value":0.5})",
      R"({"edit":"norm.replace","with":"none","norms":["ln_final"]})"};
  const Opened from = opened(folder);
  // Some experts have a unit of their own instead of an activation.
  if (!from.model->spec().moe.has_own_unit())
    what_ifs.push_back(R"({"edit":"mlp.activation","kind":"sigmoid"})");
  const std::vector<Losses> got = losses(from, what_ifs);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(got[i], got[0]) << "what-if " << i;
  for (std::size_t i = 5; i < got.size(); ++i) {
    EXPECT_GT(largest_change(got[i], got[0]), 1e-4) << "what-if " << i;
    for (const float loss : got[i]) ASSERT_TRUE(std::isfinite(loss)) << "what-if " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Families,
                         ::testing::Values("qwen3_moe", "mixtral", "gpt2", "opt", "gpt_neox",
                                           "gemma2", "gemma3", "olmo2", "olmo3", "phi3", "granite",
                                           "smollm3", "ministral3", "gpt_oss", "deepseek_v3",
                                           "qwen3_next", "qwen3_5", "axk2", "kimi_linear",
                                           "mimo_v2_flash", "granite_swa", "flint", "gemma4",
                                           "gemma4_moe", "inkling2", "deepseek_v4"),
                         [](const auto& test) { return test.param; });

// Qwen4-Exp has no norms to replace; its states are edited by stream.
TEST(FamilyWhatIfs, StreamsAreEditedByTheirDimensions) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/qwen4_exp");
  const std::vector<Losses> got =
      losses(opened(folder), {R"({"edit":"residual.clip","limit":1e9})",
                              R"({"edit":"attention.value","tokens":[0],"scale":1})",
                              R"({"edit":"residual.set","scale":1,"dims":[100]})",
                              R"({"edit":"residual.set","scale":0.5,"dims":[100]})",
                              R"({"edit":"residual.set","scale":0.5,"dims":[4]})",
                              R"({"edit":"attention.mask_key","keys":[0],"renormalize":true})",
                              R"({"edit":"attention.gate","value":0.5})",
                              R"({"edit":"mlp.activation","kind":"sigmoid"})"});
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(got[i], got[0]) << "what-if " << i;
  for (std::size_t i = 4; i < got.size(); ++i)
    EXPECT_GT(largest_change(got[i], got[0]), 1e-5) << "what-if " << i;
  EXPECT_GT(largest_change(got[4], got[5]), 1e-5);  // another stream, the same dimension 4
}

// An encoder has no head: its states say what an edit did, the same in both bodies of attention.
TEST(FamilyWhatIfs, AnEncodersStatesAreEdited) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/bert");
  const std::vector<std::string> nothing = {R"({"edit":"residual.clip","limit":1e9})",
                                            R"({"edit":"attention.value","tokens":[0],"scale":1})",
                                            R"({"edit":"norm.replace","with":"preaffine"})"},
                                 something = {
                                     R"({"edit":"residual.set","scale":0.5,"dims":[3]})",
                                     R"({"edit":"attention.mask_key","keys":[22]})",
                                     R"({"edit":"attention.mask_key","keys":[0,7],"heads":[1,2],
                                         "renormalize":false})",
                                     R"({"edit":"attention.normalizer","kind":"softmax1"})",
                                     R"({"edit":"attention.normalizer","kind":"sparsemax"})",
                                     R"({"edit":"attention.value","tokens":[5],"scale":0})",
                                     R"({"edit":"attention.gate","value":0.5})",
                                     R"({"edit":"mlp.activation","kind":"sigmoid"})",
                                     R"({"edit":"norm.replace","with":"rmsnorm"})"};
  const auto model = open_model(folder);
  CaptureRequest request = request_for(H5Reference(folder + "/expected.h5").ints("/input_ids"));
  for (const auto* edits : {&nothing, &something})
    for (const std::string& what_if : *edits) add_twin(request, what_if);
  const H5Reference fused(capture(*model, request));
  request.kernel = "reference";
  const H5Reference reference(capture(*model, request));
  const auto stream = [](const H5Reference& file, std::size_t edit) {
    return file.floats("/run0_edit" + std::to_string(edit) + "/residual/stream");
  };
  const Losses plain = fused.floats("/run0/residual/stream");
  for (std::size_t i = 0; i < nothing.size() + something.size(); ++i) {
    const std::string& what_if = i < nothing.size() ? nothing[i] : something[i - nothing.size()];
    const Losses edited = stream(fused, i);
    if (i < nothing.size())
      EXPECT_EQ(edited, plain) << what_if;
    else
      EXPECT_GT(largest_change(edited, plain), 1e-3) << what_if;
    EXPECT_LT(largest_change(edited, stream(reference, i)), 1e-4) << what_if;
  }
}

// The sink logits of GPT-OSS and its kin: softmax takes them out, "checkpoint" is what they are.
TEST(FamilyWhatIfs, SinkLogitsGoAndComeBack) {
  for (const char* name : {"gpt_oss", "gpt_oss_mxfp4", "mimo_v2_flash", "granite_swa", "flint",
                           "inkling2", "deepseek_v4"}) {
    SINKSCOPE_REQUIRE_SHARED(folder, std::string("oracles/") + name);
    const std::vector<Losses> got = losses(
        opened(folder), {R"({"edit":"attention.normalizer","kind":"softmax"})",
                         R"({"edit":"attention.normalizer","kind":"sink_logit","b":"checkpoint"})",
                         R"([{"edit":"attention.normalizer","kind":"softmax"},
             {"edit":"attention.normalizer","kind":"sink_logit","b":"checkpoint"}])"});
    EXPECT_GT(largest_change(got[1], got[0]), 1e-3) << name;
    EXPECT_EQ(got[2], got[0]) << name;
    EXPECT_EQ(got[3], got[0]) << name;
  }
  SINKSCOPE_REQUIRE_SHARED(plain, "oracles/qwen3_moe");
  try {
    losses(opened(plain),
           {R"({"edit":"attention.normalizer","kind":"sink_logit","b":"checkpoint"})"});
    FAIL() << "no sink logits there";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("holds no sink logits"));
  }
}

// A.X K2: its norms without their gates, and with the gates read from a file of their own weights.
TEST(FamilyWhatIfs, NormGatesGoAndComeBackBitForBit) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/axk2");
  const Opened from = opened(folder);
  SafetensorsBytes file;
  const auto add = [&](const char* norm, int layer, Role down, Role up) {
    if (!from.model->has(down, layer)) return;
    const std::string prefix = "blocks." + std::to_string(layer) + "." + norm;
    for (const auto& [role, part] : {std::pair{down, ".gate_down"}, std::pair{up, ".gate_up"}})
      file.floats(prefix + part, {from.model->rows(role, layer), from.model->cols(role, layer)},
                  from.model->read_vector(role, layer));
  };
  for (int layer = 0; layer < from.model->spec().n_layers; ++layer) {
    add("ln1", layer, Role::ln1_gate_down, Role::ln1_gate_up);
    add("ln2", layer, Role::ln2_gate_down, Role::ln2_gate_up);
  }
  const std::string path = file.write(scratch_folder() + "/gates.safetensors");
  const std::string gates = R"("with":"gatednorm","weights":")" + path + R"(")";
  const std::vector<Losses> got =
      losses(from, {R"({"edit":"norm.replace","with":"rmsnorm","norms":["ln1"]})",
                    R"({"edit":"norm.replace",)" + gates + R"(,"norms":["ln1"]})",
                    R"([{"edit":"norm.replace","with":"rmsnorm"},
                 {"edit":"norm.replace",)" +
                        gates + R"(,"norms":["ln1"]},
                 {"edit":"norm.replace",)" +
                        gates + R"(,"norms":["ln2"],"layers":"1-2"},
                 {"edit":"norm.replace","with":"rmsnorm","norms":["ln_final"]}])"});
  EXPECT_GT(largest_change(got[1], got[0]), 1e-3);
  EXPECT_EQ(got[2], got[0]);
  EXPECT_EQ(got[3], got[0]);
}

// Without a list, every norm of the stream on its way: those in front of a half and those behind.
TEST(FamilyWhatIfs, NormReplaceIsOfAllNormsByDefault) {
  const std::map<std::string, std::vector<std::string>> norms = {
      {"olmo2", {"ln1_post", "ln2_post", "ln_final"}},
      {"gemma2", {"ln1", "ln1_post", "ln2", "ln2_post", "ln_final"}},
      {"gemma3", {"ln1", "ln1_post", "ln2", "ln2_post", "ln_final"}}};
  for (const auto& [name, roles] : norms) {
    SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + name);
    const Opened from = opened(folder);
    for (const std::string with : {"layernorm", "dyt", "rmsnorm_no_gain"}) {
      SCOPED_TRACE(name + ' ' + with);
      const auto edit = [&](const std::string& list) {
        return R"({"edit":"norm.replace","with":")" + with + '"' + list + '}';
      };
      std::string all;
      for (const std::string& role : roles) all += (all.empty() ? "\"" : ",\"") + role + '"';
      std::vector<std::string> what_ifs = {edit(""), edit(",\"norms\":[" + all + ']')};
      for (const std::string& role : roles)
        what_ifs.push_back(edit(",\"norms\":[\"" + role + "\"]"));
      const std::vector<Losses> got = losses(from, what_ifs);
      EXPECT_EQ(got[1], got[2]);
      for (std::size_t i = 3; i < got.size(); ++i) {
        EXPECT_GT(largest_change(got[i], got[0]), 1e-5) << roles[i - 3];
        EXPECT_GT(largest_change(got[i], got[1]), 1e-5) << roles[i - 3];
      }
    }
    // Of one block: its norms, and not the final one.
    const std::string block = R"({"edit":"norm.replace","with":"layernorm","layers":[1])";
    const std::vector<Losses> some =
        losses(from, {block + "}", block + R"(,"norms":["ln1_post","ln2_post"]})"});
    if (name == "olmo2") {
      EXPECT_EQ(some[1], some[2]);
    } else {
      EXPECT_GT(largest_change(some[1], some[2]), 1e-5) << name;
    }
  }
}

// A probe asks what reads the stream; the norms behind the halves do not, and are probed by name.
TEST(FamilyWhatIfs, ProbesAreOfTheNormsThatReadTheStream) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/gemma3");
  const std::string probe = R"({"edit":"norm.probe","mode":"zero","dims":[7])";
  const std::vector<Losses> got =
      losses(opened(folder), {probe + "}", probe + R"(,"norms":["ln1","ln2","ln_final"]})",
                              probe + R"(,"norms":["ln1_post"]})"});
  EXPECT_EQ(got[1], got[2]);
  EXPECT_GT(largest_change(got[3], got[0]), 1e-6);
  EXPECT_GT(largest_change(got[3], got[1]), 1e-6);
}

// What a model does not have is said.
TEST(FamilyWhatIfs, PlacesThatDoNotExistAreNamed) {
  const auto refusal = [](const std::string& name, const std::string& what_if) -> std::string {
    const std::string folder = shared_path("oracles/" + name);
    try {
      losses(opened(folder), {what_if});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  SINKSCOPE_REQUIRE_SHARED(neox, "oracles/gpt_neox");
  EXPECT_THAT(
      refusal("gpt_neox", R"({"edit":"residual.clip","limit":1,"sites":["hook_resid_mid"]})"),
      HasSubstr("no residual site 'hook_resid_mid'"));
  EXPECT_THAT(refusal("olmo2", R"({"edit":"norm.replace","with":"none","norms":["ln1"]})"),
              HasSubstr("no norm 'ln1'"));
  EXPECT_THAT(refusal("qwen3_5", R"({"edit":"attention.mask_key","keys":[0],"layers":[0]})"),
              HasSubstr("no place in common"));
  EXPECT_THAT(refusal("gpt_oss", R"({"edit":"mlp.activation","kind":"gelu"})"),
              HasSubstr("gated unit of their own"));
  EXPECT_THAT(refusal("qwen4_exp", R"({"edit":"norm.replace","with":"none"})"),
              HasSubstr("part of the mixes of its 3 residual streams"));
  EXPECT_THAT(refusal("qwen4_exp", R"({"edit":"norm.probe","mode":"zero","dims":[1]})"),
              HasSubstr("part of the mixes"));
  EXPECT_THAT(refusal("qwen4_exp", R"({"edit":"residual.set","scale":0,"dims":[144]})"),
              HasSubstr("143"));
  EXPECT_THAT(refusal("deepseek_v4", R"({"edit":"mlp.activation","kind":"gelu"})"),
              HasSubstr("gated unit of their own"));
  EXPECT_THAT(refusal("gpt2", R"({"edit":"norm.probe","mode":"denominator","dims":[1]})"),
              HasSubstr("LayerNorm"));
}

}  // namespace
}  // namespace sinkscope::test
