// SPDX-License-Identifier: Apache-2.0
//
// Slice. Starts and ends are clamped to the axis, which for symbolic sizes gives min/max expressions; the common cases
// ("all from 1 on", "all but the last", "the first N") come out without them.
#include <algorithm>

#include "base/node_error.h"
#include "ops/movement.h"
#include "ops/ops.h"

namespace hone {
namespace {

/// Exporters mean "to the end" by anything from 2^31-1 on.
constexpr int64_t kFar = 0x7fffffff;

/// An index into an axis of `size`, clamped to 0..size, for a positive step.
Dim clamped(const Dim& at, const Dim& size) {
  if (at.is_constant()) {
    const int64_t number = at.value();
    if (number >= kFar) return size;
    if (number <= -kFar) return Dim(0);
    if (size.is_constant())
      return Dim(std::clamp<int64_t>(number < 0 ? number + size.value() : number, 0, size.value()));
    if (number == 0 || number == 1) return at;  // sizes are positive
    if (number > 0) return minimum(at, size);
    const Dim from_end = size + at;
    return number == -1 && surely_nonnegative(size) ? from_end : maximum(from_end, Dim(0));
  }
  return minimum(surely_nonnegative(at) ? at : maximum(at, Dim(0)), size);
}

std::optional<Dim> forward_length(const Dim& start, const Dim& end, int64_t step, const Dim& size) {
  const Dim from = clamped(start, size), to = clamped(end, size);
  Dim length = to - from;
  const bool certain = from == Dim(0) || to == size || surely_nonnegative(length);
  if (!certain) length = maximum(length, Dim(0));
  return ceil_divide(length, Dim(step));
}

std::optional<Dim> backward_length(const Dim& start, const Dim& end, int64_t step, const Dim& size) {
  if (!start.is_constant() || !end.is_constant()) return std::nullopt;
  const auto resolve = [&](int64_t at) { return at < 0 ? at + size.value() : at; };
  if (size.is_constant()) {
    const int64_t last = size.value() - 1;
    const int64_t from = std::clamp<int64_t>(start.value() <= -kFar ? -1 : resolve(start.value()), -1, last);
    const int64_t to = std::clamp<int64_t>(end.value() <= -kFar ? -1 : resolve(end.value()), -1, last);
    return Dim(std::max<int64_t>(0, (from - to - step - 1) / -step));
  }
  const bool whole = (start.value() == -1 || start.value() >= kFar) && end.value() <= -kFar;
  return whole ? std::optional(ceil_divide(size, Dim(-step))) : std::nullopt;
}

std::vector<int64_t> slice_axes(const std::optional<std::vector<int64_t>>& given, size_t count, size_t rank) {
  std::vector<int64_t> axes = given ? *given : iota(static_cast<int64_t>(count));
  HONE_CHECK(axes.size() == count, "{} axes are given for {} starts", axes.size(), count);
  std::vector<bool> seen(rank, false);
  for (int64_t& axis : axes) {
    axis = static_cast<int64_t>(normalize_axis(axis, rank));
    HONE_CHECK(!seen[static_cast<size_t>(axis)], "axis {} is sliced twice", axis);
    seen[static_cast<size_t>(axis)] = true;
  }
  return axes;
}

void infer_slice(InferContext& context) {
  Shape shape = context.shape(0);
  const auto left_to_the_data = [&] {
    for (size_t i = 0; i < shape.rank(); ++i) shape[i] = context.data_dependent(0, i);
    context.set(0, context.dtype(0), std::move(shape));
  };
  if (const Shape& starts = context.shape(1); starts.rank() == 1 && !starts[0].is_constant()) return left_to_the_data();
  const size_t count = known_count(context, 1);
  HONE_CHECK(known_count(context, 2) == count, "{} ends are given for {} starts", known_count(context, 2), count);
  const std::optional<std::vector<int64_t>> given = context.has(3) ? known_integers(context, 3) : std::nullopt;
  const auto starts = context.symbolic(1), ends = context.symbolic(2);
  const auto steps = context.has(4) ? known_integers(context, 4) : std::optional(std::vector<int64_t>(count, 1));
  if (context.has(3) && !given) return left_to_the_data();  // which axes: unknown
  const std::vector<int64_t> axes = slice_axes(given, count, shape.rank());
  HONE_CHECK(!steps || steps->size() == count, "{} steps are given for {} starts", steps->size(), count);
  for (size_t i = 0; i < count; ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    HONE_CHECK(!steps || (*steps)[i] != 0, "the step of axis {} is 0", axis);
    std::optional<Dim> length;
    if (starts && ends && steps) {
      const int64_t step = std::clamp<int64_t>((*steps)[i], -kFar, kFar);
      length = step > 0 ? forward_length((*starts)[i], (*ends)[i], step, shape[axis])
                        : backward_length((*starts)[i], (*ends)[i], step, shape[axis]);
    }
    shape[axis] = length ? *length : context.data_dependent(0, axis);
  }
  context.set(0, context.dtype(0), std::move(shape));
  propagate_moved(context);
}

void eval_slice(EvalContext& context) {
  const Tensor& data = context.input(0);
  const std::vector<int64_t> starts = context.input(1).integers(), ends = context.input(2).integers();
  const auto given = context.has(3) ? std::optional(context.input(3).integers()) : std::nullopt;
  const std::vector<int64_t> steps =
      context.has(4) ? context.input(4).integers() : std::vector<int64_t>(starts.size(), 1);
  const std::vector<int64_t> axes = slice_axes(given, starts.size(), data.dims().size());
  HONE_CHECK(ends.size() == starts.size() && steps.size() == starts.size(), "starts, ends and steps differ in length");
  Dims dims = data.dims(), strides = strides_of(dims);
  int64_t base = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    const int64_t size = dims[axis], step = std::clamp<int64_t>(steps[i], -kFar, kFar), low = step > 0 ? 0 : -1,
                  high = step > 0 ? size : size - 1;
    HONE_CHECK(step != 0, "the step of axis {} is 0", axis);
    const auto resolve = [&](int64_t at) {
      return at <= -(int64_t{1} << 62) ? low : std::clamp<int64_t>(at < 0 ? at + size : at, low, high);
    };
    const int64_t from = resolve(starts[i]), to = resolve(ends[i]);
    dims[axis] = std::max<int64_t>(0, step > 0 ? (to - from + step - 1) / step : (from - to - step - 1) / -step);
    base += std::max<int64_t>(from, 0) * strides[axis];
    strides[axis] *= step;
  }
  context.set(0, copy_strided(data, std::move(dims), base, strides));
}

/// Up to opset 9 everything is an attribute.
void import_slice_attrs(ImportContext& context) {
  Value* starts = operand_from_attr(context, "starts");
  Value* ends = operand_from_attr(context, "ends");
  Value* axes = operand_from_attr(context, "axes");
  HONE_CHECK_AS(AttributeError, starts != nullptr && ends != nullptr, "the attributes 'starts' and 'ends' are missing");
  set_outputs(context, *context.add("Slice", {context.input(0), starts, ends, axes}));
}

}  // namespace

namespace ops {

const OpDef slice = {
    .name = "Slice",
    .min_inputs = 3,
    .max_inputs = 5,
    .infer = infer_slice,
    .eval = eval_slice,
    .onnx = {{"Slice", 10}, {"Slice", 1, 9, import_slice_attrs}},
    .traits = {.hands_on = HandsOn::first, .few_bits = FewBits::passes},
};

}  // namespace ops
}  // namespace hone
