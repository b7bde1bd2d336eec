// SPDX-License-Identifier: Apache-2.0
//
// Expr: the scalar formula of a pointwise operator, written as text in its OpDef ("x * 0.5 * (1 + erf(x * 0.70710678))").
// One formula gives the reference meaning, the CPU code generator's input and, later, CUDA source text.
//
// Grammar: numbers, inputs x y z w (operands 0..3), attribute names (alpha, beta, …), + - * / , comparisons
// < <= > >= == !=, && || !, and the functions of kFunctions, among them select(c, a, b). Comparisons yield 0 or 1.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/attrs.h"

namespace hone {

enum class ExprKind : uint8_t {
  number,
  input,
  // unary
  negate,
  absolute,
  exp,
  log,
  sqrt,
  reciprocal,
  floor,
  ceil,
  round_even,
  erf,
  tanh,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  sign,
  logical_not,
  is_nan,
  // binary
  add,
  subtract,
  multiply,
  divide,
  minimum,
  maximum,
  power,
  modulo_floor,
  modulo_trunc,
  less,
  less_equal,
  equal,
  not_equal,
  logical_and,
  logical_or,
  // ternary
  select,
  // of a formula that is not bound; last, so that what kernels compute ends at select
  attribute,
};

struct ExprNode {
  ExprKind kind;
  double number = 0;          // number
  int input = 0;              // input
  std::string attribute;      // attribute
  std::vector<int> operands;  // indices of earlier nodes of the same Expr
};

/// A formula as a list of nodes in evaluation order; the last one is the result. Empty: not a pointwise operator.
class Expr {
 public:
  Expr() = default;
  static Expr parse(std::string_view formula);  ///< throws InternalError on a typo
  bool empty() const { return nodes_.empty(); }
  const std::vector<ExprNode>& nodes() const { return nodes_; }
  /// The formula with attribute names replaced by their numbers.
  Expr bind(const Attrs& attrs) const;
  /// The value for scalar operands, in double precision; attributes must be bound.
  double evaluate(std::span<const double> inputs) const;
  std::string text() const;
  explicit Expr(std::vector<ExprNode> nodes) : nodes_(std::move(nodes)) {}

 private:
  std::vector<ExprNode> nodes_;
};

std::string_view name_of(ExprKind kind);
/// The same operations on 64-bit integers, for integer tensors (division truncates).
int64_t evaluate_integer(const Expr& expr, std::span<const int64_t> inputs);

}  // namespace hone
