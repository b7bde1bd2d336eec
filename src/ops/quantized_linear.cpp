// SPDX-License-Identifier: Apache-2.0
//
// QuantizedLinear, the passes' own: x[..., K] times weights that stay codes of few bits, [K, N], because reading them is what
// a product of few rows takes its time for. Codes are integers, floats of eight or four bits, or, with the attribute `table`, places
// in a table of 16 numbers. Each column has a scale, and perhaps a zero point, for every `block_size` rows; the last block may be
// shorter. It means DequantizeLinear of the weights, then MatMul, x being rounded nowhere.
//
// DequantizeTable is DequantizeLinear along axis 0 for codes of a table.
#include "base/node_error.h"
#include "ops/code_tables.h"
#include "ops/gemm_loops.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

bool is_code(DType dtype) {
  return (is_integer(dtype) && bits_of(dtype) <= 8) || dtype == DType::f8e4m3fn || dtype == DType::f8e5m2 ||
         dtype == DType::f4e2m1;
}

void check_table(const InferContext& context, size_t weights) {
  const std::string& table = context.attrs().text("table");
  if (table.empty()) return;
  code_table(table);
  HONE_CHECK(context.dtype(weights) == DType::u4, "codes of a table are {}, not u4", name_of(context.dtype(weights)));
}

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
  HONE_CHECK_AS(TypeError, is_code(context.dtype(1)), "QuantizedLinear's weight is {}", name_of(context.dtype(1)));
  check_table(context, 1);
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

/// What codes stand for before they are scaled.
std::vector<float> code_values(const Tensor& codes, std::string_view table) {
  if (table.empty()) {
    const Floats values(codes);
    return {values.data(), values.data() + values.size()};
  }
  std::vector<float> values;
  for (const int64_t code : codes.integers()) values.push_back(code_table(table)[static_cast<size_t>(code)]);
  return values;
}

void eval_quantized_linear(EvalContext& context) {
  const Tensor& x = context.input(0);
  const std::vector<float> weights =
      dequantized_weights(context.input(1), context.input(2), context.has(3) ? &context.input(3) : nullptr,
                          context.attrs().integer("block_size"), context.attrs().text("table"));
  const int64_t k = context.input(1).dims()[0], n = context.input(1).dims()[1];
  Dims dims = x.dims();
  dims.back() = n;
  std::vector<float> y(static_cast<size_t>(elements(dims)), 0.0F);
  const Floats left(x);
  if (k > 0) add_matmul_parallel(x.size() / k, n, k, {left.data(), k, 1}, {weights.data(), n, 1}, y.data(), n);
  context.set(0, write_floats(x.dtype(), std::move(dims), y));
}

void infer_dequantize_table(InferContext& context) {
  check_rank(context, 0, 2, "DequantizeTable's codes");
  check_table(context, 0);
  const Shape& w = context.shape(0);
  const int64_t block = context.attrs().integer("block_size");
  HONE_CHECK(block > 0 && w[0].is_constant(), "DequantizeTable in blocks of {} of {}", block, w[0].text());
  check_blocks(context, 1, Dim((w[0].value() + block - 1) / block), w[1], "DequantizeTable's scales");
  context.set(0, context.dtype(1), w);
}

void eval_dequantize_table(EvalContext& context) {
  const Tensor& codes = context.input(0);
  std::vector<float> values = code_values(codes, context.attrs().text("table"));
  const std::vector<double> scales = read_doubles(context.input(1));
  const auto n = static_cast<size_t>(codes.dims()[1]),
             block = static_cast<size_t>(context.attrs().integer("block_size"));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<double>(values[i]) * scales[i / n / block * n + i % n]);
  context.set(0, write_floats(context.input(1).dtype(), codes.dims(), values));
}

int64_t flops(const Node& node, const SymbolValues& sizes) {
  const Dims left = node.input(0)->type.shape.evaluate(sizes);
  return left.empty() ? 0 : 2 * left.back() * elements(node.output()->type.shape.evaluate(sizes));
}

bool rows_apart(const Node& node, size_t operand) { return operand == 0 && node.output()->type.shape.rank() >= 2; }

}  // namespace

std::vector<float> dequantized_weights(const Tensor& codes, const Tensor& scales, const Tensor* zeros, int64_t block,
                                       std::string_view table) {
  const auto k = static_cast<size_t>(codes.dims()[0]), n = static_cast<size_t>(codes.dims()[1]);
  const std::vector<float> values = code_values(codes, table);
  const std::vector<double> factors = read_doubles(scales),
                            shifts = zeros == nullptr ? std::vector<double>() : read_doubles(*zeros);
  std::vector<float> result(k * n);
  for (size_t p = 0; p < k; ++p)
    for (size_t j = 0; j < n; ++j) {
      const size_t at = p / static_cast<size_t>(block) * n + j;
      const double value = static_cast<double>(values[p * n + j]) - (shifts.empty() ? 0 : shifts[at]);
      result[p * n + j] = static_cast<float>(value * factors[at]);
    }
  return result;
}

const OpDef ops::dequantize_table{
    .name = "DequantizeTable",
    .attrs = {required_attr("block_size", AttrKind::integer), required_attr("table", AttrKind::text)},
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_dequantize_table,
    .eval = eval_dequantize_table};

const OpDef ops::quantized_linear{.name = "QuantizedLinear",
                                  .attrs = {required_attr("block_size", AttrKind::integer), text_attr("table", "")},
                                  .min_inputs = 3,
                                  .max_inputs = 4,
                                  .infer = infer_quantized_linear,
                                  .eval = eval_quantized_linear,
                                  .traits = {.few_bits = FewBits::gains,
                                             .keeps_type_from = 1,
                                             .layer = "MatrixMultiply",
                                             .entries_apart = rows_apart,
                                             .flops = flops}};

}  // namespace hone
