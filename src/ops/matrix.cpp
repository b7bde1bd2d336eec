// SPDX-License-Identifier: Apache-2.0
//
// Triangles, unit matrices, determinants, inverses.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "ops/ops.h"
#include "ops/support.h"

namespace hone::ops {
namespace {

void infer_trilu(InferContext& context) {
  HONE_CHECK(context.rank(0) >= 2, "Trilu needs rank 2 or more, not {}", context.rank(0));
  context.set(0, context.dtype(0), context.shape(0));
}

void eval_trilu(EvalContext& context) {
  const Tensor& x = context.input(0);
  const int64_t k = context.has(1) ? context.input(1).integer(0) : 0, rows = x.dims()[x.dims().size() - 2],
                columns = x.dims().back();
  const bool upper = context.attrs().integer("upper") != 0;
  const auto keeps = [&](int64_t i) {
    const int64_t row = i / columns % rows, column = i % columns;
    return upper ? column - row >= k : column - row <= k;
  };
  if (x.dtype() == DType::string) {
    std::vector<std::string> texts(x.strings().begin(), x.strings().end());
    for (int64_t i = 0; i < x.size(); ++i)
      if (!keeps(i)) texts[static_cast<size_t>(i)].clear();
    return context.set(0, Tensor::of_strings(x.dims(), std::move(texts)));
  }
  TensorBuilder builder(x.dtype(), x.dims());
  const auto size = static_cast<int64_t>(size_of(x.dtype()));
  std::memset(builder.bytes(), 0, x.bytes().size());
  for (int64_t i = 0; i < x.size(); ++i)
    if (keeps(i)) std::memcpy(builder.bytes() + i * size, x.bytes().data() + i * size, static_cast<size_t>(size));
  context.set(0, builder.finish());
}

void infer_eye(InferContext& context) {
  HONE_CHECK(context.rank(0) == 2, "EyeLike needs a matrix, not rank {}", context.rank(0));
  context.set(0, context.dtype(0), context.shape(0));
}

void eval_eye(EvalContext& context) {
  const Tensor& x = context.input(0);
  const int64_t k = context.attrs().integer("k");
  TensorBuilder builder(x.dtype(), x.dims());
  visit(x.dtype(), [&]<typename T>() {
    for (int64_t i = 0; i < x.size(); ++i) {
      const bool one = i % x.dims()[1] - i / x.dims()[1] == k;
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>)
        builder.data<T>()[static_cast<size_t>(i)] = T(one ? 1.0f : 0.0f);
      else builder.data<T>()[static_cast<size_t>(i)] = static_cast<T>(one);
    }
  });
  context.set(0, builder.finish());
}

void import_eye(ImportContext& context) {
  Value* x = context.input(0);
  if (context.attrs().has("dtype"))
    x = context.add("Cast", {x}, {{"to", std::string(name_of(dtype_of_onnx(context.attrs().integer("dtype"))))}})
            ->output();
  context.set_output(0, context.add("EyeLike", {x}, {{"k", context.attrs().integer_or("k", 0)}})->output());
}

void infer_det(InferContext& context) {
  const Shape& x = context.shape(0);
  HONE_CHECK(x.rank() >= 2, "Det needs rank 2 or more, not {}", x.rank());
  check_equal(x[x.rank() - 1], x[x.rank() - 2], "rows and columns of Det's matrices");
  context.set(0, context.dtype(0), Shape(std::vector<Dim>(x.begin(), x.end() - 2)));
}

/// By elimination with the largest pivot of each column.
double determinant(std::span<double> m, size_t n) {
  double result = 1;
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i)
      if (std::abs(m[i * n + k]) > std::abs(m[pivot * n + k])) pivot = i;
    if (m[pivot * n + k] == 0) return 0;
    if (pivot != k) {
      std::swap_ranges(m.begin() + static_cast<std::ptrdiff_t>(k * n),
                       m.begin() + static_cast<std::ptrdiff_t>(k * n + n),
                       m.begin() + static_cast<std::ptrdiff_t>(pivot * n));
      result = -result;
    }
    result *= m[k * n + k];
    for (size_t i = k + 1; i < n; ++i) {
      const double factor = m[i * n + k] / m[k * n + k];
      for (size_t j = k; j < n; ++j) m[i * n + j] -= factor * m[k * n + j];
    }
  }
  return result;
}

void eval_det(EvalContext& context) {
  const Tensor& x = context.input(0);
  const auto n = static_cast<size_t>(x.dims().back());
  std::vector<double> data = read_doubles(x), out;
  const Dims dims(x.dims().begin(), x.dims().end() - 2);
  for (int64_t i = 0; i < elements(dims); ++i)
    out.push_back(determinant(std::span<double>(data).subspan(static_cast<size_t>(i) * n * n, n * n), n));
  context.set(0, write_doubles(x.dtype(), dims, out));
}

void infer_inverse(InferContext& context) {
  const Shape& x = context.shape(0);
  HONE_CHECK(x.rank() >= 2, "Inverse needs rank 2 or more, not {}", x.rank());
  check_equal(x[x.rank() - 1], x[x.rank() - 2], "rows and columns of Inverse's matrices");
  context.set(0, context.dtype(0), x);
}

/// By Gauss and Jordan, with the largest pivot of each column; `result` is a unit matrix. A matrix without an inverse gives
/// infinities or NaNs.
void invert(std::span<double> m, std::span<double> result, size_t n) {
  const auto row = [n](std::span<double> matrix, size_t i) { return matrix.subspan(i * n, n); };
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i)
      if (std::abs(m[i * n + k]) > std::abs(m[pivot * n + k])) pivot = i;
    for (const std::span<double> matrix : {m, result})
      if (pivot != k) std::ranges::swap_ranges(row(matrix, k), row(matrix, pivot));
    const double head = m[k * n + k];
    for (const std::span<double> matrix : {m, result})
      for (double& value : row(matrix, k)) value /= head;
    for (size_t i = 0; i < n; ++i) {
      const double factor = m[i * n + k];
      if (i == k || factor == 0) continue;
      for (const std::span<double> matrix : {m, result})
        for (size_t j = 0; j < n; ++j) matrix[i * n + j] -= factor * matrix[k * n + j];
    }
  }
}

void eval_inverse(EvalContext& context) {
  const Tensor& x = context.input(0);
  const auto n = static_cast<size_t>(x.dims().back());
  std::vector<double> data = read_doubles(x), out(data.size());
  for (size_t at = 0; at < data.size(); at += n * n) {
    for (size_t i = 0; i < n; ++i) out[at + i * n + i] = 1;
    invert(std::span<double>(data).subspan(at, n * n), std::span<double>(out).subspan(at, n * n), n);
  }
  context.set(0, write_doubles(x.dtype(), x.dims(), out));
}

}  // namespace

const OpDef inverse{.name = "Inverse",
                    .infer = infer_inverse,
                    .eval = eval_inverse,
                    .onnx = {{"Inverse", 1, kEveryLater, nullptr, "com.microsoft", 0x1}}};
const OpDef det{.name = "Det", .infer = infer_det, .eval = eval_det, .onnx = {{"Det", 11}}};
const OpDef trilu{.name = "Trilu",
                  .attrs = {{"upper", AttrKind::integer, int64_t{1}}},
                  .min_inputs = 1,
                  .max_inputs = 2,
                  .infer = infer_trilu,
                  .eval = eval_trilu,
                  .onnx = {{"Trilu", 14}}};
const OpDef eye_like{.name = "EyeLike",
                     .attrs = {{"k", AttrKind::integer, int64_t{0}}},
                     .infer = infer_eye,
                     .eval = eval_eye,
                     .onnx = {{"EyeLike", 9, kEveryLater, import_eye}}};

}  // namespace hone::ops
