// SPDX-License-Identifier: GPL-3.0-or-later
// A preview computed from a recording is what a rerun of the model gives at that place.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/capture_reader.h"
#include "core/shell_word.h"
#include "core/what_if/head_preview.h"
#include "core/what_if/norm_preview.h"
#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

#ifdef SINKSCOPE_WITH_TORCH
constexpr int kLayer = 1;

std::unique_ptr<CaptureReader> rerun(const std::string& folder, const std::string& edit) {
  const std::string out = folder + "/rerun.h5";
  const test::CliRun run =
      test::cli({"whatif", std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted", "--tokens",
                 "0,5,9,3,7,2,8,4,6,1,5", "--record", "all", "--edit", edit, "-o", out, "--force"});
  EXPECT_EQ(run.code, 0) << run.err;
  return CaptureReader::open(out);
}

MatrixF tap(const CaptureReader& reader, const std::string& run, const std::string& hook) {
  const auto dims = reader.dims(run, "taps/" + hook + "/values");
  const auto values =
      reader.read_f32(run, "taps/" + hook + "/values", {kLayer, 0, 0}, {1, dims[1], dims[2]});
  return ConstMapF(values.data(), dims[1], dims[2]);
}

TEST(PreviewAgainstRerun, ANormGivesWhatTheModelGives) {
  const std::string folder = test::scratch_folder();
  for (
      const char* edit :
      {R"({"edit":"norm.probe","mode":"zero","dims":[11],"tokens":"rest","layers":[1],"norms":["ln2"]})",
       R"({"edit":"norm.probe","mode":"mean","dims":[11,3],"layers":[1],"norms":["ln2"]})",
       R"({"edit":"norm.probe","mode":"clamp","tau":0.7,"dims":[11],"layers":[1],"norms":["ln2"]})",
       R"({"edit":"norm.probe","mode":"denominator","dims":[11],"layers":[1],"norms":["ln2"]})",
       R"({"edit":"norm.probe","mode":"direct_const","dims":[11],"layers":[1],"norms":["ln2"]})",
       R"({"edit":"norm.probe","mode":"remove_const","dims":[11],"tokens":"rest","layers":[1],"norms":["ln2"]})",
       R"({"edit":"norm.replace","with":"layernorm","layers":[1],"norms":["ln2"]})",
       R"({"edit":"norm.replace","with":"gatednorm","start":"paper","layers":[1],"norms":["ln2"]})",
       R"({"edit":"residual.clip","limit":20,"sites":["blocks.1.hook_resid_mid"]})",
       R"({"edit":"residual.set","scale":0.5,"dims":[11],"sites":["blocks.1.hook_resid_mid"]})",
       R"({"edit":"residual.set","value":"mean","dims":[3,11],"sites":["blocks.1.hook_resid_mid"]})"}) {
    const auto reader = rerun(folder, edit);
    const NormInput input = read_norm_input(*reader, "run0", "ln2", kLayer);
    const MatrixF before = tap(*reader, "run0", "ln2.hook_out");
    EXPECT_TRUE(norm_output(input).isApprox(before, 1e-6F));
    const MatrixF after = tap(*reader, "run0_edit0", "ln2.hook_out");
    ASSERT_FALSE(after.isApprox(before, 1e-4F)) << "the edit does something: " << edit;
    EXPECT_TRUE(previewed_norm(input, parse_what_if(edit)).isApprox(after, 2e-6F)) << edit;
  }
}

TEST(PreviewAgainstRerun, AHeadGivesWhatTheModelGives) {
  const std::string folder = test::scratch_folder();
  for (const char* edit :
       {R"({"edit":"attention.normalizer","kind":"softmax1","layers":[1],"heads":[2]})",
        R"({"edit":"attention.normalizer","kind":"sink_logit","b":2,"layers":[1],"heads":[2]})",
        R"({"edit":"attention.normalizer","kind":"clipped","gamma":-0.1,"layers":[1]})",
        R"({"edit":"attention.normalizer","kind":"entmax15","layers":[1]})",
        R"({"edit":"attention.normalizer","kind":"sigmoid","layers":[1]})",
        R"({"edit":"attention.mask_key","keys":[0],"layers":[1]})",
        R"({"edit":"attention.mask_key","keys":[0],"renormalize":false,"layers":[1]})"}) {
    const auto reader = rerun(folder, edit);
    const HeadInput input = read_head_input(*reader, "run0", kLayer, 2);
    const HeadInput after = read_head_input(*reader, "run0_edit0", kLayer, 2);
    const HeadPreview found = previewed_head(input, parse_what_if(edit));
    EXPECT_LT((found.pattern - after.pattern).cwiseAbs().maxCoeff(), 2e-6) << edit;
    for (std::size_t q = 0; q < found.null.size(); ++q)
      EXPECT_NEAR(found.null[q], after.null[q], 2e-6) << edit;
  }
}
#endif

}  // namespace
}  // namespace sinkscope
