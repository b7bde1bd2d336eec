// SPDX-License-Identifier: Apache-2.0
//
// Activations: one formula each, written so that no intermediate overflows.
#include <limits>

#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

/// With the usual alpha it is what passes know as Silu.
Value* add_swish(ImportContext& context) {
  const double alpha = context.attrs().has("alpha") ? context.attrs().real("alpha") : 1;
  return alpha == 1 ? context.add("Silu", {context.input(0)})->output()
                    : context.add("Swish", {context.input(0)}, {{"alpha", alpha}})->output();
}
void import_swish(ImportContext& context) { context.set_output(0, add_swish(context)); }
void import_swiglu(ImportContext& context) {
  context.set_output(0, context.add("Mul", {add_swish(context), context.input(1)})->output());
}

/// Gelu carries ONNX's attribute; the tanh form is an operator of its own, so that each has one formula.
void import_gelu(ImportContext& context) {
  const AttrValue* form = context.attrs().find("approximate");
  const bool tanh = form != nullptr && context.attrs().text("approximate") == "tanh";
  HONE_CHECK(tanh || form == nullptr || context.attrs().text("approximate") == "none",
             "Gelu's approximate is '{}', known are 'none' and 'tanh'", context.attrs().text("approximate"));
  context.set_output(0, context.add(tanh ? "GeluTanh" : "Gelu", {context.input(0)})->output());
}

void eval_gelu(EvalContext& context) {
  if (context.attrs().text("approximate") != "tanh") return eval_pointwise(context);
  const std::vector<double> x = read_doubles(context.input(0));
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = ops::gelu_tanh.pointwise.evaluate(std::span(&x[i], 1));
  context.set(0, write_doubles(context.input(0).dtype(), context.input(0).dims(), y));
}

double lowest_of(DType dtype) {
  if (is_float(dtype)) return -std::numeric_limits<double>::infinity();
  return visit(dtype, []<typename T>() {
    if constexpr (std::is_integral_v<T>) return static_cast<double>(std::numeric_limits<T>::lowest());
    else return 0.0;
  });
}
double highest_of(DType dtype) {
  if (is_float(dtype)) return std::numeric_limits<double>::infinity();
  return visit(dtype, []<typename T>() {
    if constexpr (std::is_integral_v<T>) return static_cast<double>(std::numeric_limits<T>::max());
    else return 0.0;
  });
}

/// A bound that is not given becomes the type's own limit, so that the formula always has three operands.
void import_clip(ImportContext& context) {
  const DType dtype = context.input(0)->type.dtype;
  const auto bound = [&](size_t operand, const char* attr, double limit) {
    if (Value* given = context.opset() >= 11 && operand < context.inputs() ? context.input(operand) : nullptr)
      return given;
    return context.constant(
        scalar_of(dtype, context.opset() < 11 && context.attrs().has(attr) ? context.attrs().real(attr) : limit));
  };
  Value* low = bound(1, "min", lowest_of(dtype));
  Value* high = bound(2, "max", highest_of(dtype));
  context.set_output(0, context.add("Clip", {context.input(0), low, high})->output());
}

/// The slope broadcasts to x, never the other way round.
void infer_p_relu(InferContext& context) {
  HONE_CHECK(context.rank(1) <= context.rank(0), "the slope's rank {} exceeds the input's rank {}", context.rank(1),
             context.rank(0));
  infer_pointwise(context);
}

OpDef gelu_op() {
  OpDef def =
      formula_op("Gelu", 1, "0.5 * x * (1 + erf(x * 0.7071067811865476))",
                 {{"Gelu", 1, kEveryLater, import_gelu}, {"Gelu", 1, kEveryLater, import_gelu, "com.microsoft"}},
                 {text_attr("approximate", "none")});
  def.eval = eval_gelu;
  return def;
}

/// Before opset 7 slopes did not broadcast: a list of them belongs to the channels.
void import_channel_slopes(ImportContext& context) {
  Value* slope = context.input(1);
  const auto rank = static_cast<int64_t>(context.input(0)->type.shape.rank());
  if (slope->type.shape.rank() == 1 && rank > 2) {
    std::vector<int64_t> axes;
    for (int64_t axis = 1; axis + 1 < rank; ++axis) axes.push_back(axis);
    slope = context.add("Unsqueeze", {slope, integer_constant(context, std::move(axes))})->output();
  }
  context.set_output(0, context.add("PRelu", {context.input(0), slope})->output());
}

OpDef p_relu_op() {
  OpDef def = formula_op("PRelu", 2, "select(x < 0, x * y, x)", {{"PRelu", 7}, {"PRelu", 1, 6, import_channel_slopes}});
  def.infer = infer_p_relu;
  return def;
}

}  // namespace

const OpDef ops::relu = formula_op("Relu", 1, "max(x, 0)", {{"Relu"}});
const OpDef ops::leaky_relu =
    formula_op("LeakyRelu", 1, "select(x < 0, alpha * x, x)", {{"LeakyRelu"}}, {real_attr("alpha", 0.01)});
const OpDef ops::p_relu = p_relu_op();
const OpDef ops::elu =
    formula_op("Elu", 1, "select(x < 0, alpha * (exp(x) - 1), x)", {{"Elu"}}, {real_attr("alpha", 1)});
const OpDef ops::selu =
    formula_op("Selu", 1, "gamma * select(x <= 0, alpha * (exp(x) - 1), x)", {{"Selu"}},
               {real_attr("alpha", 1.67326319217681884765625), real_attr("gamma", 1.05070102214813232421875)});
const OpDef ops::celu =
    formula_op("Celu", 1, "max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))", {{"Celu"}}, {real_attr("alpha", 1)});
const OpDef ops::sigmoid = formula_op("Sigmoid", 1, "1 / (1 + exp(-x))", {{"Sigmoid"}});
const OpDef ops::hard_sigmoid = formula_op("HardSigmoid", 1, "max(0, min(1, alpha * x + beta))", {{"HardSigmoid"}},
                                           {real_attr("alpha", 0.2), real_attr("beta", 0.5)});
const OpDef ops::hard_swish = formula_op("HardSwish", 1, "x * max(0, min(1, x / 6 + 0.5))", {{"HardSwish"}});
const OpDef ops::tanh = formula_op("Tanh", 1, "tanh(x)", {{"Tanh"}});
const OpDef ops::softplus = formula_op("Softplus", 1, "max(x, 0) + log(1 + exp(-abs(x)))", {{"Softplus"}});
const OpDef ops::softsign = formula_op("Softsign", 1, "x / (1 + abs(x))", {{"Softsign"}});
const OpDef ops::mish = formula_op("Mish", 1, "x * tanh(max(x, 0) + log(1 + exp(-abs(x))))", {{"Mish"}});
const OpDef ops::thresholded_relu =
    formula_op("ThresholdedRelu", 1, "select(x > alpha, x, 0)", {{"ThresholdedRelu"}}, {real_attr("alpha", 1)});
const OpDef ops::shrink = formula_op("Shrink", 1, "select(x < -lambd, x + bias, select(x > lambd, x - bias, 0))",
                                     {{"Shrink"}}, {real_attr("lambd", 0.5), real_attr("bias", 0)});
const OpDef ops::clip = formula_op("Clip", 3, "min(max(x, y), z)", {{"Clip", 1, kEveryLater, import_clip}});
const OpDef ops::gelu = gelu_op();

const OpDef ops::swish = formula_op(
    "Swish", 1, "x / (1 + exp(-alpha * x))",
    {{"Swish", 24, kEveryLater, import_swish}, {"SwiGLU", 28, kEveryLater, import_swiglu}}, {real_attr("alpha", 1)});

}  // namespace hone
