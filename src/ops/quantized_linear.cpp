// SPDX-License-Identifier: Apache-2.0
//
// QuantizedLinear, the passes' own: x[..., K] times weights that stay integers of few bits, [K, N], because reading them is what
// a product of few rows takes its time for. Each column has a scale, and perhaps a zero point, for every `block_size` rows; the
// last block may be shorter. It means DequantizeLinear of the weights, then MatMul, x being rounded nowhere.
#include "base/node_error.h"
#include "ops/gemm_loops.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

bool is_small_integer(DType dtype) { return is_integer(dtype) && bits_of(dtype) <= 8; }

void check_blocks(const InferContext& context, size_t operand, const Dim& blocks, const Dim& columns,
                  std::string_view what) {
  check_rank(context, operand, 2, what);
  check_equal(context.shape(operand)[0], blocks, what);
  check_equal(context.shape(operand)[1], columns, what);
}

void infer_quantized_linear(InferContext& context) {
  check_rank(context, 1, 2, "QuantizedLinear's weight");
  const Shape &x = context.shape(0), &w = context.shape(1);
  HONE_CHECK(x.rank() >= 1, "QuantizedLinear of a scalar");
  HONE_CHECK_AS(TypeError, is_small_integer(context.dtype(1)), "QuantizedLinear's weight is {}",
                name_of(context.dtype(1)));
  const int64_t block = context.attrs().integer("block_size");
  HONE_CHECK(block > 0 && w[0].is_constant(), "QuantizedLinear in blocks of {} of {}", block, w[0].text());
  check_equal(x[x.rank() - 1], w[0], "inner sizes of QuantizedLinear");
  const Dim blocks((w[0].value() + block - 1) / block);
  check_blocks(context, 2, blocks, w[1], "QuantizedLinear's scales");
  if (context.has(3)) check_blocks(context, 3, blocks, w[1], "QuantizedLinear's zero points");
  Shape result = x;
  result[x.rank() - 1] = w[1];
  context.set(0, context.dtype(0), std::move(result));
}

/// As DequantizeLinear gives them.
std::vector<float> dequantized(const EvalContext& context) {
  const Tensor& w = context.input(1);
  const auto k = static_cast<size_t>(w.dims()[0]), n = static_cast<size_t>(w.dims()[1]),
             block = static_cast<size_t>(context.attrs().integer("block_size"));
  const Floats codes(w);
  const std::vector<double> scales = read_doubles(context.input(2)),
                            zeros = context.has(3) ? read_doubles(context.input(3)) : std::vector<double>();
  std::vector<float> result(k * n);
  for (size_t p = 0; p < k; ++p)
    for (size_t j = 0; j < n; ++j) {
      const size_t at = p / block * n + j;
      result[p * n + j] = static_cast<float>(
          (static_cast<double>(codes.data()[p * n + j]) - (zeros.empty() ? 0 : zeros[at])) * scales[at]);
    }
  return result;
}

void eval_quantized_linear(EvalContext& context) {
  const Tensor& x = context.input(0);
  const std::vector<float> weights = dequantized(context);
  const int64_t k = context.input(1).dims()[0], n = context.input(1).dims()[1];
  Dims dims = x.dims();
  dims.back() = n;
  std::vector<float> y(static_cast<size_t>(elements(dims)), 0.0F);
  const Floats left(x);
  if (k > 0) add_matmul_parallel(x.size() / k, n, k, {left.data(), k, 1}, {weights.data(), n, 1}, y.data(), n);
  context.set(0, write_floats(x.dtype(), std::move(dims), y));
}

int64_t flops(const Node& node, const SymbolValues& sizes) {
  const Dims left = node.input(0)->type.shape.evaluate(sizes);
  return left.empty() ? 0 : 2 * left.back() * elements(node.output()->type.shape.evaluate(sizes));
}

bool rows_apart(const Node& node, size_t operand) { return operand == 0 && node.output()->type.shape.rank() >= 2; }

}  // namespace

const OpDef ops::quantized_linear{
    .name = "QuantizedLinear",
    .attrs = {required_attr("block_size", AttrKind::integer)},
    .min_inputs = 3,
    .max_inputs = 4,
    .infer = infer_quantized_linear,
    .eval = eval_quantized_linear,
    .traits = {.few_bits = FewBits::stays, .layer = "MatrixMultiply", .entries_apart = rows_apart, .flops = flops}};

}  // namespace hone
