// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stream_blocks.h"

#include <gmock/gmock.h>

#include <stdexcept>

#include "core/error.h"
#include "tests/support/fake_capture.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kSites = 3, kWidth = 1700, kTokens = 2600;  // 17.7 MB a site: two blocks

double value_at(int site, int token, int dim) { return site * 100000 + token + dim / 4096.0; }

test::FakeCapture stream_of(int n_tokens) {
  test::FakeCapture capture;
  RunInput input;
  input.token_ids.assign(static_cast<std::size_t>(n_tokens), 1);
  capture.add_run("run0", input);
  std::vector<double> values;
  for (int site = 0; site < kSites; ++site)
    for (int token = 0; token < n_tokens; ++token)
      for (int dim = 0; dim < kWidth; ++dim) values.push_back(value_at(site, token, dim));
  capture.put("run0", "residual/stream", {kSites, n_tokens, kWidth}, std::move(values));
  return capture;
}

// [slot, first, rows] of each call, after a look at the corners of its rows.
std::vector<std::vector<int>> calls_of(const CaptureReader& capture,
                                       const std::vector<StreamSite>& sites) {
  std::vector<std::vector<int>> calls;
  for_each_stream_block(capture, "run0", sites,
                        [&](std::size_t slot, int first, const ConstMapF& rows) {
                          const int n = static_cast<int>(rows.rows()), site = sites[slot].index;
                          calls.push_back({static_cast<int>(slot), first, n});
                          EXPECT_EQ(rows.cols(), kWidth);
                          EXPECT_EQ(rows(0, 1), static_cast<float>(value_at(site, first, 1)));
                          EXPECT_EQ(rows(n - 1, kWidth - 1),
                                    static_cast<float>(value_at(site, first + n - 1, kWidth - 1)));
                        });
  return calls;
}

TEST(StreamBlocks, ComeInOrderOneSiteAfterTheOther) {
  const int step = (16 << 20) / (4 * kWidth);
  EXPECT_THAT(calls_of(stream_of(kTokens), {{2, kWidth}, {0, kWidth}}),
              ElementsAre(ElementsAre(0, 0, step), ElementsAre(0, step, kTokens - step),
                          ElementsAre(1, 0, step), ElementsAre(1, step, kTokens - step)));
  EXPECT_THAT(calls_of(stream_of(5), {{1, kWidth}, {2, kWidth}}),
              ElementsAre(ElementsAre(0, 0, 5), ElementsAre(1, 0, 5)));
}

TEST(StreamBlocks, OneSiteAlone) {
  const test::FakeCapture capture = stream_of(7);
  int n_rows = 0;
  for_each_stream_block(capture, "run0", 1, kWidth, [&](int first, const ConstMapF& rows) {
    EXPECT_EQ(rows(6, 3), static_cast<float>(value_at(1, first + 6, 3)));
    n_rows += static_cast<int>(rows.rows());
  });
  EXPECT_EQ(n_rows, 7);
}

TEST(StreamBlocks, WhatAVisitThrowsArrives) {
  for (const int n_tokens : {5, 300}) {  // in this thread, in another one
    const test::FakeCapture capture = stream_of(n_tokens);
    EXPECT_THROW(for_each_stream_block(capture, "run0", {{0, kWidth}, {1, kWidth}},
                                       [](std::size_t, int, const ConstMapF&) {
                                         throw std::runtime_error("seen enough");
                                       }),
                 std::runtime_error);
  }
}

TEST(StreamBlocks, SitesThatAreNotThereAreRefused) {
  const test::FakeCapture capture = stream_of(5);
  for (const StreamSite& site : {StreamSite{3, kWidth}, {-1, kWidth}, {0, kWidth - 1}}) {
    try {
      for_each_stream_block(capture, "run0", {{0, kWidth}, site},
                            [](std::size_t, int, const ConstMapF&) {});
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("residual/stream: expected [S > "));
    }
  }
}

}  // namespace
}  // namespace sinkscope
