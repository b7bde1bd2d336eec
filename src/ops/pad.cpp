// SPDX-License-Identifier: Apache-2.0
//
// Pad: every axis gets a list of source indices (-1: the fill value), which also covers negative pads, that is cropping.
#include <algorithm>

#include "base/checked.h"
#include "base/node_error.h"
#include "base/numbers.h"
#include "ops/movement.h"
#include "ops/ops.h"

namespace hone {
namespace {

enum class PadMode { constant, reflect, edge, wrap };

PadMode mode_of(const Attrs& attrs) {
  const std::string& mode = attrs.text("mode");
  if (mode == "constant") return PadMode::constant;
  if (mode == "reflect") return PadMode::reflect;
  if (mode == "edge") return PadMode::edge;
  HONE_CHECK_AS(AttributeError, mode == "wrap", "unknown padding mode '{}'", mode);
  return PadMode::wrap;
}

/// Pads for every axis: begin and end; axes not named get none.
template <typename Number>
std::vector<std::pair<Number, Number>> spread(std::span<const Number> pads,
                                              const std::optional<std::vector<int64_t>>& axes, size_t rank) {
  const std::vector<int64_t> named = axes ? *axes : iota(static_cast<int64_t>(rank));
  HONE_CHECK(pads.size() == 2 * named.size(), "{} pads are given for {} axes", pads.size(), named.size());
  std::vector<std::pair<Number, Number>> result(rank, {Number(0), Number(0)});
  for (size_t i = 0; i < named.size(); ++i) result[normalize_axis(named[i], rank)] = {pads[i], pads[named.size() + i]};
  return result;
}

void infer_pad(InferContext& context) {
  Shape shape = context.shape(0);
  const std::optional<SymbolicData> pads = context.symbolic(1);
  const auto axes = context.has(3) ? known_integers(context, 3) : std::nullopt;
  mode_of(context.attrs());
  if (!pads || (context.has(3) && !axes)) {
    for (size_t i = 0; i < shape.rank(); ++i) shape[i] = context.data_dependent(0, i);
  } else {
    const auto amounts = spread<Dim>(*pads, axes, shape.rank());
    for (size_t i = 0; i < shape.rank(); ++i) {
      shape[i] = shape[i] + amounts[i].first + amounts[i].second;
      HONE_CHECK(!shape[i].is_constant() || shape[i].value() >= 0, "axis {} is cropped to a negative size", i);
    }
  }
  context.set(0, context.dtype(0), std::move(shape));
}

int64_t source_index(int64_t at, int64_t size, PadMode mode) {
  if (at >= 0 && at < size) return at;
  switch (mode) {
    case PadMode::constant: return -1;
    case PadMode::edge: return std::clamp<int64_t>(at, 0, size - 1);
    case PadMode::wrap: return ((at % size) + size) % size;
    case PadMode::reflect: break;
  }
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1), phase = ((at % period) + period) % period;
  return phase < size ? phase : period - phase;
}

void eval_pad(EvalContext& context) {
  const Tensor& data = context.input(0);
  const std::vector<int64_t> pads = context.input(1).integers();
  const auto axes = context.has(3) ? std::optional(context.input(3).integers()) : std::nullopt;
  const auto amounts = spread<int64_t>(pads, axes, data.dims().size());
  const PadMode mode = mode_of(context.attrs());
  std::vector<std::vector<int64_t>> indices;
  for (size_t axis = 0; axis < amounts.size(); ++axis) {
    const int64_t size = data.dims()[axis];
    const int64_t length = checked_add(checked_add(size, amounts[axis].first), amounts[axis].second);
    HONE_CHECK(length >= 0, "axis {} is cropped to a negative size", axis);
    HONE_CHECK(size > 0 || mode == PadMode::constant || length == 0,
               "axis {} is empty and cannot be padded from its contents", axis);
    std::vector<int64_t> list;
    for (int64_t i = 0; i < length; ++i) list.push_back(source_index(i - amounts[axis].first, size, mode));
    indices.push_back(std::move(list));
  }
  if (context.has(2)) return context.set(0, pick(data, indices, &context.input(2)));
  if (data.dtype() == DType::string) {
    const Tensor empty = Tensor::of_strings({}, {""});
    return context.set(0, pick(data, indices, &empty));
  }
  TensorBuilder zero(data.dtype(), {});
  std::fill_n(zero.bytes(), size_of(data.dtype()), std::byte{0});
  const Tensor fill = zero.finish();
  context.set(0, pick(data, indices, &fill));
}

/// Up to opset 10 pads and value are attributes.
void import_pad_attrs(ImportContext& context) {
  Value* pads = operand_from_attr(context, "pads");
  HONE_CHECK_AS(AttributeError, pads != nullptr, "the attribute 'pads' is missing");
  const double number = context.attrs().has("value") ? context.attrs().real("value") : 0.0;
  context.attrs().erase("value");
  TensorBuilder value(context.input(0)->type.dtype, {});
  visit(value.dtype(), [&]<typename T>() {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>)
      value.data<T>()[0] = T(static_cast<float>(number));
    else value.data<T>()[0] = from_real<T>(number);
  });
  set_outputs(context,
              *context.add("Pad", {context.input(0), pads, context.constant(value.finish())}, context.attrs()));
}

}  // namespace

namespace ops {

const OpDef pad = {
    .name = "Pad",
    .attrs = {{"mode", AttrKind::text, std::string("constant"), false, "constant, reflect, edge or wrap"}},
    .min_inputs = 2,
    .max_inputs = 4,
    .infer = infer_pad,
    .eval = eval_pad,
    .onnx = {{"Pad", 11}, {"Pad", 1, 10, import_pad_attrs}},
    .traits = {.few_bits = FewBits::passes},
};

}  // namespace ops
}  // namespace hone
