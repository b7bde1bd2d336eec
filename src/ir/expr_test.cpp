// SPDX-License-Identifier: Apache-2.0
#include "ir/expr.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace hone {
namespace {

double value(std::string_view formula, std::vector<double> inputs, const Attrs& attrs = {}) {
  return Expr::parse(formula).bind(attrs).evaluate(inputs);
}

TEST(Expr, FollowsPrecedence) {
  EXPECT_EQ(value("1 + 2 * 3 - 4 / 2", {}), 5);
  EXPECT_EQ(value("-(x + 1) * 2", {3}), -8);
  EXPECT_EQ(value("x < y && y <= 2 || z == 5", {1, 2, 0}), 1);
  EXPECT_EQ(value("x > y", {1, 2}), 0);
  EXPECT_EQ(value("select(x >= 0, x, alpha * x)", {-2}, {{"alpha", 0.5}}), -1);
}

TEST(Expr, ComputesGelu) { EXPECT_NEAR(value("x * 0.5 * (1 + erf(x * 0.7071067811865476))", {1}), 0.8413447, 1e-7); }

TEST(Expr, PropagatesNanThroughMinAndMax) { EXPECT_TRUE(std::isnan(value("max(x, 0)", {NAN}))); }

TEST(Expr, IntegersNeverTrap) {
  const int64_t zero[] = {INT64_MIN, 0}, minus[] = {INT64_MIN, -1}, remainder[] = {-7, 3};
  EXPECT_EQ(evaluate_integer(Expr::parse("x / y"), zero), 0);
  EXPECT_EQ(evaluate_integer(Expr::parse("x / y"), minus), INT64_MIN);
  EXPECT_EQ(evaluate_integer(Expr::parse("mod_floor(x, y)"), remainder), 2);
}

TEST(Expr, TextReadsBackAsTheSameFormula) {
  const Expr expr = Expr::parse("x * tanh(log(1 + exp(x)))");
  EXPECT_EQ(Expr::parse(expr.text()).text(), expr.text());
}

TEST(Expr, RefusesTypos) {
  EXPECT_THROW(Expr::parse("x +"), Error);
  EXPECT_THROW(Expr::parse("foo(x)"), Error);
  EXPECT_THROW(Expr::parse("max(x)"), Error);
}

}  // namespace
}  // namespace hone
