// SPDX-License-Identifier: Apache-2.0
//
// Operators that look at values to choose or encode them: OneHot, TopK, NonZero, Unique.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/node_error.h"
#include "ops/movement.h"
#include "ops/ops.h"

namespace hone {
namespace {

Tensor integer_tensor(Dims dims, const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>(std::move(dims), std::span<const int64_t>(values));
}

// ---- OneHot ----

size_t one_hot_axis(const Attrs& attrs, size_t rank) { return normalize_axis(attrs.integer("axis"), rank + 1); }

void infer_one_hot(InferContext& context) {
  check_one(context, 1, "the depth of OneHot");
  std::vector<Dim> dims = context.shape(0).dims();
  const std::optional<SymbolicData> depth = context.symbolic(1);
  const size_t axis = one_hot_axis(context.attrs(), dims.size());
  HONE_CHECK(context.shape(1).elements() == Dim(1), "the depth is not one number");
  Dim size = context.data_dependent(0, axis);
  if (depth) size = (*depth)[0];
  else if (const Tensor* number = context.constant(1)) size = Dim(number->integer(0));
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), size);
  context.set(0, context.dtype(2), Shape(std::move(dims)));
}

void eval_one_hot(EvalContext& context) {
  const Tensor &indices = context.input(0), &values = context.input(2);
  const int64_t depth = context.input(1).integer(0);
  HONE_CHECK(depth >= 0, "the depth {} is negative", depth);
  HONE_CHECK(values.size() == 2, "values must be [off, on]");
  Dims dims = indices.dims();
  const size_t axis = one_hot_axis(context.attrs(), dims.size());
  const int64_t before = elements(std::span(dims).first(axis)), after = elements(std::span(dims).subspan(axis));
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  std::vector<int64_t> chosen(static_cast<size_t>(elements(dims)), 0);  // 0: off, 1: on
  for (int64_t row = 0; row < before; ++row)
    for (int64_t column = 0; column < after; ++column) {
      int64_t index = indices.integer(row * after + column);
      if (index < 0) index += depth;
      if (index >= 0 && index < depth)
        chosen[static_cast<size_t>((row * depth + index) * after + column)] = 1;  // outside: all off
    }
  context.set(0, pick_flat(values, std::move(dims), chosen));
}

// ---- TopK ----

void infer_top_k(InferContext& context) {
  check_one(context, 1, "k of TopK");
  Shape shape = context.shape(0);
  const size_t axis = normalize_axis(context.attrs().integer("axis"), shape.rank());
  const std::optional<SymbolicData> k = context.symbolic(1);
  HONE_CHECK(!k || k->size() == 1, "k is not one number");
  HONE_CHECK(!k || !(*k)[0].is_constant() || !shape[axis].is_constant() || (*k)[0].value() <= shape[axis].value(),
             "k is {} but the axis has {} elements", (*k)[0].text(), shape[axis].text());
  shape[axis] = k ? (*k)[0] : context.data_dependent(0, axis);
  context.set(1, DType::i64, shape);
  context.set(0, context.dtype(0), std::move(shape));
}

/// Element numbers of one line in the order of their values; equal ones by position; not-a-number counts as largest.
template <typename T>
std::vector<int64_t> ranking(std::span<const T> data, int64_t base, int64_t stride, int64_t count, int64_t k,
                             bool largest) {
  const auto value = [&](int64_t i) {
    const T element = data[static_cast<size_t>(base + i * stride)];
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) return static_cast<float>(element);
    else return element;
  };
  const auto below = [](auto a, auto b) {
    if constexpr (std::is_floating_point_v<decltype(a)>) return std::isnan(a) ? false : std::isnan(b) ? true : a < b;
    else return a < b;
  };
  std::vector<int64_t> order = iota(count);
  std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
    const auto x = value(a), y = value(b);
    if (below(x, y)) return !largest;
    if (below(y, x)) return largest;
    return a < b;
  });
  order.resize(static_cast<size_t>(k));
  return order;
}

void eval_top_k(EvalContext& context) {
  const Tensor& data = context.input(0);
  const size_t axis = normalize_axis(context.attrs().integer("axis"), data.dims().size());
  const int64_t k = context.input(1).integer(0), count = data.dims()[axis];
  HONE_CHECK(k >= 0 && k <= count, "k is {} but the axis has {} elements", k, count);
  Dims dims = data.dims();
  const int64_t before = elements(std::span(dims).first(axis)), after = elements(std::span(dims).subspan(axis + 1));
  dims[axis] = k;
  std::vector<int64_t> indices(static_cast<size_t>(elements(dims))), flat(indices.size());
  visit(data.dtype(), [&]<typename T>() {
    for (int64_t row = 0; row < before; ++row)
      for (int64_t column = 0; column < after; ++column) {
        const int64_t base = row * count * after + column;
        const std::vector<int64_t> order =
            ranking(data.data<T>(), base, after, count, k, context.attrs().integer("largest") != 0);
        for (int64_t i = 0; i < k; ++i) {
          const auto at = static_cast<size_t>((row * k + i) * after + column);
          indices[at] = order[static_cast<size_t>(i)];
          flat[at] = base + indices[at] * after;
        }
      }
  });
  context.set(0, pick_flat(data, dims, flat));
  context.set(1, integer_tensor(std::move(dims), indices));
}

/// Up to opset 9 k is an attribute.
void import_top_k_attr(ImportContext& context) {
  HONE_CHECK_AS(AttributeError, context.attrs().has("k"), "the attribute 'k' is missing");
  Value* k = integer_constant(context, {context.attrs().integer("k")});
  context.attrs().erase("k");
  set_outputs(context, *context.add("TopK", {context.input(0), k}, context.attrs()));
}

// ---- NonZero ----

void infer_non_zero(InferContext& context) {
  context.set(0, DType::i64, Shape{Dim(static_cast<int64_t>(context.rank(0))), context.data_dependent(0, 1)});
}

Shape most_non_zero(const Node& node) {
  const Shape& shape = node.input(0)->type.shape;
  return {Dim(static_cast<int64_t>(shape.rank())), shape.elements()};
}

void eval_non_zero(EvalContext& context) {
  const Tensor& data = context.input(0);
  const Dims dims = data.dims(), strides = strides_of(dims);
  std::vector<int64_t> found;
  for (int64_t i = 0; i < data.size(); ++i)
    if (data.real(i) != 0) found.push_back(i);
  std::vector<int64_t> result;
  for (size_t axis = 0; axis < dims.size(); ++axis)
    for (const int64_t i : found) result.push_back(i / strides[axis] % dims[axis]);
  context.set(0, integer_tensor({static_cast<int64_t>(dims.size()), static_cast<int64_t>(found.size())}, result));
}

// ---- Unique: of elements, or of slices along an axis ----

void infer_unique(InferContext& context) {
  const Dim count = context.data_dependent(0, 0);
  Shape shape{count};
  Dim all = context.shape(0).elements();
  if (context.attrs().has("axis")) {
    shape = context.shape(0);
    const size_t axis = normalize_axis(context.attrs().integer("axis"), shape.rank());
    all = shape[axis];
    shape[axis] = count;
  }
  context.set(0, context.dtype(0), std::move(shape));
  context.set(1, DType::i64, Shape{count});
  context.set(2, DType::i64, Shape{all});
  context.set(3, DType::i64, Shape{count});
}

/// Three-way comparison of two elements.
int compare(const Tensor& data, int64_t a, int64_t b) {
  if (data.dtype() == DType::string)
    return data.strings()[static_cast<size_t>(a)].compare(data.strings()[static_cast<size_t>(b)]);
  if (is_float(data.dtype())) {
    const double x = data.real(a), y = data.real(b);
    return x < y ? -1 : x > y ? 1 : 0;
  }
  const int64_t x = data.integer(a), y = data.integer(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

void eval_unique(EvalContext& context) {
  const bool whole = !context.attrs().has("axis");
  const Tensor& input = context.input(0);
  const Tensor data = whole ? input.reshaped({input.size()}) : input;
  const size_t axis = whole ? 0 : normalize_axis(context.attrs().integer("axis"), data.dims().size());
  const int64_t count = data.dims()[axis];
  const int64_t before = elements(std::span(data.dims()).first(axis)),
                after = elements(std::span(data.dims()).subspan(axis + 1));
  const auto compare_slices = [&](int64_t a, int64_t b) {
    for (int64_t row = 0; row < before; ++row)
      for (int64_t column = 0; column < after; ++column)
        if (const int order = compare(data, (row * count + a) * after + column, (row * count + b) * after + column);
            order != 0)
          return order;
    return 0;
  };
  std::vector<int64_t> order = iota(count);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return compare_slices(a, b) < 0; });

  // Groups of equal slices, each represented by its first one; sorted by value or by first appearance.
  std::vector<std::vector<int64_t>> groups;
  for (const int64_t slice : order)
    if (groups.empty() || compare_slices(groups.back().front(), slice) != 0) groups.push_back({slice});
    else groups.back().push_back(slice);
  if (context.attrs().integer("sorted") == 0)
    std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.front() < b.front(); });

  std::vector<int64_t> first, inverse(static_cast<size_t>(count)), counts;
  for (size_t group = 0; group < groups.size(); ++group) {
    first.push_back(groups[group].front());
    counts.push_back(static_cast<int64_t>(groups[group].size()));
    for (const int64_t slice : groups[group]) inverse[static_cast<size_t>(slice)] = static_cast<int64_t>(group);
  }
  std::vector<std::vector<int64_t>> indices;
  for (const int64_t dim : data.dims()) indices.push_back(iota(dim));
  indices[axis] = first;
  const auto found = static_cast<int64_t>(first.size());
  context.set(0, pick(data, indices));
  if (context.outputs() > 1) context.set(1, integer_tensor({found}, first));
  if (context.outputs() > 2) context.set(2, integer_tensor({count}, inverse));
  if (context.outputs() > 3) context.set(3, integer_tensor({found}, counts));
}

/// Operand 0 holds numbers of classes below a depth that may be known.
std::optional<IntegerRange> accepts_classes(const Node& node, size_t operand) {
  if (operand != 0) return std::nullopt;
  const Value* depth = node.input(1);
  if (!depth->is_constant() || depth->constant->size() != 1) return IntegerRange{0, 0};
  return IntegerRange{0, std::max<int64_t>(depth->constant->integers()[0], 1) - 1};
}

std::optional<IntegerRange> accepts_count(const Node& node, size_t operand) {
  if (operand != 1) return std::nullopt;
  return lengths_along(node.input(0)->type.shape, node.attrs.integer_or("axis", -1));
}

}  // namespace

namespace ops {

const OpDef one_hot = {
    .name = "OneHot",
    .attrs = {{"axis", AttrKind::integer, int64_t{-1}, false, "axis that is added"}},
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = infer_one_hot,
    .eval = eval_one_hot,
    .onnx = {{"OneHot"}},
    .traits = {.accepts = accepts_classes},
};

const OpDef top_k = {
    .name = "TopK",
    .attrs = {{"axis", AttrKind::integer, int64_t{-1}, false, "axis of the ranking"},
              {"largest", AttrKind::integer, int64_t{1}, false, "1: largest, 0: smallest"},
              {"sorted", AttrKind::integer, int64_t{1}, false, "1: in order of value; always so here"}},
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 2,
    .infer = infer_top_k,
    .eval = eval_top_k,
    .onnx = {{"TopK", 10}, {"TopK", 1, 9, import_top_k_attr}},
    .traits = {.accepts = accepts_count},
};

const OpDef non_zero = {.name = "NonZero",
                        .infer = infer_non_zero,
                        .eval = eval_non_zero,
                        .onnx = {{"NonZero"}},
                        .traits = {.data_dependent = true, .most = most_non_zero}};

const OpDef unique = {
    .name = "Unique",
    .attrs = {{"axis", AttrKind::integer, std::nullopt, false,
               "axis whose slices are compared; flattened when not given"},
              {"sorted", AttrKind::integer, int64_t{1}, false, "1: by value, 0: by first appearance"}},
    .infer = infer_unique,
    .eval = eval_unique,
    .onnx = {{"Unique"}},
    .traits = {.data_dependent = true},
};

}  // namespace ops
}  // namespace hone
