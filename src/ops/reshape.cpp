// SPDX-License-Identifier: Apache-2.0
//
// Operators that give the same elements another shape: Reshape, Flatten, Squeeze, Unsqueeze, Identity. Passes turn them
// into View, whose sizes are expressions.
#include <algorithm>
#include <cstring>
#include <set>

#include "base/node_error.h"
#include "ops/movement.h"
#include "ops/ops.h"

namespace hone {
namespace {

/// The elements of the result's shape, whatever they are; contents keep their order.
void propagate_in_order(InferContext& context) {
  if (std::optional<SymbolicData> data = context.symbolic(0)) context.set_symbolic(0, std::move(*data));
}

void infer_identity(InferContext& context) {
  context.set(0, context.type(0));
  propagate_in_order(context);
}
void eval_identity(EvalContext& context) { context.set(0, context.input(0)); }

// ---- Reshape ----

bool surely_positive(const Dim& dim) { return dim.is_constant() && dim.value() > 0; }

Shape reshape_target(const Shape& from, std::span<const Dim> wanted, bool allow_zero) {
  std::vector<Dim> dims;
  Dim known(1);
  std::optional<size_t> open;
  for (size_t i = 0; i < wanted.size(); ++i) {
    Dim dim = wanted[i];
    if (dim == Dim(0) && !allow_zero) {
      HONE_CHECK(i < from.rank(), "size {} is taken from an input of rank {}", i, from.rank());
      dim = from[i];
    }
    if (dim == Dim(-1)) {
      HONE_CHECK(!open, "more than one size is -1");
      open = i;
    } else {
      HONE_CHECK(!dim.is_constant() || dim.value() >= 0, "the size {} is negative", dim.text());
      known = known * dim;
    }
    dims.push_back(dim);
  }
  const Dim total = from.elements();
  if (open) {
    HONE_CHECK(!(known == Dim(0)), "the size -1 cannot be found beside a size of 0");
    HONE_CHECK(!total.is_constant() || !known.is_constant() || total.value() % known.value() == 0,
               "[{}] does not divide into groups of {}", from.text(), known.text());
    dims[*open] = floor_divide(total, known);
  } else {
    HONE_CHECK(!total.is_constant() || !known.is_constant() || total == known,
               "[{}] has {} elements but the target has {}", from.text(), total.text(), known.text());
  }
  return Shape(std::move(dims));
}

void infer_reshape(InferContext& context) {
  if (!context.ranked(1) || !context.shape(1).is_static()) return context.set(0, unranked(context.dtype(0)));
  const size_t rank = known_count(context, 1);
  if (!context.ranked(0)) {  // sizes that are numbers hold for any operand
    const std::optional<SymbolicData> wanted = context.symbolic(1);
    Shape shape;
    for (size_t i = 0; i < rank; ++i)
      shape.push_back(wanted && surely_positive((*wanted)[i]) ? (*wanted)[i] : context.data_dependent(0, i));
    return context.set(0, context.dtype(0), std::move(shape));
  }
  if (const std::optional<SymbolicData> wanted = context.symbolic(1)) {
    context.set(0, context.dtype(0),
                reshape_target(context.shape(0), *wanted, context.attrs().integer("allowzero") != 0));
    propagate_in_order(context);
    return;
  }
  Shape shape;
  for (size_t i = 0; i < rank; ++i) shape.push_back(context.data_dependent(0, i));
  context.set(0, context.dtype(0), std::move(shape));
}

void eval_reshape(EvalContext& context) {
  std::vector<Dim> wanted;
  for (const int64_t size : context.input(1).integers()) wanted.emplace_back(size);
  const Tensor& data = context.input(0);
  context.set(
      0, data.reshaped(reshape_target(Shape(data.dims()), wanted, context.attrs().integer("allowzero") != 0).values()));
}

// ---- Flatten ----

Shape flatten_target(const Shape& from, int64_t axis) {
  const size_t cut = axis == static_cast<int64_t>(from.rank()) ? from.rank() : normalize_axis(axis, from.rank());
  Dim rows(1), columns(1);
  for (size_t i = 0; i < from.rank(); ++i) (i < cut ? rows : columns) = (i < cut ? rows : columns) * from[i];
  return Shape{rows, columns};
}

void infer_flatten(InferContext& context) {
  context.set(0, context.dtype(0), flatten_target(context.shape(0), context.attrs().integer("axis")));
  propagate_in_order(context);
}
void eval_flatten(EvalContext& context) {
  const Tensor& data = context.input(0);
  context.set(0, data.reshaped(flatten_target(Shape(data.dims()), context.attrs().integer("axis")).values()));
}

// ---- Squeeze, Unsqueeze: axes as operand 1 ----

std::vector<bool> marked_axes(std::span<const int64_t> axes, size_t rank) {
  std::vector<bool> marks(rank, false);
  for (const int64_t axis : axes) {
    const size_t at = normalize_axis(axis, rank);
    HONE_CHECK(!marks[at], "axis {} is listed twice", axis);
    marks[at] = true;
  }
  return marks;
}

/// Only a run tells where the axes are; how many there are is known.
void set_open_axes(InferContext& context, size_t rank) {
  Shape shape;
  for (size_t i = 0; i < rank; ++i) shape.push_back(context.data_dependent(0, i));
  context.set(0, context.dtype(0), std::move(shape));
}

bool decided_by_data(const Dim& dim) {
  std::set<std::string> names;
  dim.collect_symbols(names);
  return std::any_of(names.begin(), names.end(), [](const std::string& name) { return name.starts_with(kDataSymbol); });
}

Shape squeezed(const Shape& from, const std::optional<std::vector<int64_t>>& axes) {
  std::vector<bool> drop(from.rank(), false);
  if (axes) drop = marked_axes(*axes, from.rank());
  else
    for (size_t i = 0; i < from.rank(); ++i) drop[i] = from[i] == Dim(1);
  Shape shape;
  for (size_t i = 0; i < from.rank(); ++i) {
    HONE_CHECK(!drop[i] || !from[i].is_constant() || from[i].value() == 1, "axis {} has size {}, not 1", i,
               from[i].text());
    if (!drop[i]) shape.push_back(from[i]);
  }
  return shape;
}

Shape unsqueezed(const Shape& from, std::span<const int64_t> axes) {
  const std::vector<bool> inserted = marked_axes(axes, from.rank() + axes.size());
  Shape shape;
  for (size_t i = 0, next = 0; i < inserted.size(); ++i) shape.push_back(inserted[i] ? Dim(1) : from[next++]);
  return shape;
}

void infer_squeeze(InferContext& context) {
  const auto axes = context.has(1) ? known_integers(context, 1) : std::nullopt;
  if (context.has(1) && !axes) {
    const size_t count = known_count(context, 1);
    HONE_CHECK(count <= context.rank(0), "{} axes are taken from rank {}", count, context.rank(0));
    return set_open_axes(context, context.rank(0) - count);
  }
  const bool open = std::any_of(context.shape(0).begin(), context.shape(0).end(),
                                [](const Dim& dim) { return decided_by_data(dim); });
  if (!axes && open) return context.set(0, unranked(context.dtype(0)));  // a run may give a size of 1, or not
  context.set(0, context.dtype(0), squeezed(context.shape(0), axes));
  propagate_in_order(context);
}
void eval_squeeze(EvalContext& context) {
  const Tensor& data = context.input(0);
  const auto axes = context.has(1) ? std::optional(context.input(1).integers()) : std::nullopt;
  context.set(0, data.reshaped(squeezed(Shape(data.dims()), axes).values()));
}

void infer_unsqueeze(InferContext& context) {
  const std::optional<std::vector<int64_t>> axes = known_integers(context, 1);
  if (!axes) return set_open_axes(context, context.rank(0) + known_count(context, 1));
  context.set(0, context.dtype(0), unsqueezed(context.shape(0), *axes));
  propagate_in_order(context);
}
void eval_unsqueeze(EvalContext& context) {
  const Tensor& data = context.input(0);
  context.set(0, data.reshaped(unsqueezed(Shape(data.dims()), context.input(1).integers()).values()));
}

/// Up to opset 12 the axes are an attribute.
void import_squeeze_attr(ImportContext& context) {
  Value* axes = operand_from_attr(context, "axes");
  set_outputs(context, *context.add("Squeeze", {context.input(0), axes}));
}
void import_unsqueeze_attr(ImportContext& context) {
  Value* axes = operand_from_attr(context, "axes");
  HONE_CHECK_AS(AttributeError, axes != nullptr, "the attribute 'axes' is missing");
  set_outputs(context, *context.add("Unsqueeze", {context.input(0), axes}));
}

}  // namespace

namespace ops {

const OpDef identity = {.name = "Identity",
                        .infer = infer_identity,
                        .eval = eval_identity,
                        .onnx = {{"Identity"}},
                        .traits = {.view = true, .any_rank = true, .few_bits = FewBits::passes}};

const OpDef reshape = {
    .name = "Reshape",
    .attrs = {{"allowzero", AttrKind::integer, int64_t{0}, false, "0: a size of 0 means the input's size"}},
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_reshape,
    .eval = eval_reshape,
    .onnx = {{"Reshape"}},
    .traits = {.view = true, .any_rank = true, .few_bits = FewBits::passes},
};

const OpDef flatten = {
    .name = "Flatten",
    .attrs = {{"axis", AttrKind::integer, int64_t{1}, false, "first axis of the columns"}},
    .infer = infer_flatten,
    .eval = eval_flatten,
    .onnx = {{"Flatten"}},
    .traits = {.view = true, .few_bits = FewBits::passes},
};

const OpDef squeeze = {
    .name = "Squeeze",
    .max_inputs = 2,
    .infer = infer_squeeze,
    .eval = eval_squeeze,
    .onnx = {{"Squeeze", 13}, {"Squeeze", 1, 12, import_squeeze_attr}},
    .traits = {.view = true, .few_bits = FewBits::passes},
};

const OpDef unsqueeze = {
    .name = "Unsqueeze",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_unsqueeze,
    .eval = eval_unsqueeze,
    .onnx = {{"Unsqueeze", 13}, {"Unsqueeze", 1, 12, import_unsqueeze_attr}},
    .traits = {.view = true, .few_bits = FewBits::passes},
};

}  // namespace ops
}  // namespace hone
