// SPDX-License-Identifier: Apache-2.0
//
// Shapes as data and data from shapes: Shape, Size, Constant, ConstantOfShape, Range.
#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "base/numbers.h"
#include "ops/expansions.h"
#include "ops/movement.h"
#include "ops/ops.h"

namespace hone {
namespace {

/// The part [start, end) of the axes that Shape reports.
std::pair<size_t, size_t> shape_part(const Attrs& attrs, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  const auto clamp = [&](int64_t at) {
    return static_cast<size_t>(std::clamp<int64_t>(at < 0 ? at + signed_rank : at, 0, signed_rank));
  };
  const size_t start = clamp(attrs.integer("start")), end = attrs.has("end") ? clamp(attrs.integer("end")) : rank;
  return {start, std::max(start, end)};
}

void infer_shape(InferContext& context) {
  const Shape& shape = context.shape(0);
  const auto [start, end] = shape_part(context.attrs(), shape.rank());
  context.set(0, DType::i64, Shape{Dim(static_cast<int64_t>(end - start))});
  context.set_symbolic(0, SymbolicData(shape.begin() + static_cast<std::ptrdiff_t>(start),
                                       shape.begin() + static_cast<std::ptrdiff_t>(end)));
}
void eval_shape(EvalContext& context) {
  const Dims& dims = context.input(0).dims();
  const auto [start, end] = shape_part(context.attrs(), dims.size());
  context.set(0, Tensor::of<int64_t>({static_cast<int64_t>(end - start)}, std::span(dims).subspan(start, end - start)));
}

void infer_size(InferContext& context) {
  context.set(0, DType::i64, Shape{});
  context.set_symbolic(0, {context.shape(0).elements()});
}
void eval_size(EvalContext& context) { context.set(0, Tensor::scalar<int64_t>(context.input(0).size())); }

// ---- Constant: the rule makes a constant of the graph; nodes of it do not arise from ONNX ----

void infer_constant(InferContext& context) {
  const TensorType type = context.attrs().tensor("value").type();
  context.set(0, type.dtype, type.shape);
}
void eval_constant(EvalContext& context) { context.set(0, context.attrs().tensor("value")); }

Tensor constant_tensor(const Attrs& attrs) {
  if (attrs.has("value")) return attrs.tensor("value");
  if (attrs.has("sparse_value")) return attrs.tensor("sparse_value");  // read as a dense one
  if (attrs.has("value_float")) return Tensor::scalar(static_cast<float>(attrs.real("value_float")));
  if (attrs.has("value_int")) return Tensor::scalar(attrs.integer("value_int"));
  if (attrs.has("value_string")) return Tensor::of_strings({}, {attrs.text("value_string")});
  if (attrs.has("value_strings")) {
    const std::vector<std::string>& texts = attrs.texts("value_strings");
    return Tensor::of_strings({static_cast<int64_t>(texts.size())}, texts);
  }
  if (attrs.has("value_ints")) {
    const std::vector<int64_t>& numbers = attrs.integers("value_ints");
    return Tensor::of<int64_t>({static_cast<int64_t>(numbers.size())}, std::span<const int64_t>(numbers));
  }
  HONE_CHECK(attrs.has("value_floats"), "the node has no value");
  const std::vector<double>& numbers = attrs.reals("value_floats");
  const std::vector<float> floats(numbers.begin(), numbers.end());
  return Tensor::of<float>({static_cast<int64_t>(floats.size())}, std::span<const float>(floats));
}

void import_constant(ImportContext& context) {
  context.set_output(0, context.constant(constant_tensor(context.attrs())));
}

// ---- ConstantOfShape ----

Tensor filler(const Attrs& attrs) {
  if (!attrs.has("value")) return Tensor::scalar(0.0f);
  const Tensor& value = attrs.tensor("value");
  HONE_CHECK(value.size() == 1, "the value of ConstantOfShape has {} elements, not 1", value.size());
  return value;
}

void infer_constant_of_shape(InferContext& context) {
  const Tensor value = filler(context.attrs());
  if (!context.shape(0).is_static()) return context.set(0, unranked(value.dtype()));
  const size_t rank = known_count(context, 0);
  Shape shape;
  if (const std::optional<SymbolicData> dims = context.symbolic(0)) {
    for (const Dim& dim : *dims)
      HONE_CHECK(!dim.is_constant() || dim.value() >= 0, "the size {} is negative", dim.text());
    shape = Shape(*dims);
  } else {
    for (size_t i = 0; i < rank; ++i) shape.push_back(context.data_dependent(0, i));
  }
  const bool carries = !is_float(value.dtype()) && value.dtype() != DType::string && shape.is_static() &&
                       elements(shape.values()) <= kMaxSymbolicElements;
  if (carries)
    context.set_symbolic(0, SymbolicData(static_cast<size_t>(elements(shape.values())), Dim(value.integer(0))));
  context.set(0, value.dtype(), std::move(shape));
}
void eval_constant_of_shape(EvalContext& context) {
  const Tensor value = filler(context.attrs());
  Dims dims = context.input(0).integers();
  for (const int64_t dim : dims) HONE_CHECK(dim >= 0, "the size {} is negative", dim);
  const Dims strides(dims.size(), 0);
  context.set(0, copy_strided(value, std::move(dims), 0, strides));
}

// ---- Range ----

Dim range_count(const Dim& start, const Dim& limit, int64_t step) {
  HONE_CHECK(step != 0, "the step of Range is 0");
  const Dim count = step > 0 ? ceil_divide(limit - start, Dim(step)) : ceil_divide(start - limit, Dim(-1) * Dim(step));
  return surely_nonnegative(count) ? count : maximum(count, Dim(0));
}

int64_t real_count(const Tensor& start, const Tensor& limit, const Tensor& step) {
  if (is_integer(start.dtype())) return range_count(start.integer(0), limit.integer(0), step.integer(0)).value();
  HONE_CHECK(step.real(0) != 0, "the step of Range is 0");
  const double count = std::ceil((limit.real(0) - start.real(0)) / step.real(0));
  HONE_CHECK(count < 1e15, "Range from {} to {} by {} has no end", start.real(0), limit.real(0), step.real(0));
  return static_cast<int64_t>(std::max(0.0, count));
}

void infer_range(InferContext& context) {
  const DType dtype = context.dtype(0);
  for (size_t i = 0; i < 3; ++i)
    HONE_CHECK(context.type(i).shape.elements() == Dim(1), "operand {} of Range is not a scalar", i);
  const Tensor* numbers[] = {context.constant(0), context.constant(1), context.constant(2)};
  if (std::all_of(std::begin(numbers), std::end(numbers), [](const Tensor* t) { return t != nullptr; })) {
    const int64_t count = real_count(*numbers[0], *numbers[1], *numbers[2]);
    context.set(0, dtype, Shape{Dim(count)});
  }
  const auto start = context.symbolic(0), limit = context.symbolic(1);
  const auto step = known_integers(context, 2);
  if (!start || !limit || !step) {
    const bool constant =
        std::all_of(std::begin(numbers), std::end(numbers), [](const Tensor* t) { return t != nullptr; });
    if (!constant) context.set(0, dtype, Shape{context.data_dependent(0, 0)});
    return;
  }
  const Dim count = range_count((*start)[0], (*limit)[0], (*step)[0]);
  context.set(0, dtype, Shape{count});
  if (!count.is_constant() || count.value() > kMaxSymbolicElements) return;
  SymbolicData data;
  for (int64_t i = 0; i < count.value(); ++i) data.push_back((*start)[0] + Dim(i) * Dim((*step)[0]));
  context.set_symbolic(0, std::move(data));
}

/// The i64 that a float is written from: whole numbers, and what a Cast reads. Null: another number.
Value* whole_number(ImportContext& context, Value* value) {
  if (value == nullptr || value->type.shape.elements() != Dim(1)) return nullptr;
  if (value->is_constant()) {
    const double number = value->constant->real(0);
    constexpr double kMost = 1 << 24;  // a float holds every whole number up to it
    if (std::abs(number) > kMost || std::trunc(number) != number) return nullptr;
    return context.constant(Tensor::scalar(static_cast<int64_t>(number)));
  }
  if (value->producer == nullptr || !value->producer->is(ops::cast)) return nullptr;
  Value* from = value->producer->input(0);
  if (!is_integer(from->type.dtype) || !from->type.shape.is_static()) return nullptr;
  return as_type(context, from, DType::i64);
}

/// Sizes that reach it as floats (the grid of a detector) are counted as integers, whose number the shapes tell.
void import_range(ImportContext& context) {
  const DType dtype = context.input(0)->type.dtype;
  Value* whole[3] = {};
  if (dtype == DType::f32 || dtype == DType::f64)
    for (size_t i = 0; i < 3; ++i) whole[i] = whole_number(context, context.input(i));
  if (std::ranges::find(whole, nullptr) == std::end(whole))
    context.set_output(0, as_type(context, made(context, "Range", {whole[0], whole[1], whole[2]}), dtype));
  else context.set_output(0, made(context, "Range", {context.input(0), context.input(1), context.input(2)}));
}

void eval_range(EvalContext& context) {
  const Tensor &start = context.input(0), &step = context.input(2);
  TensorBuilder builder(start.dtype(), {real_count(start, context.input(1), step)});
  visit(start.dtype(), [&]<typename T>() {
    using Number = std::conditional_t<std::is_integral_v<T>, int64_t,
                                      std::conditional_t<std::is_same_v<T, double>, double, float>>;
    const auto number = [](const Tensor& tensor) {
      if constexpr (std::is_integral_v<T>) return tensor.integer(0);
      else return static_cast<Number>(tensor.real(0));
    };
    const Number first = number(start), by = number(step);
    int64_t i = 0;
    for (T& out : builder.data<T>())
      out = static_cast<T>(wrapping_add(first, wrapping_multiply(static_cast<Number>(i++), by)));
  });
  context.set(0, builder.finish());
}

}  // namespace

namespace ops {

const OpDef shape = {
    .name = "Shape",
    .attrs = {{"start", AttrKind::integer, int64_t{0}, false, "first axis"},
              {"end", AttrKind::integer, std::nullopt, false, "behind the last axis"}},
    .infer = infer_shape,
    .eval = eval_shape,
    .onnx = {{"Shape"}},
};

const OpDef size = {.name = "Size", .infer = infer_size, .eval = eval_size, .onnx = {{"Size"}}};

const OpDef constant = {
    .name = "Constant",
    .attrs = {{"value", AttrKind::tensor, std::nullopt, true, "the contents"}},
    .min_inputs = 0,
    .max_inputs = 0,
    .infer = infer_constant,
    .eval = eval_constant,
    .onnx = {{"Constant", 1, kEveryLater, import_constant}},
};

const OpDef constant_of_shape = {
    .name = "ConstantOfShape",
    .attrs = {{"value", AttrKind::tensor, std::nullopt, false, "one element; f32 zero when not given"}},
    .infer = infer_constant_of_shape,
    .eval = eval_constant_of_shape,
    .onnx = {{"ConstantOfShape"}},
};

const OpDef range = {
    .name = "Range",
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = infer_range,
    .eval = eval_range,
    .onnx = {{"Range", 1, kEveryLater, import_range}},
};

}  // namespace ops
}  // namespace hone
