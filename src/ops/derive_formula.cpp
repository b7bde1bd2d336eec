// SPDX-License-Identifier: Apache-2.0
//
// The derivative of a pointwise operator, found from its formula by the rules of calculus, operand by operand. A choice
// (select, min, max) gives the derivative of the side that is taken, so that what the other side would be cannot spoil it.
#include <cmath>
#include <numbers>

#include "ops/derivatives.h"

namespace hone {
namespace {

/// A number, or a value of the graph.
struct Term {
  Value* value = nullptr;
  double number = 0;
  bool is(double wanted) const { return value == nullptr && number == wanted; }
};

std::string_view operator_of(ExprKind kind) {
  switch (kind) {
    case ExprKind::negate: return "Neg";
    case ExprKind::absolute: return "Abs";
    case ExprKind::exp: return "Exp";
    case ExprKind::log: return "Log";
    case ExprKind::sqrt: return "Sqrt";
    case ExprKind::reciprocal: return "Reciprocal";
    case ExprKind::floor: return "Floor";
    case ExprKind::ceil: return "Ceil";
    case ExprKind::round_even: return "Round";
    case ExprKind::erf: return "Erf";
    case ExprKind::tanh: return "Tanh";
    case ExprKind::sin: return "Sin";
    case ExprKind::cos: return "Cos";
    case ExprKind::tan: return "Tan";
    case ExprKind::asin: return "Asin";
    case ExprKind::acos: return "Acos";
    case ExprKind::atan: return "Atan";
    case ExprKind::sinh: return "Sinh";
    case ExprKind::cosh: return "Cosh";
    case ExprKind::asinh: return "Asinh";
    case ExprKind::acosh: return "Acosh";
    case ExprKind::atanh: return "Atanh";
    case ExprKind::sign: return "Sign";
    case ExprKind::logical_not: return "Not";
    case ExprKind::is_nan: return "IsNaN";
    case ExprKind::add: return "Add";
    case ExprKind::subtract: return "Sub";
    case ExprKind::multiply: return "Mul";
    case ExprKind::divide: return "Div";
    case ExprKind::minimum: return "Min";
    case ExprKind::maximum: return "Max";
    case ExprKind::power: return "Pow";
    case ExprKind::modulo_floor: return "Mod";
    case ExprKind::modulo_trunc: return "Fmod";
    case ExprKind::less: return "Less";
    case ExprKind::less_equal: return "LessOrEqual";
    case ExprKind::equal: return "Equal";
    case ExprKind::logical_and: return "And";
    case ExprKind::logical_or: return "Or";
    case ExprKind::select: return "Where";
    case ExprKind::not_equal:
    case ExprKind::number:
    case ExprKind::input:
    case ExprKind::attribute: break;
  }
  throw InternalError(fmt::format("{} is no operator", name_of(kind)));
}

class Formula {
 public:
  explicit Formula(Backward& node)
      : node_(node),
        expr_(node.node().op->pointwise.bind(node.attrs())),
        values_(expr_.nodes().size(), nullptr),
        derivatives_(expr_.nodes().size()) {
    values_.back() = node.y();
  }

  /// The derivative by one operand.
  Term by(int input) {
    for (size_t i = 0; i < expr_.nodes().size(); ++i) derivatives_[i] = derived(expr_.nodes()[i], input, i);
    return derivatives_.back();
  }
  Term times(Term a, Term b) {
    if (a.is(0) || b.is(0)) return {};
    if (a.is(1)) return b;
    if (b.is(1)) return a;
    if (a.is(-1)) return negative(b);
    if (b.is(-1)) return negative(a);
    return both(a, b) ? Term{nullptr, a.number * b.number} : made("Mul", {a, b});
  }
  Value* value_of(Term term) { return term.value != nullptr ? term.value : node_.number(node_.y(), term.number); }

 private:
  static bool both(Term a, Term b) { return a.value == nullptr && b.value == nullptr; }
  Term made(std::string_view op, std::initializer_list<Term> operands) {
    std::vector<Value*> values;
    for (const Term& operand : operands) values.push_back(value_of(operand));
    return {node_.add(op, std::move(values))};
  }
  Term plus(Term a, Term b) {
    if (a.is(0)) return b;
    if (b.is(0)) return a;
    return both(a, b) ? Term{nullptr, a.number + b.number} : made("Add", {a, b});
  }
  Term negative(Term a) { return a.value == nullptr ? Term{nullptr, -a.number} : made("Neg", {a}); }
  Term minus(Term a, Term b) { return plus(a, negative(b)); }
  Term over(Term a, Term b) {
    if (a.is(0) || b.is(1)) return a;
    return both(a, b) ? Term{nullptr, a.number / b.number} : made("Div", {a, b});
  }
  Term square(Term a) { return times(a, a); }
  Term root(Term a) { return made("Sqrt", {a}); }
  Term chosen(Term condition, Term a, Term b) {
    return both(a, b) && a.number == b.number ? a : made("Where", {condition, a, b});
  }

  /// The value of a part of the formula.
  Term part(int index) {
    const ExprNode& part = expr_.nodes()[static_cast<size_t>(index)];
    if (part.kind == ExprKind::number) return {nullptr, part.number};
    Value*& value = values_[static_cast<size_t>(index)];
    if (value == nullptr) value = part.kind == ExprKind::input ? operand(part.input) : computed(part);
    return {value};
  }
  Value* operand(int input) {
    Value* x = node_.x(static_cast<size_t>(input));
    const DType dtype = node_.y()->type.dtype;
    if (x->type.dtype == DType::boolean || x->type.dtype == dtype) return x;
    return node_.add("Cast", {x}, {{"to", std::string(name_of(dtype))}});
  }
  Value* computed(const ExprNode& part_node) {
    std::vector<Value*> operands;
    for (const int index : part_node.operands) operands.push_back(value_of(part(index)));
    if (part_node.kind == ExprKind::not_equal) return node_.add("Not", {node_.add("Equal", std::move(operands))});
    return node_.add(operator_of(part_node.kind), std::move(operands));
  }

  Term derived(const ExprNode& f, int input, size_t index) {
    if (f.kind == ExprKind::input) return {nullptr, f.input == input ? 1.0 : 0.0};
    const auto inner = [&](size_t i) { return derivatives_[static_cast<size_t>(f.operands[i])]; };
    bool depends = false;
    for (size_t i = 0; i < f.operands.size(); ++i) depends |= !inner(i).is(0);
    if (!depends) return {};
    if (f.operands.size() == 1) return times(inner(0), unary(f, index));
    return f.operands.size() == 2 ? binary(f, inner(0), inner(1), index)
                                  : chosen(part(f.operands[0]), inner(1), inner(2));
  }

  /// The derivative of a function of one argument, at its argument.
  Term unary(const ExprNode& f, size_t index) {
    const Term x = part(f.operands[0]), one{nullptr, 1};
    const auto y = [&] { return part(static_cast<int>(index)); };
    switch (f.kind) {
      case ExprKind::negate: return {nullptr, -1};
      case ExprKind::absolute: return made("Sign", {x});
      case ExprKind::exp: return y();
      case ExprKind::log: return over(one, x);
      case ExprKind::sqrt: return over({nullptr, 0.5}, y());
      case ExprKind::reciprocal: return negative(square(y()));
      case ExprKind::erf: return times({nullptr, 2 * std::numbers::inv_sqrtpi}, made("Exp", {negative(square(x))}));
      case ExprKind::tanh: return minus(one, square(y()));
      case ExprKind::sin: return made("Cos", {x});
      case ExprKind::cos: return negative(made("Sin", {x}));
      case ExprKind::tan: return plus(one, square(y()));
      case ExprKind::asin: return over(one, root(minus(one, square(x))));
      case ExprKind::acos: return over({nullptr, -1}, root(minus(one, square(x))));
      case ExprKind::atan: return over(one, plus(one, square(x)));
      case ExprKind::sinh: return made("Cosh", {x});
      case ExprKind::cosh: return made("Sinh", {x});
      case ExprKind::asinh: return over(one, root(plus(one, square(x))));
      case ExprKind::acosh: return over(one, root(minus(square(x), one)));
      case ExprKind::atanh: return over(one, minus(one, square(x)));
      default: return {};  // steps and truth values: constant wherever they have a derivative
    }
  }

  Term binary(const ExprNode& f, Term da, Term db, size_t index) {
    const Term a = part(f.operands[0]), b = part(f.operands[1]);
    const auto y = [&] { return part(static_cast<int>(index)); };
    switch (f.kind) {
      case ExprKind::add: return plus(da, db);
      case ExprKind::subtract: return minus(da, db);
      case ExprKind::multiply: return plus(times(da, b), times(a, db));
      case ExprKind::divide: return minus(over(da, b), over(times(y(), db), b));
      case ExprKind::minimum: return chosen(made("Less", {a, b}), da, db);
      case ExprKind::maximum: return chosen(made("Greater", {a, b}), da, db);
      case ExprKind::power: return plus(power_of_base(a, b, da), power_of_exponent(a, y(), db));
      case ExprKind::modulo_floor:
      case ExprKind::modulo_trunc: return plus(da, times(db, over(minus(y(), a), b)));
      default: return {};
    }
  }
  Term power_of_base(Term base, Term exponent, Term derivative) {
    if (derivative.is(0)) return {};
    const Term less = minus(exponent, {nullptr, 1});
    return times(derivative, times(exponent, made("Pow", {base, less})));
  }
  /// Of a base that is not positive there is no derivative by the exponent, but where the power is 0 it stays so.
  Term power_of_exponent(Term base, Term power, Term derivative) {
    if (derivative.is(0)) return {};
    const Term positive = made("Greater", {base, {nullptr, 0}});
    return times(derivative, chosen(positive, times(power, made("Log", {base})), {}));
  }

  Backward& node_;
  const Expr expr_;
  std::vector<Value*> values_;
  std::vector<Term> derivatives_;
};

}  // namespace

void derive_formula(Backward& node) {
  Formula formula(node);
  for (size_t i = 0; i < node.node().inputs.size(); ++i) {
    if (!node.wants(i)) continue;
    const Term derivative = formula.by(static_cast<int>(i));
    if (derivative.is(0)) continue;
    node.give(i, node.summed_to(formula.value_of(formula.times({node.gradient()}, derivative)), node.x(i)));
  }
}

}  // namespace hone
