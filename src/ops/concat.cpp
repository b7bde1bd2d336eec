// SPDX-License-Identifier: Apache-2.0
//
// Concat and Split: joining and cutting along one axis. A tensor is seen as rows (the axes before) of runs (from the axis on).
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/node_error.h"
#include "ops/movement.h"
#include "ops/ops.h"

namespace hone {
namespace {

int64_t rows_before(std::span<const int64_t> dims, size_t axis) { return elements(dims.first(axis)); }

void infer_concat(InferContext& context) {
  const size_t axis = normalize_axis(context.attrs().integer("axis"), context.rank(0));
  std::vector<Dim> dims = context.shape(0).dims();
  for (size_t i = 1; i < context.inputs(); ++i) {
    HONE_CHECK_AS(TypeError, context.dtype(i) == context.dtype(0), "operand {} is {} but operand 0 is {}", i,
                  name_of(context.dtype(i)), name_of(context.dtype(0)));
    const Shape& other = context.shape(i);
    HONE_CHECK(other.rank() == dims.size(), "operand {} has rank {} but operand 0 has {}", i, other.rank(),
               dims.size());
    for (size_t d = 0; d < dims.size(); ++d) {
      if (d == axis) {
        dims[d] = dims[d] + other[d];
        continue;
      }
      HONE_CHECK(!dims[d].is_constant() || !other[d].is_constant() || dims[d] == other[d],
                 "operand {} is [{}], which does not fit operand 0 [{}] on axis {}", i, other.text(),
                 context.shape(0).text(), d);
      if (other[d].is_constant()) dims[d] = other[d];
    }
  }
  context.set(0, context.dtype(0), Shape(std::move(dims)));
  std::vector<size_t> all(context.inputs());
  std::iota(all.begin(), all.end(), size_t{0});
  propagate_moved(context, all);
}

Tensor concat_strings(const EvalContext& context, Dims dims, size_t axis) {
  std::vector<std::string> result;
  for (int64_t row = 0, rows = rows_before(dims, axis); row < rows; ++row)
    for (size_t i = 0; i < context.inputs(); ++i) {
      const Tensor& part = context.input(i);
      const int64_t run = part.size() / rows;
      const auto begin = part.strings().begin() + row * run;
      result.insert(result.end(), begin, begin + run);
    }
  return Tensor::of_strings(std::move(dims), std::move(result));
}

void eval_concat(EvalContext& context) {
  Dims dims = context.input(0).dims();
  const size_t axis = normalize_axis(context.attrs().integer("axis"), dims.size());
  for (size_t i = 1; i < context.inputs(); ++i) {
    const Dims& other = context.input(i).dims();
    for (size_t d = 0; d < dims.size(); ++d)
      HONE_CHECK(d == axis || other[d] == dims[d], "operand {} does not fit operand 0 on axis {}", i, d);
    dims[axis] += other[axis];
  }
  if (context.input(0).dtype() == DType::string) return context.set(0, concat_strings(context, std::move(dims), axis));
  const int64_t rows = rows_before(dims, axis);
  TensorBuilder builder(context.input(0).dtype(), std::move(dims));
  std::byte* out = builder.bytes();
  for (int64_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < context.inputs(); ++i) {
      const std::span<const std::byte> bytes = context.input(i).bytes();
      const size_t run = bytes.size() / static_cast<size_t>(rows);
      if (run != 0) std::memcpy(out, bytes.data() + static_cast<size_t>(row) * run, run);
      out += run;
    }
  context.set(0, builder.finish());
}

// ---- Split ----

/// Sizes of equal parts, the last one smaller when it does not come out even.
std::vector<Dim> even_parts(const Dim& size, size_t count) {
  const Dim parts(static_cast<int64_t>(count));
  const Dim part = modulo(size, parts) == Dim(0) ? floor_divide(size, parts) : ceil_divide(size, parts);
  std::vector<Dim> sizes(count, part);
  sizes.back() = size - part * Dim(static_cast<int64_t>(count) - 1);
  return sizes;
}

void check_parts(const Dim& size, std::span<const Dim> parts, size_t outputs) {
  HONE_CHECK(parts.size() == outputs, "{} sizes are given for {} outputs", parts.size(), outputs);
  Dim total;
  for (const Dim& part : parts) {
    HONE_CHECK(!part.is_constant() || part.value() >= 0, "the size {} of a part is negative", part.text());
    total = total + part;
  }
  HONE_CHECK(!total.is_constant() || !size.is_constant() || total == size,
             "the parts have {} elements together but the axis has {}", total.text(), size.text());
}

void infer_split(InferContext& context) {
  const Shape& shape = context.shape(0);
  const size_t axis = normalize_axis(context.attrs().integer("axis"), shape.rank());
  const size_t count = context.outputs();
  std::vector<Dim> parts;
  if (!context.has(1)) {
    parts = even_parts(shape[axis], count);
  } else if (const std::optional<SymbolicData> given = context.symbolic(1)) {
    parts = *given;
  } else {
    for (size_t i = 0; i < count; ++i) parts.push_back(context.data_dependent(i, axis));
  }
  check_parts(shape[axis], parts, count);
  for (size_t i = 0; i < count; ++i) {
    Shape part = shape;
    part[axis] = parts[i];
    context.set(i, context.dtype(0), std::move(part));
  }
  propagate_moved(context);
}

void eval_split(EvalContext& context) {
  const Tensor& data = context.input(0);
  const size_t axis = normalize_axis(context.attrs().integer("axis"), data.dims().size());
  std::vector<Dim> parts;
  if (context.has(1))
    for (const int64_t size : context.input(1).integers()) parts.emplace_back(size);
  else parts = even_parts(data.dims()[axis], context.outputs());
  check_parts(data.dims()[axis], parts, context.outputs());
  const Dims strides = strides_of(data.dims());
  int64_t start = 0;
  for (size_t i = 0; i < context.outputs(); ++i) {
    Dims dims = data.dims();
    dims[axis] = parts[i].value();
    context.set(i, copy_strided(data, std::move(dims), start * strides[axis], strides));
    start += parts[i].value();
  }
}

/// Opset 18 names the number of outputs again, earlier ones may give the sizes as an attribute.
void import_split(ImportContext& context) {
  Value* sizes = context.inputs() > 1 ? context.input(1) : operand_from_attr(context, "split");
  if (context.attrs().has("num_outputs")) {
    const int64_t count = context.attrs().integer("num_outputs");
    HONE_CHECK(count >= static_cast<int64_t>(context.outputs()) && count <= 1 << 16,
               "num_outputs is {} but the node has {} outputs", count, context.outputs());
    context.attrs().erase("num_outputs");
    set_outputs(context, *context.add("Split", {context.input(0), sizes}, context.attrs(), static_cast<size_t>(count)));
    return;
  }
  set_outputs(context, *context.add("Split", {context.input(0), sizes}, context.attrs(), context.outputs()));
}

bool joins_apart(const Node& node, size_t) {
  return normalize_axis(node.attrs.integer("axis"), node.output()->type.shape.rank()) > 0;
}

}  // namespace

namespace ops {

const OpDef concat = {
    .name = "Concat",
    .attrs = {{"axis", AttrKind::integer, std::nullopt, true, "axis along which the operands are joined"}},
    .min_inputs = 1,
    .max_inputs = 0xffff,
    .infer = infer_concat,
    .eval = eval_concat,
    .onnx = {{"Concat"}},
    .traits = {.hands_on = HandsOn::all, .few_bits = FewBits::passes, .entries_apart = joins_apart},
};

const OpDef split = {
    .name = "Split",
    .attrs = {{"axis", AttrKind::integer, int64_t{0}, false, "axis that is cut"}},
    .max_inputs = 2,
    .infer = infer_split,
    .eval = eval_split,
    .onnx = {{"Split", 1, kEveryLater, import_split}},
    .traits = {.hands_on = HandsOn::first, .few_bits = FewBits::passes},
};

}  // namespace ops
}  // namespace hone
