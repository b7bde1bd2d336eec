// SPDX-License-Identifier: Apache-2.0
//
// Cheaper spellings of the same arithmetic, so that later patterns need to know fewer forms.
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

bool is_real(const Match& match) { return is_float(match.root()->output()->type.dtype); }

bool divides_by_number(const Match& match) {
  const std::optional<double> divisor = splat(match["c"]);
  return is_real(match) && divisor && *divisor != 0 && match["c"]->constant->size() == 1;
}

void multiply_by_reciprocal(const Match& match) {
  const Value* divisor = match["c"];
  const double number = 1 / *splat(divisor);
  Value* factor =
      match.graph().add_constant(tensor_from(divisor->type.dtype, divisor->constant->dims(), std::span(&number, 1)));
  match.replace(match.add(ops::mul, {match["x"], factor})->output());
}

bool one_number_each(const Match& match) {
  return is_real(match) && splat(match["a"]) && splat(match["b"]) && match["a"]->constant->size() == 1 &&
         match["b"]->constant->size() == 1;
}

void multiply_once(const Match& match) {
  Value* factor = scalar(match.graph(), match.root()->output()->type.dtype, *splat(match["a"]) * *splat(match["b"]));
  match.replace(match.add(ops::mul, {match["x"], factor})->output());
}

bool same_rank_without(const Match& match) {
  return one_number_each(match) && match["x"]->type == match.root()->output()->type;
}

const Rewrite kRewrites[] = {
    {.name = "square",
     .match = "%y = Pow(%x, 2)",
     .replace = "%y = Mul(%x, %x)",
     .when = [](const Match& m) { return m["x"]->type == m.root()->output()->type; }},
    {.name = "power_to_root", .match = "%y = Pow(%x, 0.5)", .replace = "%y = Sqrt(%x)", .when = is_real},
    {.name = "power_to_reciprocal", .match = "%y = Pow(%x, -1)", .replace = "%y = Reciprocal(%x)", .when = is_real},
    {.name = "divide_one",
     .match = "%y = Div(1, %x)",
     .replace = "%y = Reciprocal(%x)",
     .when = [](const Match& m) { return is_real(m) && m["x"]->type == m.root()->output()->type; }},
    {.name = "divide_by_number",
     .match = "%y = Div(%x, %c:const)",
     .when = divides_by_number,
     .build = multiply_by_reciprocal},
    {.name = "multiply_by_reciprocal",
     .match = "%r = Reciprocal(%z)\n%y = Mul(%x, %r)",
     .replace = "%y = Div(%x, %z)",
     .when = is_real},
    {.name = "multiply_twice",
     .match = "%m = Mul(%x, %a:const)\n%y = Mul(%m, %b:const)",
     .when = same_rank_without,
     .build = multiply_once},
    {.name = "negate",
     .match = "%y = Mul(%x, -1)",
     .replace = "%y = Neg(%x)",
     .when = [](const Match& m) { return is_real(m) && m["x"]->type == m.root()->output()->type; }},
    {.name = "add_negated", .match = "%n = Neg(%z)\n%y = Add(%x, %n)", .replace = "%y = Sub(%x, %z)"},
};

}  // namespace

std::span<const Rewrite> simplify_arithmetic() { return kRewrites; }

}  // namespace hone::passes
