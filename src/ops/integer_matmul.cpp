// SPDX-License-Identifier: Apache-2.0
//
// MatMulInteger: 8-bit integers multiplied into sums of 32 bits, exact but for sums that leave them, which wrap around. What else
// multiplies quantised matrices becomes one of it with the scales behind.
#include <algorithm>

#include "base/node_error.h"
#include "ops/expansions.h"
#include "ops/matmul_shape.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

constexpr int64_t kParallel = 1 << 16;  // products that are worth waking a team for

// ---- MatMulInteger(a, b, a_zero?, b_zero?) ----
// A zero point is one for all, one per row of a, or one per column of b; the axes of the matrices have the last places. With trans_b,
// which passes write, matrices of b are [N, K].

/// One value, or one for each index of an axis that is `back` from the end and nothing else.
bool is_zero_of(const Shape& zero, size_t back, const Dim& size) {
  return zero.elements() == Dim(1) ||
         (zero.elements() == size && zero.rank() >= back && zero[zero.rank() - back] == size);
}
Dim rows_of(const Shape& a) { return a.rank() < 2 ? Dim(1) : a[a.rank() - 2]; }
Dim columns_of(const Shape& b) { return b.rank() < 2 ? Dim(1) : b[b.rank() - 1]; }

void check_zero(const InferContext& context, size_t operand, size_t back, const Dim& size) {
  if (!context.has(operand)) return;
  const Shape& zero = context.shape(operand);
  HONE_CHECK(is_zero_of(zero, back, size), "zero points {} of MatMulInteger are neither one nor {}", zero.text(),
             size.text());
}

void infer_mat_mul_integer(InferContext& context) {
  for (const size_t operand : {size_t{0}, size_t{1}}) {
    const DType dtype = context.dtype(operand);
    HONE_CHECK_AS(TypeError, dtype == DType::u8 || dtype == DType::i8, "operand {} of MatMulInteger is {}", operand,
                  name_of(dtype));
  }
  const Shape& a = context.shape(0);
  Shape b = context.shape(1);
  if (context.attrs().integer("trans_b") != 0) {
    HONE_CHECK(b.rank() >= 2, "operand 1 of MatMulInteger is no matrix to transpose");
    std::swap(b[b.rank() - 2], b[b.rank() - 1]);
  }
  context.set(0, DType::i32, matmul_shape(a, b));
  check_zero(context, 2, 2, rows_of(a));
  check_zero(context, 3, 1, columns_of(b));
}

/// The operand without its zero points: element i has the one of index i / inner % count.
std::vector<int32_t> without_zeros(const Tensor& x, const Tensor* zeros, int64_t inner) {
  std::vector<int32_t> result(static_cast<size_t>(x.size()));
  const std::vector<int64_t> zero = zeros == nullptr ? std::vector<int64_t>{0} : zeros->integers();
  const auto count = static_cast<int64_t>(zero.size());
  const auto fill = [&]<typename T>(std::span<const T> from) {
    for (int64_t i = 0; i < x.size(); ++i)
      result[static_cast<size_t>(i)] =
          static_cast<int32_t>(from[static_cast<size_t>(i)]) -
          static_cast<int32_t>(zero[static_cast<size_t>(count == 1 ? 0 : i / inner % count)]);
  };
  if (x.dtype() == DType::u8) fill(x.data<uint8_t>());
  else fill(x.data<int8_t>());
  return result;
}

void multiply_rows(int64_t begin, int64_t end, int64_t n, int64_t k, const int32_t* a, const int32_t* b, uint32_t* c) {
  for (int64_t i = begin; i < end; ++i)
    for (int64_t p = 0; p < k; ++p) {
      const auto x = static_cast<uint32_t>(a[i * k + p]);
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += x * static_cast<uint32_t>(b[p * n + j]);
    }
}

/// Matrices [N, K] become [K, N].
std::vector<int32_t> transposed(const std::vector<int32_t>& from, int64_t n, int64_t k) {
  std::vector<int32_t> result(from.size());
  const auto count = static_cast<int64_t>(from.size());
  for (int64_t i = 0; i < count; ++i)
    result[static_cast<size_t>(i / (n * k) * n * k + i % k * n + i / k % n)] = from[static_cast<size_t>(i)];
  return result;
}

void eval_mat_mul_integer(EvalContext& context) {
  const Tensor &a = context.input(0), &b = context.input(1);
  const bool turned = context.attrs().integer("trans_b") != 0;
  Dims columns = b.dims();
  if (turned) std::swap(columns[columns.size() - 2], columns.back());
  const MatMulShape shape(a.dims(), columns);
  const std::vector<int32_t> left = without_zeros(a, context.has(2) ? &context.input(2) : nullptr, shape.k);
  std::vector<int32_t> right = without_zeros(b, context.has(3) ? &context.input(3) : nullptr, turned ? shape.k : 1);
  if (turned) right = transposed(right, shape.n, shape.k);
  const std::vector<uint32_t> c =
      shape.run<uint32_t>(left.data(), right.data(), [&](const auto* x, const auto* y, uint32_t* z) {
        if (shape.m * shape.n * shape.k < kParallel) return multiply_rows(0, shape.m, shape.n, shape.k, x, y, z);
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < shape.m; ++i) multiply_rows(i, i + 1, shape.n, shape.k, x, y, z);
      });
  TensorBuilder result(DType::i32, shape.result);
  std::ranges::transform(c, result.data<int32_t>().begin(), [](uint32_t value) { return static_cast<int32_t>(value); });
  context.set(0, result.finish());
}

/// Zero points per row of a matrix, which ONNX gives as a list, as a column.
Value* per_row(ImportContext& context, Value* value) {
  if (value == nullptr || value->type.shape.rank() != 1 || value->type.shape[0] == Dim(1)) return value;
  return made(context, "Unsqueeze", {value, integer_constant(context, {1})});
}

Value* without_zero(ImportContext& context, Value* x, Value* zero) {
  Value* wide = as_type(context, x, DType::i32);
  return zero == nullptr ? wide : made(context, "Sub", {wide, as_type(context, zero, DType::i32)});
}

/// Zero points of their own for each matrix of a stack are taken off before.
Value* sums(ImportContext& context, Value* a, Value* b, Value* a_zero, Value* b_zero) {
  a_zero = per_row(context, a_zero);
  const Shape &left = a->type.shape, &right = b->type.shape;
  if ((a_zero == nullptr || is_zero_of(a_zero->type.shape, 2, rows_of(left))) &&
      (b_zero == nullptr || is_zero_of(b_zero->type.shape, 1, columns_of(right))))
    return made(context, "MatMulInteger", {a, b, a_zero, b_zero});
  return made(context, "MatMul", {without_zero(context, a, a_zero), without_zero(context, b, b_zero)});
}

void import_mat_mul_integer(ImportContext& context) {
  context.set_output(0, sums(context, context.input(0), context.input(1), given(context, 2), given(context, 3)));
}

Value* dequantized(ImportContext& context, size_t first, int64_t axis) {
  return made(context, "DequantizeLinear", {context.input(first), context.input(first + 1), context.input(first + 2)},
              {{"axis", axis}});
}

bool is_byte(const Value* value) { return value->type.dtype == DType::u8 || value->type.dtype == DType::i8; }

/// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero
void import_q_linear_mat_mul(ImportContext& context) {
  const Value *a = context.input(0), *b = context.input(3);
  Value* product = nullptr;
  if (is_byte(a) && is_byte(b)) {
    product = as_type(context, sums(context, context.input(0), context.input(3), context.input(2), context.input(5)),
                      DType::f32);
    Value *rows = per_row(context, as_type(context, context.input(1), DType::f32)),
          *columns = as_type(context, context.input(4), DType::f32);
    if (rows->type.shape.elements() == Dim(1)) columns = made(context, "Mul", {columns, rows});
    else product = made(context, "Mul", {product, rows});
    product = made(context, "Mul", {product, columns});
  } else {  // floats of 8 bits
    product = made(context, "MatMul",
                   {dequantized(context, 0, static_cast<int64_t>(a->type.shape.rank()) - 2),
                    dequantized(context, 3, static_cast<int64_t>(b->type.shape.rank()) - 1)});
    product = as_type(context, product, DType::f32);
  }
  Value* scale = as_type(context, context.input(6), DType::f32);
  context.set_output(0, made(context, "QuantizeLinear", {product, scale, context.input(7)}, {{"axis", int64_t{1}}}));
}

int64_t flops(const Node& node, const SymbolValues& sizes) {
  const Dims left = node.input(0)->type.shape.evaluate(sizes);
  return left.empty() ? 0 : 2 * left.back() * elements(node.output()->type.shape.evaluate(sizes));
}

}  // namespace

const OpDef ops::mat_mul_integer{.name = "MatMulInteger",
                                 .attrs = {integer_attr("trans_b", 0)},
                                 .min_inputs = 2,
                                 .max_inputs = 4,
                                 .infer = infer_mat_mul_integer,
                                 .eval = eval_mat_mul_integer,
                                 .onnx = {{"MatMulInteger", 10, kEveryLater, import_mat_mul_integer},
                                          {"QLinearMatMul", 10, kEveryLater, import_q_linear_mat_mul}},
                                 .traits = {.layer = "MatrixMultiply", .flops = flops}};

}  // namespace hone
