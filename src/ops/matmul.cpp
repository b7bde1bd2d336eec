// SPDX-License-Identifier: Apache-2.0
//
// MatMul with numpy's rules (vectors, broadcast batches), Gemm, and the passes' own Linear (a 2-D weight).
#include <algorithm>

#include "base/numbers.h"
#include "ops/gemm_loops.h"
#include "ops/matmul_shape.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

Shape leading(const Shape& shape, size_t drop) {
  return Shape(std::vector<Dim>(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(drop)));
}

}  // namespace

Shape matmul_shape(const Shape& a, const Shape& b) {
  HONE_CHECK(a.rank() > 0 && b.rank() > 0, "MatMul of a scalar");
  const Dim &k_a = a[a.rank() - 1], &k_b = b[b.rank() < 2 ? 0 : b.rank() - 2];
  check_equal(k_a, k_b, "inner sizes of MatMul");
  Shape result = broadcast(leading(a, std::min<size_t>(a.rank(), 2)), leading(b, std::min<size_t>(b.rank(), 2)));
  if (a.rank() > 1) result.push_back(a[a.rank() - 2]);
  if (b.rank() > 1) result.push_back(b[b.rank() - 1]);
  return result;
}

MatMulShape::MatMulShape(Dims left, Dims right) : a(std::move(left)), b(std::move(right)) {
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  m = a[a.size() - 2], k = a.back(), n = b.back();
  HONE_CHECK(b[b.size() - 2] == k, "inner sizes of MatMul: {} and {} differ", k, b[b.size() - 2]);
  batches_a.assign(a.begin(), a.end() - 2);
  batches_b.assign(b.begin(), b.end() - 2);
  batches = broadcast_dims(batches_a, batches_b);
  result = batches;
  if (!row) result.push_back(m);
  if (!column) result.push_back(n);
}

int64_t MatMulShape::offset(std::span<const int64_t> own, int64_t batch, int64_t matrix) const {
  int64_t offset = 0, stride = matrix;
  for (size_t back = 1; back <= batches.size(); ++back) {
    const int64_t size = batches[batches.size() - back], at = batch % size;
    batch /= size;
    if (back > own.size()) continue;
    const int64_t own_size = own[own.size() - back];
    if (own_size != 1) offset += at * stride;
    stride *= own_size;
  }
  return offset;
}

namespace {

// ---- MatMul ----

void infer_mat_mul(InferContext& context) {
  context.set(0, context.dtype(0), matmul_shape(context.shape(0), context.shape(1)));
}

template <typename T>
void multiply_plain(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        c[i * n + j] = wrapping_add(c[i * n + j], wrapping_multiply(a[i * k + p], b[p * n + j]));
}

/// What the operands of a matmul in double precision or in integers share with those in f32.
template <typename T>
std::vector<T> exact_values(const Tensor& tensor) {
  if constexpr (std::is_same_v<T, double>) return read_doubles(tensor);
  else return tensor.integers();
}

template <typename T>
Tensor exact_tensor(DType dtype, Dims dims, const std::vector<T>& values) {
  if constexpr (std::is_same_v<T, double>) return write_doubles(dtype, std::move(dims), values);
  else return write_integers(dtype, std::move(dims), values);
}

/// A matrix row by row, as its transpose where that is asked for.
template <typename T>
std::vector<T> rows_of(const Tensor& tensor, bool transposed) {
  std::vector<T> values = exact_values<T>(tensor);
  if (!transposed) return values;
  const int64_t rows = tensor.dims()[0], columns = tensor.dims()[1];
  std::vector<T> turned(values.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      turned[static_cast<size_t>(j * rows + i)] = values[static_cast<size_t>(i * columns + j)];
  return turned;
}

bool is_exact(DType dtype) { return dtype == DType::f64 || !is_float(dtype); }

template <typename T>
void exact_mat_mul(EvalContext& context, const MatMulShape& shape) {
  const auto left = exact_values<T>(context.input(0)), right = exact_values<T>(context.input(1));
  const auto c = shape.run<T>(left.data(), right.data(), [&](const T* x, const T* y, T* z) {
    multiply_plain(shape.m, shape.n, shape.k, x, y, z);
  });
  context.set(0, exact_tensor<T>(context.input(0).dtype(), shape.result, c));
}

void eval_mat_mul(EvalContext& context) {
  const Tensor &a = context.input(0), &b = context.input(1);
  const MatMulShape shape(a.dims(), b.dims());
  if (is_exact(a.dtype()))
    return a.dtype() == DType::f64 ? exact_mat_mul<double>(context, shape) : exact_mat_mul<int64_t>(context, shape);
  const Floats left(a), right(b);
  const auto c = shape.run<float>(left.data(), right.data(), [&](const float* x, const float* y, float* z) {
    add_matmul_parallel(shape.m, shape.n, shape.k, {x, shape.k, 1}, {y, shape.n, 1}, z, shape.n);
  });
  context.set(0, write_floats(a.dtype(), shape.result, c));
}

// ---- Gemm ----

void infer_gemm(InferContext& context) {
  check_rank(context, 0, 2, "Gemm's A");
  check_rank(context, 1, 2, "Gemm's B");
  const bool trans_a = context.attrs().integer("transA") != 0, trans_b = context.attrs().integer("transB") != 0;
  const Shape &a = context.shape(0), &b = context.shape(1);
  check_equal(a[trans_a ? 0 : 1], b[trans_b ? 1 : 0], "inner sizes of Gemm");
  Shape result{a[trans_a ? 1 : 0], b[trans_b ? 0 : 1]};
  if (context.has(2)) {
    HONE_CHECK(context.rank(2) <= 2, "Gemm's C has rank {}, at most 2 is allowed", context.rank(2));
    broadcast(result, context.shape(2));
  }
  context.set(0, context.dtype(0), std::move(result));
}

MatrixView matrix(const Floats& data, const Dims& dims, bool transposed) {
  return transposed ? MatrixView{data.data(), 1, dims[1]} : MatrixView{data.data(), dims[1], 1};
}

template <typename T>
void exact_gemm(EvalContext& context) {
  const Tensor &a = context.input(0), &b = context.input(1);
  const bool trans_a = context.attrs().integer("transA") != 0, trans_b = context.attrs().integer("transB") != 0;
  const int64_t m = a.dims()[trans_a ? 1 : 0], k = a.dims()[trans_a ? 0 : 1], n = b.dims()[trans_b ? 0 : 1];
  const double alpha = context.attrs().real("alpha"), beta = context.attrs().real("beta");
  const auto scaled = [](double factor, T value) {
    return factor == 1 ? value : from_real<T>(factor * static_cast<double>(value));
  };
  std::vector<T> c(static_cast<size_t>(m * n), T(0));
  multiply_plain(m, n, k, rows_of<T>(a, trans_a).data(), rows_of<T>(b, trans_b).data(), c.data());
  const std::vector<T> bias = context.has(2) ? exact_values<T>(context.input(2)) : std::vector<T>();
  Dims dims = context.has(2) ? context.input(2).dims() : Dims();
  while (dims.size() < 2) dims.insert(dims.begin(), 1);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      T& value = c[static_cast<size_t>(i * n + j)];
      value = scaled(alpha, value);
      const int64_t at = (dims[0] == 1 ? 0 : i) * dims[1] + (dims[1] == 1 ? 0 : j);
      if (!bias.empty()) value = wrapping_add(value, scaled(beta, bias[static_cast<size_t>(at)]));
    }
  context.set(0, exact_tensor<T>(a.dtype(), {m, n}, c));
}

void eval_gemm(EvalContext& context) {
  if (is_exact(context.input(0).dtype()))
    return context.input(0).dtype() == DType::f64 ? exact_gemm<double>(context) : exact_gemm<int64_t>(context);
  const Tensor &a = context.input(0), &b = context.input(1);
  const bool trans_a = context.attrs().integer("transA") != 0, trans_b = context.attrs().integer("transB") != 0;
  const int64_t m = a.dims()[trans_a ? 1 : 0], k = a.dims()[trans_a ? 0 : 1], n = b.dims()[trans_b ? 0 : 1];
  const Floats left(a), right(b);
  std::vector<float> c(static_cast<size_t>(m * n), 0.0F);
  add_matmul_parallel(m, n, k, matrix(left, a.dims(), trans_a), matrix(right, b.dims(), trans_b), c.data(), n);
  const auto alpha = static_cast<float>(context.attrs().real("alpha")),
             beta = static_cast<float>(context.attrs().real("beta"));
  for (float& value : c) value *= alpha;
  if (context.has(2)) {
    const Floats bias(context.input(2));
    Dims dims = context.input(2).dims();
    while (dims.size() < 2) dims.insert(dims.begin(), 1);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        c[static_cast<size_t>(i * n + j)] += beta * bias[(dims[0] == 1 ? 0 : i) * dims[1] + (dims[1] == 1 ? 0 : j)];
  }
  context.set(0, write_floats(a.dtype(), {m, n}, c));
}

/// Up to opset 6 the bias broadcast only on request; the numbers are the same.
void import_gemm(ImportContext& context) {
  Attrs attrs = context.attrs();
  attrs.erase("broadcast");
  std::vector<Value*> inputs{context.input(0), context.input(1)};
  if (context.inputs() > 2 && context.input(2) != nullptr) inputs.push_back(context.input(2));
  context.set_output(0, context.add("Gemm", std::move(inputs), std::move(attrs))->output());
}

// ---- Linear ----

void infer_linear(InferContext& context) {
  const bool trans = context.attrs().integer("trans_w") != 0;
  check_rank(context, 1, 2, "Linear's weight");
  HONE_CHECK(context.rank(0) >= 1, "Linear of a scalar");
  Shape result = context.shape(0);
  const size_t last = result.rank() - 1;
  check_equal(result[last], context.shape(1)[trans ? 1 : 0], "inner sizes of Linear");
  result[last] = context.shape(1)[trans ? 0 : 1];
  if (context.has(2)) {
    check_rank(context, 2, 1, "Linear's bias");
    check_equal(context.shape(2)[0], result[last], "sizes of Linear's bias and result");
  }
  context.set(0, context.dtype(0), std::move(result));
}

template <typename T>
void exact_linear(EvalContext& context) {
  const Tensor &x = context.input(0), &w = context.input(1);
  const bool trans = context.attrs().integer("trans_w") != 0;
  const int64_t k = x.dims().back(), m = k == 0 ? 0 : x.size() / k, n = w.dims()[trans ? 0 : 1];
  Dims dims = x.dims();
  dims.back() = n;
  std::vector<T> y(static_cast<size_t>(elements(dims)), T(0));
  multiply_plain(m, n, k, exact_values<T>(x).data(), rows_of<T>(w, trans).data(), y.data());
  if (context.has(2)) {
    const std::vector<T> bias = exact_values<T>(context.input(2));
    for (size_t i = 0; i < y.size(); ++i) y[i] = wrapping_add(y[i], bias[i % bias.size()]);
  }
  context.set(0, exact_tensor<T>(x.dtype(), std::move(dims), y));
}

void eval_linear(EvalContext& context) {
  if (is_exact(context.input(0).dtype()))
    return context.input(0).dtype() == DType::f64 ? exact_linear<double>(context) : exact_linear<int64_t>(context);
  const Tensor &x = context.input(0), &w = context.input(1);
  const bool trans = context.attrs().integer("trans_w") != 0;
  const int64_t k = x.dims().back(), m = k == 0 ? 0 : x.size() / k, n = w.dims()[trans ? 0 : 1];
  Dims dims = x.dims();
  dims.back() = n;
  std::vector<float> y(static_cast<size_t>(elements(dims)), 0.0F);
  if (context.has(2)) {
    const Floats bias(context.input(2));
    for (size_t i = 0; i < y.size(); ++i) y[i] = bias[static_cast<int64_t>(i) % n];
  }
  const Floats left(x), right(w);
  add_matmul_parallel(m, n, k, {left.data(), k, 1}, matrix(right, w.dims(), trans), y.data(), n);
  context.set(0, write_floats(x.dtype(), std::move(dims), y));
}

int64_t flops_of_matmul(const Node& node, const SymbolValues& sizes) {
  const Dims left = node.input(0)->type.shape.evaluate(sizes);
  return left.empty() ? 0 : 2 * left.back() * elements(node.output()->type.shape.evaluate(sizes));
}

/// Entries are matrices of a stack, and of a Linear at least rows.
bool stacks_apart(const Node& node, size_t operand) {
  return node.output()->type.shape.rank() >= 3 && all_apart(node, operand);
}
bool rows_apart(const Node& node, size_t operand) { return operand == 0 && node.output()->type.shape.rank() >= 2; }
std::optional<bool> inner_rows_apart(const Node&, size_t operand) { return operand == 0; }

Channels channels_of_linear(const Node& node) {
  return {.of_result = node.output()->type.shape.rank() - 1,
          .of_weights = node.attrs.integer("trans_w") != 0 ? size_t{0} : size_t{1}};
}

}  // namespace

const OpDef ops::mat_mul{.name = "MatMul",
                         .min_inputs = 2,
                         .max_inputs = 2,
                         .infer = infer_mat_mul,
                         .eval = eval_mat_mul,
                         .onnx = {{"MatMul"}},
                         .traits = {.few_bits = FewBits::gains,
                                    .weights = WeightRoles::kernel_and_bias,
                                    .layer = "MatrixMultiply",
                                    .entries_apart = stacks_apart,
                                    .flops = flops_of_matmul}};
const OpDef ops::gemm{
    .name = "Gemm",
    .attrs = {real_attr("alpha", 1), real_attr("beta", 1), integer_attr("transA", 0), integer_attr("transB", 0)},
    .min_inputs = 2,
    .max_inputs = 3,
    .infer = infer_gemm,
    .eval = eval_gemm,
    .onnx = {{"Gemm", 1, kEveryLater, import_gemm}},
    .traits = {.few_bits = FewBits::gains, .weights = WeightRoles::kernel_and_bias, .layer = "MatrixMultiply"}};
const OpDef ops::linear{.name = "Linear",
                        .attrs = {integer_attr("trans_w", 0)},
                        .min_inputs = 2,
                        .max_inputs = 3,
                        .infer = infer_linear,
                        .eval = eval_linear,
                        .traits = {.few_bits = FewBits::gains,
                                   .weights = WeightRoles::kernel_and_bias,
                                   .layer = "MatrixMultiply",
                                   .entries_apart = rows_apart,
                                   .rows_apart = inner_rows_apart,
                                   .flops = flops_of_matmul,
                                   .channels = channels_of_linear}};

}  // namespace hone
