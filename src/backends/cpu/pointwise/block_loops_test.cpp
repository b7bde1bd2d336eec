// SPDX-License-Identifier: Apache-2.0
//
// The loops of each domain on numbers at the ends of their types, against the meaning of the formulas.
#include "backends/cpu/pointwise/block_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/support/tactic_testing.h"
#include "ir/expr.h"

namespace hone::cpu {
namespace {

Expr call(ExprKind kind) {
  std::vector<ExprNode> nodes;
  for (int i = 0; i < 3; ++i)
    nodes.push_back({.kind = ExprKind::input, .number = 0, .input = i, .attribute = {}, .operands = {}});
  nodes.push_back({.kind = kind, .number = 0, .input = 0, .attribute = {}, .operands = {0, 1, 2}});
  return Expr(std::move(nodes));
}

/// Every pair of these numbers.
template <typename T>
std::pair<std::vector<T>, std::vector<T>> pairs(const std::vector<T>& numbers) {
  std::pair<std::vector<T>, std::vector<T>> result;
  for (const T a : numbers)
    for (const T b : numbers) result.first.push_back(a), result.second.push_back(b);
  return result;
}

template <typename T>
void expect_integers(Domain domain) {
  const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  const auto [a, b] = pairs<T>({low, T(low + 1), -12, -7, -2, -1, 0, 1, 2, 3, 7, 12, 1 << 20, T(high - 1), high});
  for (const ExprKind kind : {ExprKind::add, ExprKind::subtract, ExprKind::multiply, ExprKind::divide,
                              ExprKind::modulo_floor, ExprKind::modulo_trunc, ExprKind::minimum, ExprKind::maximum,
                              ExprKind::less, ExprKind::negate, ExprKind::absolute, ExprKind::sign}) {
    const Expr meaning = call(kind);
    for (const Isa isa : check::isas()) {
      const BlockLoop loop = block_loop(kind, domain, isa);
      ASSERT_NE(loop, nullptr) << name_of(kind);
      std::vector<T> found(a.size());
      loop(a.data(), b.data(), nullptr, found.data(), static_cast<int64_t>(a.size()));
      for (size_t i = 0; i < a.size(); ++i) {
        const int64_t operands[] = {a[i], b[i], 0};
        ASSERT_EQ(found[i], static_cast<T>(evaluate_integer(meaning, operands)))
            << name_of(kind) << "(" << a[i] << ", " << b[i] << ") " << to_string(isa);
      }
    }
  }
}

TEST(BlockLoops, CalculateWithIntegersAsTheMeaningDoesUpToTheEndsOfTheirTypes) {
  expect_integers<int32_t>(Domain::i32);
  expect_integers<int64_t>(Domain::i64);
}

void expect_floats(ExprKind kind, const std::vector<float>& a, const std::vector<float>& b, double tolerance) {
  const Expr meaning = call(kind);
  for (const Isa isa : check::isas()) {
    const BlockLoop loop = block_loop(kind, Domain::f32, isa);
    ASSERT_NE(loop, nullptr) << name_of(kind);
    std::vector<float> found(a.size());
    loop(a.data(), b.data(), nullptr, found.data(), static_cast<int64_t>(a.size()));
    for (size_t i = 0; i < a.size(); ++i) {
      const double operands[] = {a[i], b[i], 0};
      const auto wanted = static_cast<float>(meaning.evaluate(operands));
      const bool same = std::isnan(wanted) ? std::isnan(found[i]) : wanted == found[i];
      EXPECT_TRUE(same || std::fabs(found[i] - wanted) <= tolerance * std::fabs(wanted) + 1e-7)
          << name_of(kind) << "(" << a[i] << ", " << b[i] << ") is " << found[i] << ", not " << wanted << " "
          << to_string(isa);
    }
  }
}

TEST(BlockLoops, ElementaryFunctionsAreGoodForEveryFloat) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> a{0.0F,   -0.0F,  infinity, -infinity, std::nanf(""), 1e30F,
                       -1e30F, 1e-40F, 88.5F,    -88.5F,    1.0F,          -1.0F};
  for (int i = -64; i < 64; ++i) a.push_back(static_cast<float>(i) * 0.03F);
  for (int i = 0; i < 48; ++i) a.push_back(static_cast<float>(i) * 371.3F);
  for (const ExprKind kind :
       {ExprKind::sin, ExprKind::cos, ExprKind::tan, ExprKind::asin, ExprKind::acos, ExprKind::atan, ExprKind::sinh,
        ExprKind::cosh, ExprKind::asinh, ExprKind::acosh, ExprKind::atanh, ExprKind::exp, ExprKind::log, ExprKind::tanh,
        ExprKind::erf, ExprKind::floor, ExprKind::ceil, ExprKind::round_even, ExprKind::sign})
    expect_floats(kind, a, a, 4e-6);
}

TEST(BlockLoops, PowersAndRestsOfFloats) {
  const auto [a, b] = pairs<float>({-3.5F, -2, -1, -0.25F, 0, 0.25F, 1, 2, 2.5F, 7, 1e10F, 3e38F, std::nanf("")});
  for (const ExprKind kind : {ExprKind::power, ExprKind::modulo_trunc, ExprKind::modulo_floor}) {
    expect_floats(kind, a, b, 2e-6);
    for (const float other : {2.0F, 2.5F, 0.3F}) {  // all alike, and nothing special among them
      std::vector<float> base, alike(64, other);
      for (int i = 0; i < 64; ++i) base.push_back(0.1F + static_cast<float>(i) * 0.37F);
      expect_floats(kind, base, alike, 2e-6);
    }
  }
}

}  // namespace
}  // namespace hone::cpu
