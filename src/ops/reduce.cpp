// SPDX-License-Identifier: Apache-2.0
//
// Reductions over axes, which are an operand; older opsets give them as an attribute.
#include <algorithm>
#include <cmath>

#include "ops/ops.h"
#include "ops/support.h"

namespace hone::ops {
namespace {

/// The axes reduced over; nothing when they are not known yet.
std::optional<std::vector<bool>> reduced_axes(const Attrs& attrs, size_t rank, bool has_axes, const std::optional<std::vector<int64_t>>& axes) {
  if (has_axes && !axes) return std::nullopt;
  std::vector<bool> reduced(rank, false);
  if (!has_axes || axes->empty()) {
    if (attrs.integer("noop_with_empty_axes") == 0) reduced.assign(rank, true);
    return reduced;
  }
  for (const int64_t axis : *axes) reduced[normalize_axis(axis, rank)] = true;
  return reduced;
}

void infer_reduce(InferContext& context) {
  std::optional<std::vector<int64_t>> axes;
  if (context.has(1)) {
    const Tensor* constant = context.constant(1);
    HONE_CHECK(constant != nullptr, "the axes of {} must be constant", context.node().op->name);
    axes = constant->integers();
  }
  const Shape& x = context.shape(0);
  const std::vector<bool> reduced = *reduced_axes(context.attrs(), x.rank(), context.has(1), axes);
  Shape result;
  for (size_t i = 0; i < x.rank(); ++i) {
    if (!reduced[i]) result.push_back(x[i]);
    else if (context.attrs().integer("keepdims") != 0) result.push_back(Dim(1));
  }
  context.set(0, context.dtype(0), result);
  // Products and sums of sizes: a shape's contents reduced to one number.
  const std::optional<SymbolicData> data = context.symbolic(0);
  const std::string_view op = context.node().op->name;
  if (!data || x.rank() != 1 || !reduced[0]) return;
  if (op == "ReduceProd" || op == "ReduceSum") {
    Dim total(op == "ReduceProd" ? 1 : 0);
    for (const Dim& dim : *data) total = op == "ReduceProd" ? total * dim : total + dim;
    context.set_symbolic(0, {total});
  } else if ((op == "ReduceMax" || op == "ReduceMin") && !data->empty()) {
    Dim best = data->front();
    for (const Dim& dim : *data) best = op == "ReduceMax" ? maximum(best, dim) : minimum(best, dim);
    context.set_symbolic(0, {best});
  }
}

enum class Kind { sum, mean, max, min, prod, l1, l2, log_sum, log_sum_exp, sum_square };

double start_of(Kind kind) {
  switch (kind) {
    case Kind::max: return -INFINITY;
    case Kind::min: return INFINITY;
    case Kind::prod: return 1;
    default: return 0;
  }
}

double combine(Kind kind, double total, double x) {
  switch (kind) {
    case Kind::sum:
    case Kind::mean:
    case Kind::log_sum: return total + x;
    case Kind::max: return std::isnan(x) ? x : std::max(total, x);
    case Kind::min: return std::isnan(x) ? x : std::min(total, x);
    case Kind::prod: return total * x;
    case Kind::l1: return total + std::abs(x);
    case Kind::l2:
    case Kind::sum_square: return total + x * x;
    case Kind::log_sum_exp: return total + std::exp(x);
  }
  return total;
}

double finish(Kind kind, double total, int64_t count) {
  switch (kind) {
    case Kind::mean: return total / static_cast<double>(count);
    case Kind::l2: return std::sqrt(total);
    case Kind::log_sum:
    case Kind::log_sum_exp: return std::log(total);
    default: return total;
  }
}

template <typename T>
double to_double(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) return static_cast<float>(value);
  else return static_cast<double>(value);
}

template <Kind K>
void eval_reduce(EvalContext& context) {
  const Tensor& x = context.input(0);
  const size_t rank = x.dims().size();
  std::optional<std::vector<int64_t>> axes;
  if (context.has(1)) axes = context.input(1).integers();
  const std::vector<bool> reduced = *reduced_axes(context.attrs(), rank, context.has(1), axes);
  Dims dims, strides(rank, 0);
  int64_t count = 1;
  for (size_t i = 0; i < rank; ++i) {
    if (reduced[i]) count *= x.dims()[i];
    if (!reduced[i]) dims.push_back(x.dims()[i]);
    else if (context.attrs().integer("keepdims") != 0) dims.push_back(1);
  }
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;)
    if (!reduced[i]) {
      strides[i] = stride;
      stride *= x.dims()[i];
    }
  // Subtracting the largest element keeps the exponentials finite.
  std::vector<double> totals(static_cast<size_t>(stride), start_of(K)), peaks(K == Kind::log_sum_exp ? totals.size() : 0, -INFINITY);
  const Dims own = strides_of(x.dims());
  const auto target = [&](int64_t i) {
    int64_t at = 0;
    for (size_t axis = 0; axis < rank; ++axis) at += i / own[axis] % x.dims()[axis] * strides[axis];
    return static_cast<size_t>(at);
  };
  TensorBuilder builder(x.dtype(), dims);
  visit(x.dtype(), [&]<typename T>() {
    const std::span<const T> in = x.data<T>();
    if constexpr (std::is_same_v<T, int64_t> && K == Kind::prod) {
      std::vector<int64_t> products(totals.size(), 1);
      for (int64_t i = 0; i < x.size(); ++i) products[target(i)] *= in[static_cast<size_t>(i)];
      std::copy(products.begin(), products.end(), builder.data<T>().begin());
      return;
    }
    for (int64_t i = 0; !peaks.empty() && i < x.size(); ++i) peaks[target(i)] = std::max(peaks[target(i)], to_double(in[static_cast<size_t>(i)]));
    for (int64_t i = 0; i < x.size(); ++i) {
      const size_t at = target(i);
      const double shift = peaks.empty() || !std::isfinite(peaks[at]) ? 0 : peaks[at];
      totals[at] = combine(K, totals[at], to_double(in[static_cast<size_t>(i)]) - shift);
    }
    for (size_t i = 0; i < totals.size(); ++i) {
      const double value = finish(K, totals[i], count) + (peaks.empty() || !std::isfinite(peaks[i]) ? 0 : peaks[i]);
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) builder.data<T>()[i] = T(static_cast<float>(value));
      else builder.data<T>()[i] = static_cast<T>(value);
    }
  });
  context.set(0, builder.finish());
}

void import_attribute_axes(ImportContext& context) {
  Attrs attrs;
  if (const AttrValue* keep = context.attrs().find("keepdims")) attrs.set("keepdims", *keep);
  Value* axes = nullptr;
  if (context.attrs().has("axes")) {
    const std::vector<int64_t>& list = context.attrs().integers("axes");
    axes = context.constant(Tensor::of<int64_t>({static_cast<int64_t>(list.size())}, std::span<const int64_t>(list)));
  }
  context.set_output(0, context.add(context.attrs().text("$op"), {context.input(0), axes}, std::move(attrs))->output());
}

template <const OpDef& Op>
void import_old(ImportContext& context) {
  context.attrs().set("$op", std::string(Op.name));
  import_attribute_axes(context);
}

template <Kind K, const OpDef& Op>
OpDef reduction(std::string_view name, int operand_since) {
  return {.name = name,
          .attrs = {{"keepdims", AttrKind::integer, int64_t{1}}, {"noop_with_empty_axes", AttrKind::integer, int64_t{0}}},
          .min_inputs = 1,
          .max_inputs = 2,
          .infer = infer_reduce,
          .eval = eval_reduce<K>,
          .onnx = {{name, operand_since}, {name, 1, operand_since - 1, import_old<Op>}}};
}

}  // namespace

const OpDef reduce_sum = reduction<Kind::sum, reduce_sum>("ReduceSum", 13);
const OpDef reduce_mean = reduction<Kind::mean, reduce_mean>("ReduceMean", 18);
const OpDef reduce_max = reduction<Kind::max, reduce_max>("ReduceMax", 18);
const OpDef reduce_min = reduction<Kind::min, reduce_min>("ReduceMin", 18);
const OpDef reduce_prod = reduction<Kind::prod, reduce_prod>("ReduceProd", 18);
const OpDef reduce_l1 = reduction<Kind::l1, reduce_l1>("ReduceL1", 18);
const OpDef reduce_l2 = reduction<Kind::l2, reduce_l2>("ReduceL2", 18);
const OpDef reduce_log_sum = reduction<Kind::log_sum, reduce_log_sum>("ReduceLogSum", 18);
const OpDef reduce_log_sum_exp = reduction<Kind::log_sum_exp, reduce_log_sum_exp>("ReduceLogSumExp", 18);
const OpDef reduce_sum_square = reduction<Kind::sum_square, reduce_sum_square>("ReduceSumSquare", 18);

}  // namespace hone::ops
