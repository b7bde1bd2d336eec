// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic: one formula each. ONNX's variadic Sum, Max, Min and Mean become chains of two-operand nodes.
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

/// Before opset 7 the second operand was aligned by `axis` and only when `broadcast` was set.
template <const OpDef& op>
void import_aligned(ImportContext& context) {
  Value* y = context.input(1);
  const int64_t axis = context.attrs().integer_or("axis", -1);
  if (context.attrs().integer_or("broadcast", 0) != 0 && axis >= 0) {
    const auto rank_x = static_cast<int64_t>(context.input(0)->type.shape.rank()),
               rank_y = static_cast<int64_t>(y->type.shape.rank());
    std::vector<int64_t> axes;
    for (int64_t i = rank_y; i < rank_x - axis; ++i) axes.push_back(i);
    if (!axes.empty())
      y = context
              .add("Unsqueeze", {y, context.constant(Tensor::of<int64_t>({static_cast<int64_t>(axes.size())}, axes))})
              ->output();
  }
  context.set_output(0, context.add(op.name, {context.input(0), y})->output());
}

Value* import_chain(ImportContext& context, std::string_view op) {
  HONE_CHECK(context.inputs() > 0, "the node has no operands");
  Value* result = context.input(0);
  if (context.inputs() == 1) return context.add("Identity", {result})->output();
  for (size_t i = 1; i < context.inputs(); ++i) result = context.add(op, {result, context.input(i)})->output();
  return result;
}

template <const OpDef& op>
void import_variadic(ImportContext& context) {
  context.set_output(0, import_chain(context, op.name));
}

void import_mean(ImportContext& context) {
  Value* total = import_chain(context, "Add");
  Value* count = context.constant(scalar_of(total->type.dtype, static_cast<double>(context.inputs())));
  context.set_output(0, context.add("Div", {total, count})->output());
}

void import_mod(ImportContext& context) {
  const bool truncate = context.attrs().integer_or("fmod", 0) != 0;
  context.set_output(0, context.add(truncate ? "Fmod" : "Mod", {context.input(0), context.input(1)})->output());
}

OpDef unary(std::string_view name, std::string_view formula) { return formula_op(name, 1, formula, {{name}}); }

template <const OpDef& op>
OpDef binary(std::string_view name, std::string_view formula, bool commutative) {
  OpDef def = formula_op(name, 2, formula, {{name, 7}, {name, 1, 6, import_aligned<op>}});
  def.traits.commutative = commutative;
  return def;
}

OpDef commutative(OpDef def) {
  def.traits.commutative = true;
  return def;
}

/// Not to be trusted to few bits: exponentials of large numbers, positions.
OpDef delicate(OpDef def) {
  def.traits.few_bits = FewBits::stays;
  return def;
}

}  // namespace

const OpDef ops::add = [] {
  OpDef def = binary<ops::add>("Add", "x + y", true);
  def.onnx.push_back({"Sum", 1, kEveryLater, import_variadic<ops::add>});
  def.onnx.push_back({"Mean", 1, kEveryLater, import_mean});
  return def;
}();
const OpDef ops::sub = binary<ops::sub>("Sub", "x - y", false);
const OpDef ops::mul = binary<ops::mul>("Mul", "x * y", true);
const OpDef ops::div = binary<ops::div>("Div", "x / y", false);
const OpDef ops::pow = delicate(binary<ops::pow>("Pow", "pow(x, y)", false));
const OpDef ops::mod = delicate(formula_op("Mod", 2, "mod_floor(x, y)", {{"Mod", 1, kEveryLater, import_mod}}));
const OpDef ops::fmod = delicate(formula_op("Fmod", 2, "mod_trunc(x, y)", {}));
const OpDef ops::max =
    commutative(formula_op("Max", 2, "max(x, y)", {{"Max", 1, kEveryLater, import_variadic<ops::max>}}));
const OpDef ops::min =
    commutative(formula_op("Min", 2, "min(x, y)", {{"Min", 1, kEveryLater, import_variadic<ops::min>}}));

const OpDef ops::neg = unary("Neg", "-x");
const OpDef ops::abs = unary("Abs", "abs(x)");
const OpDef ops::exp = delicate(unary("Exp", "exp(x)"));
const OpDef ops::log = delicate(unary("Log", "log(x)"));
const OpDef ops::sqrt = delicate(unary("Sqrt", "sqrt(x)"));
const OpDef ops::reciprocal = delicate(unary("Reciprocal", "reciprocal(x)"));
const OpDef ops::floor = unary("Floor", "floor(x)");
const OpDef ops::ceil = unary("Ceil", "ceil(x)");
const OpDef ops::round = unary("Round", "round_even(x)");
const OpDef ops::sign = unary("Sign", "sign(x)");
const OpDef ops::erf = unary("Erf", "erf(x)");
const OpDef ops::sin = delicate(unary("Sin", "sin(x)"));
const OpDef ops::cos = delicate(unary("Cos", "cos(x)"));
const OpDef ops::tan = unary("Tan", "tan(x)");
const OpDef ops::asin = unary("Asin", "asin(x)");
const OpDef ops::acos = unary("Acos", "acos(x)");
const OpDef ops::atan = unary("Atan", "atan(x)");
const OpDef ops::sinh = unary("Sinh", "sinh(x)");
const OpDef ops::cosh = unary("Cosh", "cosh(x)");
const OpDef ops::asinh = unary("Asinh", "asinh(x)");
const OpDef ops::acosh = unary("Acosh", "acosh(x)");
const OpDef ops::atanh = unary("Atanh", "atanh(x)");

}  // namespace hone
