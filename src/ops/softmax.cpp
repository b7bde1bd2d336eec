// SPDX-License-Identifier: Apache-2.0
//
// Softmax and its relatives along one axis. Before opset 13 they act on the operand flattened at the axis.
#include <algorithm>
#include <cmath>

#include "ops/ops.h"
#include "ops/support.h"

namespace hone::ops {
namespace {

void infer_axis(InferContext& context) {
  normalize_axis(context.attrs().integer("axis"), context.rank(0));
  require_float(context, 0);
  context.set(0, context.dtype(0), context.shape(0));
}

enum class Kind { soft, log, hard };

template <Kind K>
void eval(EvalContext& context) {
  const Tensor& x = context.input(0);
  const AxisSplit s = split_at(x.dims(), normalize_axis(context.attrs().integer("axis"), x.dims().size()));
  const FloatView in(x);
  std::vector<float> out(static_cast<size_t>(x.size()));
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) {
      const auto at = [&](int64_t k) { return (o * s.size + k) * s.inner + i; };
      int64_t top = 0;
      for (int64_t k = 1; k < s.size; ++k)
        if (in[at(k)] > in[at(top)]) top = k;
      const double peak = s.size > 0 ? in[at(top)] : 0;
      double total = 0;
      for (int64_t k = 0; k < s.size; ++k) total += std::exp(in[at(k)] - peak);
      for (int64_t k = 0; k < s.size; ++k) {
        float& y = out[static_cast<size_t>(at(k))];
        if constexpr (K == Kind::soft) y = static_cast<float>(std::exp(in[at(k)] - peak) / total);
        if constexpr (K == Kind::log) y = static_cast<float>(in[at(k)] - peak - std::log(total));
        if constexpr (K == Kind::hard) y = k == top ? 1.0f : 0.0f;
      }
    }
  context.set(0, from_floats(x.dtype(), x.dims(), out));
}

/// Flatten to two axes, apply along the second, restore.
void import_flattened(ImportContext& context) {
  Value* x = context.input(0);
  const Shape shape = x->type.shape;
  const int64_t given = context.attrs().integer_or("axis", 1);
  const std::string name(context.node_name());
  const size_t axis = given == static_cast<int64_t>(shape.rank()) ? shape.rank() : normalize_axis(given, shape.rank());
  Shape flat{Dim(1), Dim(1)};
  for (size_t i = 0; i < shape.rank(); ++i) flat[i < axis ? 0 : 1] = flat[i < axis ? 0 : 1] * shape[i];
  const auto texts = [](const Shape& s) {
    std::vector<std::string> result;
    for (const Dim& dim : s) result.push_back(dim.text());
    return result;
  };
  const bool log = context.attrs().has("$log");
  Value* flattened = context.add("View", {x}, {{"shape", texts(flat)}})->output();
  Value* result = context.add(log ? "LogSoftmax" : "Softmax", {flattened}, {{"axis", int64_t{1}}})->output();
  context.set_output(0, context.add("View", {result}, {{"shape", texts(shape)}})->output());
}

void import_flattened_log(ImportContext& context) {
  context.attrs().set("$log", int64_t{1});
  import_flattened(context);
}

AttrSpec axis() { return {"axis", AttrKind::integer, int64_t{-1}}; }

}  // namespace

const OpDef softmax{.name = "Softmax", .attrs = {axis()}, .infer = infer_axis, .eval = eval<Kind::soft>, .onnx = {{"Softmax", 13}, {"Softmax", 1, 12, import_flattened}}};
const OpDef log_softmax{.name = "LogSoftmax", .attrs = {axis()}, .infer = infer_axis, .eval = eval<Kind::log>, .onnx = {{"LogSoftmax", 13}, {"LogSoftmax", 1, 12, import_flattened_log}}};
const OpDef hardmax{.name = "Hardmax", .attrs = {axis()}, .infer = infer_axis, .eval = eval<Kind::hard>, .onnx = {{"Hardmax", 13}}};

}  // namespace hone::ops
