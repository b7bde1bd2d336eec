// SPDX-License-Identifier: Apache-2.0
//
// Reading by index: Gather, GatherElements, GatherND, and Compress. A bad index is an error, never a foreign read.
#include <algorithm>

#include "ops/movement.h"
#include "ops/ops.h"

namespace hone {
namespace {

// ---- Gather: data[..., indices, ...] ----

void infer_gather(InferContext& context) {
  const Shape &data = context.shape(0), &indices = context.shape(1);
  const size_t axis = normalize_axis(context.attrs().integer("axis"), data.rank());
  std::vector<Dim> dims(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), data.begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.end());
  context.set(0, context.dtype(0), Shape(std::move(dims)));
  propagate_moved(context);
}

void eval_gather(EvalContext& context) {
  const Tensor &data = context.input(0), &indices = context.input(1);
  const Dims& from = data.dims();
  const size_t axis = normalize_axis(context.attrs().integer("axis"), from.size());
  std::vector<int64_t> picked;
  for (const int64_t index : indices.integers()) picked.push_back(checked_index(index, from[axis]));
  const int64_t before = elements(std::span(from).first(axis)), after = elements(std::span(from).subspan(axis + 1));
  Dims dims(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.end(), indices.dims().begin(), indices.dims().end());
  dims.insert(dims.end(), from.begin() + static_cast<std::ptrdiff_t>(axis) + 1, from.end());
  context.set(0, pick(data.reshaped({before, from[axis], after}), {iota(before), std::move(picked), iota(after)})
                     .reshaped(std::move(dims)));
}

// ---- GatherElements: result[i][j] = data[indices[i][j]][j] for axis 0 ----

void infer_gather_elements(InferContext& context) {
  HONE_CHECK(context.rank(0) == context.rank(1) && context.rank(0) >= 1, "data have rank {} but indices {}",
             context.rank(0), context.rank(1));
  normalize_axis(context.attrs().integer("axis"), context.rank(0));
  context.set(0, context.dtype(0), context.shape(1));
  propagate_moved(context);
}

void eval_gather_elements(EvalContext& context) {
  const Tensor &data = context.input(0), &indices = context.input(1);
  const Dims &from = data.dims(), strides = strides_of(from), &dims = indices.dims();
  const size_t axis = normalize_axis(context.attrs().integer("axis"), from.size());
  for (size_t i = 0; i < dims.size(); ++i)
    HONE_CHECK(i == axis || dims[i] <= from[i], "indices have size {} on axis {} but the data {}", dims[i], i, from[i]);
  std::vector<int64_t> flat = indices.integers();
  Dims at(dims.size(), 0);
  for (int64_t& number : flat) {
    number = checked_index(number, from[axis]) * strides[axis];
    for (size_t i = 0; i < dims.size(); ++i)
      if (i != axis) number += at[i] * strides[i];
    for (size_t i = dims.size(); i-- > 0;) {
      if (++at[i] < dims[i]) break;
      at[i] = 0;
    }
  }
  context.set(0, pick_flat(data, dims, flat));
}

// ---- GatherND: the last axis of indices holds whole positions ----

struct NdShape {
  size_t batch, depth;  // leading axes in common; length of a position
};

NdShape nd_shape(const Attrs& attrs, const Shape& data, const Shape& indices) {
  const int64_t batch = attrs.integer("batch_dims");
  HONE_CHECK(indices.rank() >= 1 && indices[indices.rank() - 1].is_constant(),
             "the length of a position must be known");
  const int64_t depth = indices[indices.rank() - 1].value();
  HONE_CHECK(batch >= 0 && batch < static_cast<int64_t>(std::min(data.rank(), indices.rank())),
             "batch_dims is {} for data of rank {}", batch, data.rank());
  HONE_CHECK(depth >= 1 && depth <= static_cast<int64_t>(data.rank()) - batch,
             "positions have {} entries but the data only {} axes", depth, static_cast<int64_t>(data.rank()) - batch);
  return {static_cast<size_t>(batch), static_cast<size_t>(depth)};
}

Shape gather_nd_shape(const Shape& data, const Shape& indices, const NdShape& nd) {
  std::vector<Dim> dims(indices.begin(), indices.end() - 1);
  dims.insert(dims.end(), data.begin() + static_cast<std::ptrdiff_t>(nd.batch + nd.depth), data.end());
  return Shape(std::move(dims));
}

void infer_gather_nd(InferContext& context) {
  const NdShape nd = nd_shape(context.attrs(), context.shape(0), context.shape(1));
  context.set(0, context.dtype(0), gather_nd_shape(context.shape(0), context.shape(1), nd));
  propagate_moved(context);
}

void eval_gather_nd(EvalContext& context) {
  const Tensor &data = context.input(0), &indices = context.input(1);
  const Shape data_shape(data.dims()), index_shape(indices.dims());
  const NdShape nd = nd_shape(context.attrs(), data_shape, index_shape);
  const Dims& from = data.dims();
  const Dims strides = strides_of(from);
  const int64_t run = elements(std::span(from).subspan(nd.batch + nd.depth));
  const int64_t batches = elements(std::span(from).first(nd.batch)),
                batch_size = elements(std::span(from).subspan(nd.batch));
  const int64_t positions = indices.size() / static_cast<int64_t>(nd.depth);
  for (size_t i = 0; i < nd.batch; ++i)
    HONE_CHECK(indices.dims()[i] == from[i], "batch axis {} has size {} in the data but {} in the indices", i, from[i],
               indices.dims()[i]);
  std::vector<int64_t> flat;
  for (int64_t position = 0; position < positions; ++position) {
    int64_t base = batches == 0 ? 0 : position / (positions / batches) * batch_size;
    for (size_t i = 0; i < nd.depth; ++i)
      base += checked_index(indices.integer(position * static_cast<int64_t>(nd.depth) + static_cast<int64_t>(i)),
                            from[nd.batch + i]) *
              strides[nd.batch + i];
    for (int64_t i = 0; i < run; ++i) flat.push_back(base + i);
  }
  context.set(0, pick_flat(data, gather_nd_shape(data_shape, index_shape, nd).values(), flat));
}

// ---- Compress: the elements or slices whose condition holds ----

void infer_compress(InferContext& context) {
  if (!context.attrs().has("axis")) return context.set(0, context.dtype(0), Shape{context.data_dependent(0, 0)});
  Shape shape = context.shape(0);
  const size_t axis = normalize_axis(context.attrs().integer("axis"), shape.rank());
  shape[axis] = context.data_dependent(0, axis);
  context.set(0, context.dtype(0), std::move(shape));
}

Shape most_compress(const Node& node) {
  const Shape& shape = node.input(0)->type.shape;
  const Dim asked = node.input(1)->type.shape.elements();
  if (!node.attrs.has("axis")) return {minimum(shape.elements(), asked)};
  Shape most = shape;
  const size_t axis = normalize_axis(node.attrs.integer("axis"), shape.rank());
  most[axis] = minimum(shape[axis], asked);
  return most;
}

void eval_compress(EvalContext& context) {
  const bool whole = !context.attrs().has("axis");
  const Tensor& input = context.input(0);
  const Tensor data = whole ? input.reshaped({input.size()}) : input;
  const size_t axis = whole ? 0 : normalize_axis(context.attrs().integer("axis"), data.dims().size());
  std::vector<std::vector<int64_t>> indices;
  for (const int64_t dim : data.dims()) indices.push_back(iota(dim));
  std::vector<int64_t> kept;
  const std::vector<int64_t> condition = context.input(1).integers();
  for (int64_t i = 0; i < std::min<int64_t>(data.dims()[axis], static_cast<int64_t>(condition.size())); ++i)
    if (condition[static_cast<size_t>(i)] != 0) kept.push_back(i);
  indices[axis] = std::move(kept);
  context.set(0, pick(data, indices));
}

}  // namespace

namespace ops {

const OpDef gather = {
    .name = "Gather",
    .attrs = {{"axis", AttrKind::integer, int64_t{0}, false, "axis that is indexed"}},
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_gather,
    .eval = eval_gather,
    .onnx = {{"Gather"}},
    .traits = {.few_bits = FewBits::follows, .accepts = accepts_positions},
};

const OpDef gather_elements = {
    .name = "GatherElements",
    .attrs = {{"axis", AttrKind::integer, int64_t{0}, false, "axis that is indexed"}},
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_gather_elements,
    .eval = eval_gather_elements,
    .onnx = {{"GatherElements"}},
    .traits = {.accepts = accepts_positions},
};

const OpDef gather_nd = {
    .name = "GatherND",
    .attrs = {{"batch_dims", AttrKind::integer, int64_t{0}, false, "leading axes that data and indices share"}},
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_gather_nd,
    .eval = eval_gather_nd,
    .onnx = {{"GatherND"}},
    .traits = {.accepts = accepts_whole_positions},
};

const OpDef compress = {
    .name = "Compress",
    .attrs = {{"axis", AttrKind::integer, std::nullopt, false, "axis whose slices are kept; flattened when not given"}},
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_compress,
    .eval = eval_compress,
    .onnx = {{"Compress"}},
    .traits = {.data_dependent = true, .most = most_compress},
};

}  // namespace ops
}  // namespace hone
