// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/sink_oracles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace sinkscope::test {
namespace {

void expect_relative(double found, double expected, double tolerance, const std::string& what) {
  EXPECT_NEAR(found, expected, tolerance * std::abs(expected)) << what;
}

void expect_matrix(const MatrixD& found, const std::vector<double>& expected, std::int64_t stride,
                   double tolerance, const std::string& what) {
  ASSERT_EQ(found.size() * stride, static_cast<std::int64_t>(expected.size())) << what;
  for (Eigen::Index i = 0; i < found.size(); ++i) {
    expect_relative(found.data()[i], expected[static_cast<std::size_t>(i * stride)], tolerance,
                    what + " cell " + std::to_string(i));
  }
}

}  // namespace

void expect_lab_sinks(const SinkReport& report, const H5Reference& oracle) {
  constexpr double kTolerance = 1e-3;
  const auto& spreads = report.all.spreads;
  const auto score = std::find_if(spreads.begin(), spreads.end(), [](const SpreadTable& t) {
    return t.shape.name == "attention.first_token_score.without_row0";
  });
  ASSERT_NE(score, spreads.end());
  const std::vector<double> key0 = oracle.doubles("sink_key0");
  ASSERT_EQ(score->cells.size(), key0.size());
  EXPECT_EQ(score->shape.cols, oracle.dims("sink_key0").at(1));
  for (std::size_t i = 0; i < key0.size(); ++i) {
    expect_relative(score->cells[i].mean, key0[i], kTolerance, "key 0, cell " + std::to_string(i));
  }
  const ResidualReport& pooled = report.all.residual;
  const std::vector<double> m2 = oracle.numbers("/", "m2");
  ASSERT_EQ(pooled.m2.size(), m2.size());
  for (std::size_t s = 0; s < m2.size(); ++s) {
    expect_relative(pooled.m2[s], m2[s], kTolerance, "M2 at " + pooled.sites[s]);
  }
  ASSERT_FALSE(pooled.sinks.empty());
  EXPECT_EQ(pooled.sinks.front().dim, oracle.numbers("/", "residual_sink_dim").at(0));
}

void expect_smollm2_attention(const SinkReport& report, const H5Reference& oracle) {
  constexpr double kTolerance = 1e-3;
  const AttentionSinks& a = report.runs.at(0).attention;
  expect_matrix(a.with_row0, oracle.doubles("first_token_score_with_row0"), 1, kTolerance,
                "with row 0");
  expect_matrix(a.without_row0, oracle.doubles("first_token_score_without_row0"), 1, kTolerance,
                "without row 0");
  expect_matrix(a.gu.score, oracle.doubles("gu_score"), oracle.dims("gu_score").at(2), kTolerance,
                "Gu");
}

void expect_smollm2_residual(const SinkReport& report, const H5Reference& oracle) {
  const ResidualReport& r = report.runs.at(0).residual;
  const std::vector<double> max_abs = oracle.doubles("max_abs"),
                            median = oracle.doubles("median_abs");
  const std::vector<double> kurtosis = oracle.doubles("kurtosis_tensor");
  const std::vector<int> token = oracle.ints("max_abs_token"), dim = oracle.ints("max_abs_dim");
  ASSERT_EQ(r.sites.size(), max_abs.size());
  ASSERT_EQ(r.kurtosis.at(0).first, "pearson_tensor");
  for (std::size_t s = 0; s < max_abs.size(); ++s) {
    expect_relative(r.max_abs[s].value, max_abs[s], 1e-4, "max |h| at " + r.sites[s]);
    EXPECT_EQ(r.max_abs[s].token, token[s]) << r.sites[s];
    EXPECT_EQ(r.max_abs[s].dim, dim[s]) << r.sites[s];
    expect_relative(r.kurtosis[0].second[s], kurtosis[s], 1e-3, "kurtosis at " + r.sites[s]);
    // Element n//2 there, (n−1)//2 here: neighbors among 294,912 sorted values.
    expect_relative(r.median_abs[s], median[s], 1e-3, "median |h| at " + r.sites[s]);
  }
}

}  // namespace sinkscope::test
