// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/normalize.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sinkscope {
namespace {

// The tensor twin against core's scalar reference, rows with masked keys among them.
TEST(Normalize, TwinEqualsTheScalarReference) {
  auto generator = at::detail::createCPUGenerator(11);
  const at::Tensor scores = at::randn({3, 5, 7}, generator, at::kDouble) * 4;
  const double inf = std::numeric_limits<double>::infinity();
  for (int row = 0; row < 5; ++row)
    for (int key = row + 2; key < 7; ++key) scores.select(1, row).select(-1, key).fill_(-inf);
  std::vector<Normalizer> tried;
  for (const NormalizerFacts& facts : normalizers())
    tried.push_back({.kind = facts.kind, .sink_logit = 1.5, .gamma = -.03, .zeta = 1.02});
  tried.push_back({.kind = NormalizerKind::sink_logit, .sink_logit = -inf});
  for (const Normalizer& normalizer : tried) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      const double tolerance = type == at::kDouble ? 1e-12 : 1e-6;
      const NormalizedScores got = normalize(normalizer, scores.to(type));
      // Relative, but where the kind subtracts, which leaves the rounding of what was subtracted.
      const bool subtracts = normalizer.kind == NormalizerKind::clipped ||
                             normalizer.kind == NormalizerKind::sparsemax ||
                             normalizer.kind == NormalizerKind::entmax15;
      const auto room = [&](double p) { return subtracts ? 1 : std::abs(p); };
      for (int h = 0; h < 3; ++h)
        for (int r = 0; r < 5; ++r) {
          const at::Tensor z = scores[h][r].contiguous();
          const NormalizedRow want =
              normalize(normalizer, std::span<const double>(z.data_ptr<double>(), 7));
          for (int j = 0; j < 7; ++j)
            EXPECT_NEAR(got.p[h][r][j].item<double>(), want.p[static_cast<std::size_t>(j)],
                        tolerance * room(want.p[static_cast<std::size_t>(j)]))
                << name_of(normalizer.kind) << ' ' << r << ' ' << j;
          EXPECT_NEAR(got.null_mass[h][r].item<double>(), want.null_mass, tolerance)  // a rest
              << name_of(normalizer.kind);
        }
    }
  }
}

TEST(Normalize, ARowWithoutKeysGetsNothing) {
  const at::Tensor scores = at::full({2, 3}, -std::numeric_limits<double>::infinity());
  for (const NormalizerFacts& facts : normalizers())
    EXPECT_EQ(normalize({facts.kind}, scores).p.abs().sum().item<double>(), 0) << facts.name;
}

}  // namespace
}  // namespace sinkscope
