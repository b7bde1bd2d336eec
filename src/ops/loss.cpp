// SPDX-License-Identifier: Apache-2.0
//
// NegativeLogLikelihoodLoss, which of floats is a GatherElements and sums; SoftmaxCrossEntropyLoss is LogSoftmax in front of it.
#include "base/node_error.h"
#include "ops/expansions.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

void infer_loss(InferContext& context) {
  const Shape& x = context.shape(0);
  HONE_CHECK(x.rank() >= 2, "the scores of a loss have rank {} where at least 2 is needed", x.rank());
  check_rank(context, 1, x.rank() - 1, "the targets of a loss");
  if (context.has(2)) {
    check_rank(context, 2, 1, "the weights of a loss");
    check_equal(context.shape(2)[0], x[1], "weights and classes of a loss");
  }
  context.set(0, context.dtype(0), context.attrs().text("reduction") == "none" ? context.shape(1) : Shape());
}

void eval_loss(EvalContext& context) {
  const Tensor &x = context.input(0), &target = context.input(1);
  const Attrs& attrs = context.attrs();
  const std::string& reduction = attrs.text("reduction");
  const AxisView view(x.dims(), 1);
  const std::vector<double> scores = read_doubles(x),
                            weights = context.has(2) ? read_doubles(context.input(2)) : std::vector<double>();
  Dims places = x.dims();
  places.erase(places.begin() + 1);
  HONE_CHECK(target.dims() == places, "targets [{}] do not fit scores [{}]", join_dims(target.dims(), ","),
             join_dims(x.dims(), ","));
  HONE_CHECK(weights.empty() || static_cast<int64_t>(weights.size()) == view.length,
             "{} weights are given for {} classes", weights.size(), view.length);
  std::vector<double> losses;
  double sum = 0, weight_sum = 0;
  for (int64_t i = 0; i < target.size(); ++i) {
    const int64_t label = target.integer(i);
    if (attrs.has("ignore_index") && label == attrs.integer("ignore_index")) {
      losses.push_back(0);
      continue;
    }
    HONE_CHECK(label >= 0 && label < view.length, "target {} is not one of {} classes", label, view.length);
    const double weight = weights.empty() ? 1 : weights[static_cast<size_t>(label)];
    losses.push_back(-weight *
                     scores[static_cast<size_t>((i / view.inner * view.length + label) * view.inner + i % view.inner)]);
    sum += losses.back();
    weight_sum += weight;
  }
  if (reduction == "none") return context.set(0, write_doubles(x.dtype(), target.dims(), losses));
  HONE_CHECK_AS(AttributeError, reduction == "sum" || reduction == "mean", "'{}' is no reduction of a loss", reduction);
  context.set(0, scalar_of(x.dtype(), reduction == "sum" ? sum : sum / weight_sum));
}

/// The losses from operators that have kernels: scores of the targets, times weights, of which those that do not count are 0.
Value* written_out(ImportContext& context, Value* x, Value* target, Value* weights, const Attrs& attrs) {
  const auto all = [&](const char* op, Value* value) { return made(context, op, {value}, {{"keepdims", int64_t{0}}}); };
  const std::string reduction = attrs.has("reduction") ? attrs.text("reduction") : "mean";
  Value *counts = nullptr, *factor = nullptr, *axis = integer_constant(context, {1});
  if (attrs.has("ignore_index")) {
    Value* ignored = scalar_like(context, target, static_cast<double>(attrs.integer("ignore_index")));
    counts = made(context, "Not", {made(context, "Equal", {target, ignored})});
    target = made(context, "Where", {counts, target, scalar_like(context, target, 0)});
    factor = as_type(context, counts, x->type.dtype);
  }
  if (weights != nullptr) {
    Value* own = made(context, "Gather", {weights, target});
    factor = counts == nullptr ? own : made(context, "Where", {counts, own, scalar_like(context, own, 0)});
  }
  Value* scores =
      made(context, "GatherElements", {x, made(context, "Unsqueeze", {target, axis})}, {{"axis", int64_t{1}}});
  Value* losses = made(context, "Neg", {made(context, "Squeeze", {scores, axis})});
  if (counts != nullptr) losses = made(context, "Where", {counts, losses, scalar_like(context, losses, 0)});
  if (weights != nullptr) losses = made(context, "Mul", {losses, factor});
  if (reduction == "none") return losses;
  if (reduction == "mean" && factor == nullptr) return all("ReduceMean", losses);
  Value* sum = all("ReduceSum", losses);
  return reduction == "sum" ? sum : made(context, "Div", {sum, all("ReduceSum", factor)});
}

Value* loss_of(ImportContext& context, Value* x) {
  Value *target = context.input(1), *weights = given(context, 2);
  const Attrs& attrs = context.attrs();
  const bool known = !attrs.has("reduction") || attrs.text("reduction") == "none" || attrs.text("reduction") == "sum" ||
                     attrs.text("reduction") == "mean";
  const bool simple = x->type.ranked && x->type.dtype == DType::f32 && target->type.ranked && known &&
                      x->type.shape.rank() >= 2 && target->type.shape.rank() + 1 == x->type.shape.rank();
  if (simple) return written_out(context, x, target, weights, attrs);
  std::vector<Value*> inputs{x, target};
  if (weights != nullptr) inputs.push_back(weights);
  return context.add("NegativeLogLikelihoodLoss", std::move(inputs), attrs)->output();
}

void import_loss(ImportContext& context) { context.set_output(0, loss_of(context, context.input(0))); }

void import_cross_entropy(ImportContext& context) {
  Value* logs = context.add("LogSoftmax", {context.input(0)}, {{"axis", int64_t{1}}})->output();
  context.set_output(0, loss_of(context, logs));
  context.set_output(1, logs);
}

}  // namespace

const OpDef ops::negative_log_likelihood_loss{
    .name = "NegativeLogLikelihoodLoss",
    .attrs = {{"ignore_index", AttrKind::integer, std::nullopt, false, "the target that does not count"},
              text_attr("reduction", "mean")},
    .min_inputs = 2,
    .max_inputs = 3,
    .infer = infer_loss,
    .eval = eval_loss,
    .onnx = {{"NegativeLogLikelihoodLoss", 12, kEveryLater, import_loss},
             {"SoftmaxCrossEntropyLoss", 12, kEveryLater, import_cross_entropy}}};

}  // namespace hone
