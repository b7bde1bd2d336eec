// SPDX-License-Identifier: Apache-2.0
//
// Matrix products: MatMul with numpy semantics, Gemm. Sums run in blocks of 256 so that float accumulation stays exact enough.
#include <algorithm>
#include <vector>

#include "ops/ops.h"
#include "ops/product.h"
#include "ops/support.h"

namespace hone::ops {

void multiply_add(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float* c) {
  constexpr int64_t kDepth = 256, kWidth = 512;
#pragma omp parallel for schedule(static) if (m * n * k > 1 << 18)
  for (int64_t i = 0; i < m; ++i) {
    float partial[kWidth];
    for (int64_t j0 = 0; j0 < n; j0 += kWidth) {
      const int64_t width = std::min(kWidth, n - j0);
      for (int64_t p0 = 0; p0 < k; p0 += kDepth) {
        std::fill_n(partial, width, 0.0f);
        for (int64_t p = p0; p < std::min(p0 + kDepth, k); ++p) {
          const float x = a[i * lda + p];
          const float* row = b + p * ldb + j0;
          for (int64_t j = 0; j < width; ++j) partial[j] += x * row[j];
        }
        for (int64_t j = 0; j < width; ++j) c[i * n + j0 + j] += partial[j];
      }
    }
  }
}

namespace {

Shape batch_of(const Shape& shape) { return Shape({shape.dims().begin(), shape.dims().end() - 2}); }

void check_inner(const Dim& a, const Dim& b) {
  HONE_CHECK(!a.is_constant() || !b.is_constant() || a == b, "inner sizes {} and {} of a matrix product differ", a.text(), b.text());
}

void infer_matmul(InferContext& context) {
  Shape a = context.shape(0), b = context.shape(1);
  HONE_CHECK(a.rank() > 0 && b.rank() > 0, "MatMul needs operands of rank 1 or more");
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = Shape({Dim(1), a[0]});
  if (column) b = Shape({b[0], Dim(1)});
  check_inner(a[a.rank() - 1], b[b.rank() - 2]);
  Shape result = broadcast(batch_of(a), batch_of(b));
  if (!row) result.push_back(a[a.rank() - 2]);
  if (!column) result.push_back(b[b.rank() - 1]);
  context.set(0, context.dtype(0), result);
}

Tensor multiply_integers(const Tensor& a, const Tensor& b, const Dims& dims, std::span<const std::pair<int64_t, int64_t>> batches, int64_t m, int64_t n, int64_t k) {
  TensorBuilder builder(a.dtype(), dims);
  visit(a.dtype(), [&]<typename T>() {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      T* out = builder.data<T>().data();
      for (const auto& [x, y] : batches)
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            T sum = 0;
            for (int64_t p = 0; p < k; ++p) sum = static_cast<T>(sum + a.data<T>()[static_cast<size_t>(x * m * k + i * k + p)] * b.data<T>()[static_cast<size_t>(y * k * n + p * n + j)]);
            *out++ = sum;
          }
    } else {
      throw Error(fmt::format("MatMul of {} is not defined", name_of(a.dtype())));
    }
  });
  return builder.finish();
}

/// For each matrix of the result the matrices of a and b.
std::vector<std::pair<int64_t, int64_t>> pair_batches(const Dims& a, const Dims& b) {
  const Dims all = broadcast_dims(a, b), strides = strides_of(all);
  const auto index = [&](const Dims& own, int64_t i) {
    const Dims own_strides = strides_of(own);
    int64_t at = 0;
    for (size_t axis = 0; axis < own.size(); ++axis) {
      const size_t wide = axis + all.size() - own.size();
      if (own[axis] != 1) at += i / strides[wide] % all[wide] * own_strides[axis];
    }
    return at;
  };
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t i = 0; i < elements(all); ++i) pairs.emplace_back(index(a, i), index(b, i));
  return pairs;
}

void eval_matmul(EvalContext& context) {
  const Tensor &a = context.input(0), &b = context.input(1);
  Dims da = a.dims(), db = b.dims();
  const bool row = da.size() == 1, column = db.size() == 1;
  if (row) da.insert(da.begin(), 1);
  if (column) db.push_back(1);
  const int64_t m = da[da.size() - 2], k = da.back(), n = db.back();
  HONE_CHECK(db[db.size() - 2] == k, "inner sizes {} and {} of a matrix product differ", k, db[db.size() - 2]);
  const Dims batch_a(da.begin(), da.end() - 2), batch_b(db.begin(), db.end() - 2);
  Dims result = broadcast_dims(batch_a, batch_b);
  if (!row) result.push_back(m);
  if (!column) result.push_back(n);
  const auto batches = pair_batches(batch_a, batch_b);
  if (!is_float(a.dtype()) || a.dtype() == DType::f64) return context.set(0, multiply_integers(a, b, result, batches, m, n, k));
  const FloatView x(a), y(b);
  std::vector<float> out(static_cast<size_t>(elements(result)), 0.0f);
  for (size_t i = 0; i < batches.size(); ++i)
    multiply_add(m, n, k, x.data() + batches[i].first * m * k, k, y.data() + batches[i].second * k * n, n, out.data() + static_cast<int64_t>(i) * m * n);
  context.set(0, from_floats(a.dtype(), result, out));
}

void infer_gemm(InferContext& context) {
  const Shape &a = context.shape(0), &b = context.shape(1);
  HONE_CHECK(a.rank() == 2 && b.rank() == 2, "Gemm needs matrices, not ranks {} and {}", a.rank(), b.rank());
  const bool ta = context.attrs().integer("transA") != 0, tb = context.attrs().integer("transB") != 0;
  check_inner(a[ta ? 0 : 1], b[tb ? 1 : 0]);
  const Shape result{a[ta ? 1 : 0], b[tb ? 0 : 1]};
  if (context.has(2)) broadcast(context.shape(2), result);
  context.set(0, context.dtype(0), result);
}

std::vector<float> transposed(const float* data, int64_t rows, int64_t columns) {
  std::vector<float> result(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) result[static_cast<size_t>(j * rows + i)] = data[i * columns + j];
  return result;
}

void eval_gemm(EvalContext& context) {
  const Tensor &a = context.input(0), &b = context.input(1);
  const bool ta = context.attrs().integer("transA") != 0, tb = context.attrs().integer("transB") != 0;
  const int64_t m = a.dims()[ta ? 1 : 0], k = a.dims()[ta ? 0 : 1], n = b.dims()[tb ? 0 : 1];
  const auto alpha = static_cast<float>(context.attrs().real("alpha")), beta = static_cast<float>(context.attrs().real("beta"));
  const FloatView x(a), y(b);
  const std::vector<float> xt = ta ? transposed(x.data(), k, m) : std::vector<float>(), yt = tb ? transposed(y.data(), n, k) : std::vector<float>();
  std::vector<float> out(static_cast<size_t>(m * n), 0.0f);
  multiply_add(m, n, k, ta ? xt.data() : x.data(), k, tb ? yt.data() : y.data(), n, out.data());
  for (float& value : out) value *= alpha;
  if (context.has(2)) {
    const FloatView c(context.input(2));
    Dims dc = context.input(2).dims();
    while (dc.size() < 2) dc.insert(dc.begin(), 1);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) out[static_cast<size_t>(i * n + j)] += beta * c[(dc[0] == 1 ? 0 : i) * dc[1] + (dc[1] == 1 ? 0 : j)];
  }
  context.set(0, from_floats(a.dtype(), {m, n}, out));
}

}  // namespace

const OpDef mat_mul{.name = "MatMul", .min_inputs = 2, .max_inputs = 2, .infer = infer_matmul, .eval = eval_matmul, .onnx = {{"MatMul"}}};
const OpDef gemm{.name = "Gemm",
                 .attrs = {{"alpha", AttrKind::real, 1.0}, {"beta", AttrKind::real, 1.0}, {"transA", AttrKind::integer, int64_t{0}}, {"transB", AttrKind::integer, int64_t{0}}},
                 .min_inputs = 2,
                 .max_inputs = 3,
                 .infer = infer_gemm,
                 .eval = eval_gemm,
                 .onnx = {{"Gemm", 7}}};

}  // namespace hone::ops
