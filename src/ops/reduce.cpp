// SPDX-License-Identifier: Apache-2.0
//
// ReduceX over any axes. Each kind is one function over the elements that fall together; floats reduce in double, integers
// in 64 bits. Axes are an operand; older opsets had an attribute.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/numbers.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

/// Which axes are reduced; all when none are named, unless the node says that naming none means doing nothing.
std::vector<bool> reduced_axes(size_t rank, const std::optional<std::vector<int64_t>>& axes, bool noop) {
  if (!axes || axes->empty()) return std::vector<bool>(rank, !noop);
  std::vector<bool> reduced(rank, false);
  for (const int64_t axis : *axes) reduced[normalize_axis(axis, rank)] = true;
  return reduced;
}

/// Shapes travel through sums and products of a whole list of sizes.
void propagate_list(InferContext& context, const std::vector<bool>& reduced) {
  std::optional<SymbolicData> data = context.symbolic(0);
  if (!data || data->empty() || reduced != std::vector<bool>{true}) return;
  Dim result = data->front();
  for (size_t i = 1; i < data->size(); ++i) {
    const Dim& next = (*data)[i];
    const Node& node = context.node();
    if (node.is(ops::reduce_prod)) result = result * next;
    else if (node.is(ops::reduce_sum)) result = result + next;
    else if (node.is(ops::reduce_max)) result = maximum(result, next);
    else if (node.is(ops::reduce_min)) result = minimum(result, next);
    else return;
  }
  context.set_symbolic(0, {result});
}

void infer_reduce(InferContext& context) {
  const Shape& x = context.shape(0);
  const bool keep = context.attrs().integer("keepdims") != 0;
  std::optional<std::vector<int64_t>> axes;
  if (context.has(1)) {
    axes = known_integers(context, 1);
    const size_t count = known_count(context, 1);
    if (count == 0) axes.emplace();
    if (!axes) {  // only a run tells which axes; how many remain is known
      Shape result;
      for (size_t i = 0; i < x.rank() - (keep ? 0 : std::min(count, x.rank())); ++i)
        result.push_back(context.data_dependent(0, i));
      return context.set(0, context.dtype(0), std::move(result));
    }
  }
  const std::vector<bool> reduced = reduced_axes(x.rank(), axes, context.attrs().integer("noop_with_empty_axes") != 0);
  Shape result;
  for (size_t i = 0; i < x.rank(); ++i) {
    if (!reduced[i]) result.push_back(x[i]);
    else if (keep) result.push_back(Dim(1));
  }
  context.set(0, context.dtype(0), std::move(result));
  propagate_list(context, reduced);
}

/// Offsets of the elements with the given axes running, all others at 0, in row-major order.
std::vector<int64_t> offsets_over(const Dims& dims, const std::vector<bool>& running, bool which) {
  const Dims strides = strides_of(dims);
  std::vector<int64_t> offsets{0};
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (running[axis] != which) continue;
    std::vector<int64_t> next;
    next.reserve(offsets.size() * static_cast<size_t>(dims[axis]));
    for (const int64_t offset : offsets)
      for (int64_t i = 0; i < dims[axis]; ++i) next.push_back(offset + i * strides[axis]);
    offsets = std::move(next);
  }
  return offsets;
}

template <typename T>
struct Group {
  const T* first;
  std::span<const int64_t> offsets;
  template <typename Step>
  T fold(T start, const Step& step) const {
    for (const int64_t offset : offsets) start = step(start, first[offset]);
    return start;
  }
};

struct Sum {
  template <typename T>
  static T run(const Group<T>& g) {
    return g.fold(T(0), wrapping_add<T>);
  }
};
struct Mean {
  template <typename T>
  static T run(const Group<T>& g) {
    return g.offsets.empty() ? std::numeric_limits<T>::quiet_NaN() : Sum::run(g) / static_cast<T>(g.offsets.size());
  }
};
struct Largest {
  template <typename T>
  static T run(const Group<T>& g) {
    const T start =
        std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
    return g.fold(start, [](T a, T x) { return x > a || x != x ? x : a; });
  }
};
struct Smallest {
  template <typename T>
  static T run(const Group<T>& g) {
    const T start =
        std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
    return g.fold(start, [](T a, T x) { return x < a || x != x ? x : a; });
  }
};
struct Product {
  template <typename T>
  static T run(const Group<T>& g) {
    return g.fold(T(1), wrapping_multiply<T>);
  }
};
struct L1 {
  template <typename T>
  static T run(const Group<T>& g) {
    return g.fold(T(0), [](T a, T x) { return x < 0 ? wrapping_subtract(a, x) : wrapping_add(a, x); });
  }
};
struct SumSquare {
  template <typename T>
  static T run(const Group<T>& g) {
    return g.fold(T(0), [](T a, T x) { return wrapping_add(a, wrapping_multiply(x, x)); });
  }
};
struct L2 {
  template <typename T>
  static T run(const Group<T>& g) {
    return from_real<T>(std::sqrt(static_cast<double>(SumSquare::run(g))));
  }
};
struct LogSum {
  template <typename T>
  static T run(const Group<T>& g) {
    return from_real<T>(std::log(static_cast<double>(Sum::run(g))));
  }
};
struct LogSumExp {
  template <typename T>
  static T run(const Group<T>& g) {
    const double top = static_cast<double>(Largest::run(g));
    if (!std::isfinite(top)) return from_real<T>(top);
    double sum = 0;
    for (const int64_t offset : g.offsets) sum += std::exp(static_cast<double>(g.first[offset]) - top);
    return from_real<T>(top + std::log(sum));
  }
};

template <typename Kind, typename T>
std::vector<T> reduce(const std::vector<T>& data, const Dims& dims, const std::vector<bool>& reduced) {
  const std::vector<int64_t> inner = offsets_over(dims, reduced, true);
  std::vector<T> result;
  for (const int64_t start : offsets_over(dims, reduced, false))
    result.push_back(Kind::run(Group<T>{data.data() + start, inner}));
  return result;
}

/// The largest and smallest of no elements are the limits of the type itself.
template <typename Kind>
std::vector<int64_t> in_range(DType dtype, std::vector<int64_t> values) {
  if constexpr (std::is_same_v<Kind, Largest> || std::is_same_v<Kind, Smallest>) {
    visit(dtype, [&]<typename T>() {
      if constexpr (std::is_integral_v<T> && sizeof(T) < sizeof(int64_t))
        for (int64_t& value : values)
          value = std::clamp(value, static_cast<int64_t>(std::numeric_limits<T>::lowest()),
                             static_cast<int64_t>(std::numeric_limits<T>::max()));
    });
  }
  return values;
}

template <typename Kind>
void eval_reduce(EvalContext& context) {
  const Tensor& x = context.input(0);
  std::optional<std::vector<int64_t>> axes;
  if (context.has(1)) axes = context.input(1).integers();
  const std::vector<bool> reduced =
      reduced_axes(x.dims().size(), axes, context.attrs().integer("noop_with_empty_axes") != 0);
  const bool keep = context.attrs().integer("keepdims") != 0;
  Dims dims;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i]) dims.push_back(x.dims()[i]);
    else if (keep) dims.push_back(1);
  }
  if (is_float(x.dtype()))
    context.set(0, write_doubles(x.dtype(), std::move(dims), reduce<Kind>(read_doubles(x), x.dims(), reduced)));
  else
    context.set(0, write_integers(x.dtype(), std::move(dims),
                                  in_range<Kind>(x.dtype(), reduce<Kind>(x.integers(), x.dims(), reduced))));
}

template <const OpDef& op>
void import_reduce(ImportContext& context) {
  std::vector<Value*> inputs{context.input(0)};
  if (Value* axes = operand_from_attr(context, "axes")) inputs.push_back(axes);
  else if (context.inputs() > 1 && context.input(1) != nullptr) inputs.push_back(context.input(1));
  context.set_output(0, context.add(op.name, std::move(inputs), context.attrs())->output());
}

template <const OpDef& op, typename Kind>
OpDef reduction(std::string_view name, FewBits few_bits = FewBits::stays) {
  return {.name = name,
          .attrs = {integer_attr("keepdims", 1), integer_attr("noop_with_empty_axes", 0)},
          .max_inputs = 2,
          .infer = infer_reduce,
          .eval = eval_reduce<Kind>,
          .onnx = {{name, 1, kEveryLater, import_reduce<op>}},
          .traits = {.few_bits = few_bits, .layer = "Reduce"}};
}

}  // namespace

const OpDef ops::reduce_sum = reduction<ops::reduce_sum, Sum>("ReduceSum");
const OpDef ops::reduce_mean = reduction<ops::reduce_mean, Mean>("ReduceMean", FewBits::follows);
const OpDef ops::reduce_max = reduction<ops::reduce_max, Largest>("ReduceMax", FewBits::follows);
const OpDef ops::reduce_min = reduction<ops::reduce_min, Smallest>("ReduceMin", FewBits::follows);
const OpDef ops::reduce_prod = reduction<ops::reduce_prod, Product>("ReduceProd");
const OpDef ops::reduce_l1 = reduction<ops::reduce_l1, L1>("ReduceL1");
const OpDef ops::reduce_l2 = reduction<ops::reduce_l2, L2>("ReduceL2");
const OpDef ops::reduce_log_sum = reduction<ops::reduce_log_sum, LogSum>("ReduceLogSum");
const OpDef ops::reduce_log_sum_exp = reduction<ops::reduce_log_sum_exp, LogSumExp>("ReduceLogSumExp");
const OpDef ops::reduce_sum_square = reduction<ops::reduce_sum_square, SumSquare>("ReduceSumSquare");

}  // namespace hone
