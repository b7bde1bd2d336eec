// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/norm/vector_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// The same line as a row, and as the middle one of three columns.
std::vector<std::vector<float>> softmaxes(const VectorKernels& kernels, const std::vector<float>& x) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<float> row(x.size()), columns(3 * x.size()), result(3 * x.size()), column;
  kernels.softmax_row({x.data(), row.data(), n, 1, 1});
  for (size_t i = 0; i < x.size(); ++i) columns[3 * i + 1] = x[i];
  kernels.softmax_columns({columns.data(), result.data(), n, 3, 3});
  for (size_t i = 0; i < x.size(); ++i) column.push_back(result[3 * i + 1]);
  return {row, column};
}

TEST(SoftmaxKernel, IsAccurateDownToTheSmallestFloats) {
  for (const Isa isa : check::isas())
    for (float below = 0; below < 87.3F; below += 0.0037F) {
      const float lower = 3 - below;
      const double e = std::exp(static_cast<double>(lower) - 3), total = 1 + e;
      for (const std::vector<float>& y : softmaxes(vector_kernels(isa), {3, lower})) {
        ASSERT_NEAR(y[0] * total, 1, 4e-7) << to_string(isa) << " " << below;
        ASSERT_NEAR(y[1] * total / e, 1, 4e-7) << to_string(isa) << " " << below;
      }
    }
}

TEST(SoftmaxKernel, WhatIsFarBelowOrExcludedHasNoWeight) {
  for (const Isa isa : check::isas())
    for (const size_t n : {3, 8, 17, 40, 67}) {
      std::vector<float> x(n, -kInf);
      x[0] = -1e30F, x[1] = 5, x[n - 1] = 5;
      for (const std::vector<float>& y : softmaxes(vector_kernels(isa), x))
        for (size_t i = 0; i < n; ++i) EXPECT_EQ(y[i], i == 1 || i == n - 1 ? 0.5F : 0) << to_string(isa) << " " << i;
    }
}

TEST(SoftmaxKernel, NaNSpreadsWhateverItsPayload) {
  for (const Isa isa : check::isas())
    for (const uint32_t bits : {0x7fc00000U, 0x7fc00001U, 0xffc001ffU})
      for (const size_t place : {0, 5, 18}) {
        std::vector<float> x(19, 1);
        x[place] = std::bit_cast<float>(bits);
        for (const std::vector<float>& y : softmaxes(vector_kernels(isa), x))
          for (const float v : y) EXPECT_TRUE(std::isnan(v)) << to_string(isa) << " " << bits << " at " << place;
      }
}

}  // namespace
}  // namespace hone::cpu
