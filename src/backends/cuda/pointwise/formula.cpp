// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/pointwise/formula.h"

#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace hone::cuda {
namespace {

std::string unary(ExprKind kind, const std::string& x) {
  switch (kind) {
    case ExprKind::negate: return "-" + x;
    case ExprKind::absolute: return fmt::format("({0} < 0 ? -{0} : {0})", x);
    case ExprKind::reciprocal: return "1 / " + x;
    case ExprKind::round_even: return fmt::format("rint({})", x);
    case ExprKind::sign: return fmt::format("(S)(({0} > 0) - ({0} < 0))", x);
    case ExprKind::logical_not: return fmt::format("(S)({} == 0)", x);
    case ExprKind::is_nan: return fmt::format("(S)({0} != {0})", x);
    default: return fmt::format("{}({})", name_of(kind), x);
  }
}

std::string binary(ExprKind kind, const std::string& a, const std::string& b, bool integral) {
  const auto infix = [&](std::string_view op) { return fmt::format("{} {} {}", a, op, b); };
  const auto test = [&](std::string_view op) { return fmt::format("(S)({} {} {})", a, op, b); };
  switch (kind) {
    case ExprKind::add: return infix("+");
    case ExprKind::subtract: return infix("-");
    case ExprKind::multiply: return infix("*");
    case ExprKind::divide: return integral ? fmt::format("({1} == 0 ? 0 : {0} / {1})", a, b) : infix("/");
    case ExprKind::minimum: return fmt::format("lesser({}, {})", a, b);
    case ExprKind::maximum: return fmt::format("greater({}, {})", a, b);
    case ExprKind::power:
      return integral ? fmt::format("(S)pow((double){}, (double){})", a, b) : fmt::format("pow({}, {})", a, b);
    case ExprKind::modulo_floor: return fmt::format("modulo_floor({}, {})", a, b);
    case ExprKind::modulo_trunc:
      return integral ? fmt::format("({1} == 0 ? 0 : {0} % {1})", a, b) : fmt::format("fmod({}, {})", a, b);
    case ExprKind::less: return test("<");
    case ExprKind::less_equal: return test("<=");
    case ExprKind::equal: return test("==");
    case ExprKind::not_equal: return test("!=");
    case ExprKind::logical_and: return fmt::format("(S)({} != 0 && {} != 0)", a, b);
    case ExprKind::logical_or: return fmt::format("(S)({} != 0 || {} != 0)", a, b);
    default: throw InternalError(fmt::format("{} is not binary", name_of(kind)));
  }
}

std::string number_text(double value, bool integral) {
  if (integral) return fmt::format("(S){}LL", static_cast<int64_t>(value));
  if (std::isnan(value)) return "(S)(INFINITY_F - INFINITY_F)";
  if (std::isinf(value)) return value > 0 ? "(S)INFINITY_F" : "-(S)INFINITY_F";
  return fmt::format("(S){:.17e}", value);
}

}  // namespace

std::string statements(const PointwiseProgram& program, std::string_view type) {
  const bool integral = type == "i64";
  std::string text;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const PointwiseProgram::Instruction& step = program.instructions[i];
    const auto v = [&](int k) { return fmt::format("v{}", step.operands[k]); };
    std::string value;
    if (step.kind == ExprKind::number) value = number_text(step.number, integral);
    else if (step.kind == ExprKind::input) value = fmt::format("o{}", step.operands[0]);
    else if (step.kind == ExprKind::select) value = fmt::format("{} != 0 ? {} : {}", v(0), v(1), v(2));
    else if (step.kind < ExprKind::add) value = unary(step.kind, v(0));
    else value = binary(step.kind, v(0), v(1), integral);
    text += fmt::format("  const S v{} = {};\n", i, value);
  }
  return text + fmt::format("  return v{};\n", program.instructions.size() - 1);
}

}  // namespace hone::cuda
