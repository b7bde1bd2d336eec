// SPDX-License-Identifier: Apache-2.0
//
// Writing by index into a copy of the data: ScatterElements and ScatterND, with reductions. Scatter is an old name of
// ScatterElements. Updates are applied in order, so the last of several to one place wins when nothing reduces.
#include <algorithm>
#include <functional>

#include "base/node_error.h"
#include "base/numbers.h"
#include "ops/movement.h"
#include "ops/ops.h"

namespace hone {
namespace {

enum class Reduction { none, add, multiply, maximum, minimum };

Reduction reduction_of(const Attrs& attrs) {
  const std::string& name = attrs.text("reduction");
  if (name == "none") return Reduction::none;
  if (name == "add") return Reduction::add;
  if (name == "mul") return Reduction::multiply;
  if (name == "max") return Reduction::maximum;
  HONE_CHECK_AS(AttributeError, name == "min", "unknown reduction '{}'", name);
  return Reduction::minimum;
}

template <typename T>
T reduce(T old, T update, Reduction reduction) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) {
    return T(reduce(static_cast<float>(old), static_cast<float>(update), reduction));
  } else {
    switch (reduction) {
      case Reduction::none: return update;
      case Reduction::add: return wrapping_add(old, update);
      case Reduction::multiply: return wrapping_multiply(old, update);
      case Reduction::maximum: return std::max(old, update);
      case Reduction::minimum: return std::min(old, update);
    }
    return update;
  }
}

/// Element `positions[i]` of the data takes update i.
Tensor scatter(const Tensor& data, const Tensor& updates, std::span<const int64_t> positions, Reduction reduction) {
  HONE_CHECK(updates.dtype() == data.dtype(), "updates are {} but the data {}", name_of(updates.dtype()),
             name_of(data.dtype()));
  if (data.dtype() == DType::string) {
    HONE_CHECK(reduction == Reduction::none, "strings cannot be reduced");
    std::vector<std::string> result = data.strings();
    for (size_t i = 0; i < positions.size(); ++i) result[static_cast<size_t>(positions[i])] = updates.strings()[i];
    return Tensor::of_strings(data.dims(), std::move(result));
  }
  TensorBuilder builder(data.dtype(), data.dims());
  visit(data.dtype(), [&]<typename T>() {
    const std::span<T> out = builder.data<T>();
    const std::span<const T> from = updates.data<T>();
    std::copy_n(data.data<T>().begin(), out.size(), out.begin());
    for (size_t i = 0; i < positions.size(); ++i) {
      T& place = out[static_cast<size_t>(positions[i])];
      place = reduce<T>(place, from[i], reduction);
    }
  });
  return builder.finish();
}

// ---- ScatterElements ----

void infer_scatter_elements(InferContext& context) {
  HONE_CHECK(context.rank(0) == context.rank(1) && context.rank(1) == context.rank(2),
             "data, indices and updates have ranks {}, {} and {}", context.rank(0), context.rank(1), context.rank(2));
  normalize_axis(context.attrs().integer("axis"), context.rank(0));
  reduction_of(context.attrs());
  context.set(0, context.dtype(0), context.shape(0));
}

void eval_scatter_elements(EvalContext& context) {
  const Tensor &data = context.input(0), &indices = context.input(1), &updates = context.input(2);
  const Dims &into = data.dims(), strides = strides_of(into), &dims = indices.dims();
  const size_t axis = normalize_axis(context.attrs().integer("axis"), into.size());
  HONE_CHECK(updates.dims() == dims, "updates [{}] and indices [{}] differ", join_dims(updates.dims(), ","),
             join_dims(dims, ","));
  for (size_t i = 0; i < dims.size(); ++i)
    HONE_CHECK(i == axis || dims[i] <= into[i], "indices have size {} on axis {} but the data {}", dims[i], i, into[i]);
  std::vector<int64_t> positions = indices.integers();
  Dims at(dims.size(), 0);
  for (int64_t& position : positions) {
    position = checked_index(position, into[axis]) * strides[axis];
    for (size_t i = 0; i < dims.size(); ++i)
      if (i != axis) position += at[i] * strides[i];
    for (size_t i = dims.size(); i-- > 0;) {
      if (++at[i] < dims[i]) break;
      at[i] = 0;
    }
  }
  context.set(0, scatter(data, updates, positions, reduction_of(context.attrs())));
}

void import_scatter(ImportContext& context) {
  set_outputs(context,
              *context.add("ScatterElements", {context.input(0), context.input(1), context.input(2)}, context.attrs()));
}

// ---- ScatterND ----

int64_t position_length(const Shape& data, const Shape& indices) {
  HONE_CHECK(indices.rank() >= 1 && indices[indices.rank() - 1].is_constant(),
             "the length of a position must be known");
  const int64_t depth = indices[indices.rank() - 1].value();
  HONE_CHECK(depth >= 0 && depth <= static_cast<int64_t>(data.rank()), "positions have {} entries but the data {} axes",
             depth, data.rank());
  return depth;
}

void infer_scatter_nd(InferContext& context) {
  const Shape& indices = context.shape(1);
  if (indices.rank() == 0 || indices[indices.rank() - 1].is_constant()) position_length(context.shape(0), indices);
  reduction_of(context.attrs());
  context.set(0, context.dtype(0), context.shape(0));
}

void eval_scatter_nd(EvalContext& context) {
  const Tensor &data = context.input(0), &indices = context.input(1), &updates = context.input(2);
  const int64_t depth = position_length(Shape(data.dims()), Shape(indices.dims()));
  const Dims& into = data.dims();
  const Dims strides = strides_of(into);
  const int64_t run = elements(std::span(into).subspan(static_cast<size_t>(depth)));
  const int64_t count = elements(std::span(indices.dims()).first(indices.dims().size() - 1));
  HONE_CHECK(updates.size() == count * run, "updates have {} elements but the indices need {}", updates.size(),
             count * run);
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < count; ++i) {
    int64_t base = 0;
    for (int64_t j = 0; j < depth; ++j)
      base +=
          checked_index(indices.integer(i * depth + j), into[static_cast<size_t>(j)]) * strides[static_cast<size_t>(j)];
    for (int64_t j = 0; j < run; ++j) positions.push_back(base + j);
  }
  context.set(0, scatter(data, updates, positions, reduction_of(context.attrs())));
}

}  // namespace

namespace ops {

const OpDef scatter_elements = {
    .name = "ScatterElements",
    .attrs = {{"axis", AttrKind::integer, int64_t{0}, false, "axis that is indexed"},
              {"reduction", AttrKind::text, std::string("none"), false, "none, add, mul, max or min"}},
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = infer_scatter_elements,
    .eval = eval_scatter_elements,
    .onnx = {{"ScatterElements"}, {"Scatter", 1, kEveryLater, import_scatter}},
    .traits = {.accepts = accepts_positions},
};

const OpDef scatter_nd = {
    .name = "ScatterND",
    .attrs = {{"reduction", AttrKind::text, std::string("none"), false, "none, add, mul, max or min"}},
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = infer_scatter_nd,
    .eval = eval_scatter_nd,
    .onnx = {{"ScatterND"}},
    .traits = {.accepts = accepts_whole_positions},
};

}  // namespace ops
}  // namespace hone
