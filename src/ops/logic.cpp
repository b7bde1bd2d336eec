// SPDX-License-Identifier: Apache-2.0
//
// Comparisons, truth values, Where, and operations on bits.
#include "base/node_error.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

OpDef truth(std::string_view name, size_t inputs, std::string_view formula, bool commutative = false,
            std::vector<AttrSpec> attrs = {}) {
  OpDef def = formula_op(name, inputs, formula, {{name}}, std::move(attrs));
  def.result = DType::boolean;
  def.traits.commutative = commutative;
  return def;
}

void infer_bits(InferContext& context) {
  HONE_CHECK_AS(TypeError, !is_float(context.dtype(0)), "{} works on integers, not {}", context.node().op_name(),
                name_of(context.dtype(0)));
  context.set(0, context.dtype(0),
              context.inputs() == 1 ? context.shape(0) : broadcast(context.shape(0), context.shape(1)));
}

template <typename Combine>
void eval_bits(EvalContext& context, const Combine& combine) {
  const Tensor& a = context.input(0);
  const Tensor& b = context.inputs() == 1 ? a : context.input(1);
  const Dims dims = broadcast_dims(a.dims(), b.dims());
  std::vector<int64_t> result(static_cast<size_t>(elements(dims)));
  for (size_t i = 0; i < result.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    result[i] =
        combine(a.integer(broadcast_offset(dims, a.dims(), at)), b.integer(broadcast_offset(dims, b.dims(), at)));
  }
  context.set(0, write_integers(a.dtype(), dims, result));
}

void eval_bit_shift(EvalContext& context) {
  const std::string& direction = context.attrs().text("direction");
  HONE_CHECK_AS(AttributeError, direction == "LEFT" || direction == "RIGHT",
                "BitShift's direction is '{}', known are LEFT and RIGHT", direction);
  const DType dtype = context.input(0).dtype();
  const auto bits = static_cast<int64_t>(8 * size_of(dtype));
  const bool is_signed = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
  eval_bits(context, [&](int64_t a, int64_t b) -> int64_t {
    const bool beyond = b < 0 || b >= bits;
    if (direction == "LEFT") return beyond ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
    if (is_signed) return a >> (beyond ? 63 : b);  // keeps the sign
    return beyond ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) >> b);
  });
}
void eval_bitwise_and(EvalContext& context) {
  eval_bits(context, [](int64_t a, int64_t b) { return a & b; });
}
void eval_bitwise_or(EvalContext& context) {
  eval_bits(context, [](int64_t a, int64_t b) { return a | b; });
}
void eval_bitwise_xor(EvalContext& context) {
  eval_bits(context, [](int64_t a, int64_t b) { return a ^ b; });
}
void eval_bitwise_not(EvalContext& context) {
  eval_bits(context, [](int64_t a, int64_t) { return ~a; });
}

OpDef bits(std::string_view name, size_t inputs, void (*eval)(EvalContext&), std::vector<AttrSpec> attrs = {}) {
  OpDef def{.name = name};
  def.attrs = std::move(attrs);
  def.min_inputs = def.max_inputs = inputs;
  def.infer = infer_bits;
  def.eval = eval;
  def.onnx = {{name}};
  return def;
}

void eval_equal(EvalContext& context) {
  const Tensor &a = context.input(0), &b = context.input(1);
  if (a.dtype() != DType::string) return eval_pointwise(context);
  TensorBuilder builder(DType::boolean, broadcast_dims(a.dims(), b.dims()));
  for (int64_t i = 0; i < elements(builder.dims()); ++i)
    builder.data<bool>()[static_cast<size_t>(i)] =
        a.strings()[static_cast<size_t>(broadcast_offset(builder.dims(), a.dims(), i))] ==
        b.strings()[static_cast<size_t>(broadcast_offset(builder.dims(), b.dims(), i))];
  context.set(0, builder.finish());
}

OpDef equality() {
  OpDef op = truth("Equal", 2, "x == y", true);
  op.eval = eval_equal;
  return op;
}

}  // namespace

const OpDef ops::equal = equality();
const OpDef ops::less = truth("Less", 2, "x < y");
const OpDef ops::less_or_equal = truth("LessOrEqual", 2, "x <= y");
const OpDef ops::greater = truth("Greater", 2, "x > y");
const OpDef ops::greater_or_equal = truth("GreaterOrEqual", 2, "x >= y");
const OpDef ops::and_ = truth("And", 2, "x && y", true);
const OpDef ops::or_ = truth("Or", 2, "x || y", true);
const OpDef ops::xor_ = truth("Xor", 2, "x != y", true);
const OpDef ops::not_ = truth("Not", 1, "!x");
const OpDef ops::where = formula_op("Where", 3, "select(x, y, z)", {{"Where"}});
const OpDef ops::is_nan = truth("IsNaN", 1, "is_nan(x)");
const OpDef ops::is_inf = truth("IsInf", 1, "(x == inf && detect_positive) || (x == -inf && detect_negative)", false,
                                {integer_attr("detect_negative", 1), integer_attr("detect_positive", 1)});
const OpDef ops::bit_shift = bits("BitShift", 2, eval_bit_shift, {required_attr("direction", AttrKind::text)});
const OpDef ops::bitwise_and = bits("BitwiseAnd", 2, eval_bitwise_and);
const OpDef ops::bitwise_or = bits("BitwiseOr", 2, eval_bitwise_or);
const OpDef ops::bitwise_xor = bits("BitwiseXor", 2, eval_bitwise_xor);
const OpDef ops::bitwise_not = bits("BitwiseNot", 1, eval_bitwise_not);

}  // namespace hone
