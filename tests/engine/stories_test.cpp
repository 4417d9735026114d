// SPDX-License-Identifier: GPL-3.0-or-later
// Golden numbers of stories260K: a float64 forward pass, reproduced by two implementations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/captured.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

const char* const kModel = "data/models/stories260Ktok512.gguf";

TEST(Stories260K, LogitsResidualsAndAttentionAreGolden) {
  SINKSCOPE_REQUIRE_SHARED(path, kModel);
  const auto model = open_model(path);
  CaptureRequest request = request_for({1, 403, 407, 261, 378});
  request.record.maps = request.record.logits = true;
  const H5Reference file(capture(*model, request));

  const struct {
    int position, id;
    double logit;
  } logits[] = {{0, 403, 17.023515}, {0, 407, 12.418087}, {1, 407, 18.459985}, {1, 432, 10.313798},
                {2, 261, 17.136965}, {2, 272, 9.922194},  {3, 378, 18.874388}, {3, 376, 8.194146},
                {4, 432, 17.799398}, {4, 323, 9.134243}};
  const std::vector<float> full = file.floats("/run0/logits/full");  // [5, 512]
  for (const auto& [position, id, logit] : logits)
    EXPECT_NEAR(full[static_cast<std::size_t>(position * 512 + id)], logit, 1e-4);
  const double lse[] = {17.267259, 18.477497, 17.149076, 18.875112, 17.831101};
  const std::vector<float> top = file.floats("/run0/logits/top_logprob");  // [5, 10]
  const std::vector<std::int64_t> ids = file.integers("/run0/logits/top_ids");
  const int best[] = {403, 407, 261, 378, 432};
  const double best_logit[] = {17.023515, 18.459985, 17.136965, 18.874388, 17.799398};
  for (std::size_t t = 0; t < 5; ++t) {
    EXPECT_EQ(ids[t * 10], best[t]);
    EXPECT_NEAR(top[t * 10], best_logit[t] - lse[t], 1e-4);
  }

  const double norms[6][5] = {{2.249571, 2.347657, 2.869834, 1.744868, 2.735698},
                              {8.213993, 4.663688, 4.923931, 4.339222, 4.019093},
                              {10.360884, 6.841728, 7.732993, 5.848286, 5.484075},
                              {12.217556, 8.649008, 8.734934, 7.172696, 7.331512},
                              {16.026151, 13.630630, 12.702433, 9.224235, 10.627950},
                              {18.647962, 14.243957, 14.739262, 10.444046, 12.685585}};
  const std::vector<float> stream = file.floats("/run0/residual/stream");  // [11, 5, 64]
  for (std::size_t state = 0; state < 6; ++state) {
    for (std::size_t t = 0; t < 5; ++t) {
      double sum = 0;
      for (std::size_t d = 0; d < 64; ++d) {
        const double x = stream[(2 * state * 5 + t) * 64 + d];
        sum += x * x;
      }
      EXPECT_NEAR(std::sqrt(sum), norms[state][t], 2e-4) << state << ' ' << t;
    }
  }

  const std::vector<float> pattern = file.floats("/run0/attention/pattern");  // [5, 8, 5, 5]
  const struct {
    std::size_t layer, head;
    double keys[5];
  } rows[] = {{0, 0, {.025631, .016113, .045659, .309499, .603098}},
              {0, 7, {.000735, .008731, .009639, .814439, .166456}},
              {4, 0, {.595913, .225459, .026839, .121884, .029905}},
              {4, 7, {.545061, .277723, .090500, .025924, .060791}}};
  for (const auto& row : rows)
    for (std::size_t j = 0; j < 5; ++j)
      EXPECT_NEAR(pattern[((row.layer * 8 + row.head) * 5 + 4) * 5 + j], row.keys[j], 2e-6);
}

// Greedy decoding, one capture a token: "Once upon a time, there was a little girl named Lily. …"
TEST(Stories260K, GreedyTokensAreGolden) {
  SINKSCOPE_REQUIRE_SHARED(path, kModel);
  const auto model = open_model(path);
  const std::vector<int> want = {403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395,
                                 317, 426, 338, 401, 396, 267, 337, 410, 408, 419, 292, 411, 322};
  std::vector<int> ids = {1};
  for (int next : want) {
    const H5Reference file(capture(*model, request_for(ids)));
    const std::vector<std::int64_t> top = file.integers("/run0/logits/top_ids");
    ASSERT_EQ(top[(ids.size() - 1) * 10], next) << "after " << ids.size() << " tokens";
    ids.push_back(next);
  }
}

}  // namespace
}  // namespace sinkscope::test
