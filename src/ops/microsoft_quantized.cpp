// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft: operators on quantised tensors, written as dequantise, compute, quantise; and matmuls with weights of few
// bits, which are unpacked when the model is read.
#include "ops/expansions.h"
#include "ops/movement.h"
#include "ops/support.h"

namespace hone {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

Value* dequantized(ImportContext& context, Value* x, Value* scale, Value* zero) {
  return made(context, "DequantizeLinear", {x, scale, zero}, {{"axis", int64_t{0}}});
}

/// Back to the type of `like` when no zero point says it.
Value* quantized(ImportContext& context, Value* y, Value* scale, Value* zero, const Value* like) {
  if (zero == nullptr) zero = scalar_like(context, like, 0);
  return made(context, "QuantizeLinear", {y, scale, zero}, {{"axis", int64_t{0}}});
}

void refuse_channels_last(const ImportContext&, const Attrs& attrs) {
  HONE_CHECK(attrs.integer_or("channels_last", 0) == 0,
             "channels_last=1 is not supported; save the model without layout changes");
}

/// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero
template <bool product>
void import_binary(ImportContext& context) {
  Value* a = dequantized(context, context.input(0), context.input(1), given(context, 2));
  Value* b = dequantized(context, context.input(3), context.input(4), given(context, 5));
  context.set_output(0, quantized(context, made(context, product ? "Mul" : "Add", {a, b}), context.input(6),
                                  given(context, 7), context.input(0)));
}

/// x, x_scale, x_zero, y_scale, y_zero around one operator with these attributes.
void import_unary(ImportContext& context, std::string_view op, Attrs attrs) {
  Value* x = dequantized(context, context.input(0), context.input(1), given(context, 2));
  context.set_output(0, quantized(context, made(context, op, {x}, std::move(attrs)), context.input(3),
                                  given(context, 4), context.input(0)));
}

void import_sigmoid(ImportContext& context) { import_unary(context, "Sigmoid", {}); }
void import_leaky_relu(ImportContext& context) {
  import_unary(context, "LeakyRelu", {{"alpha", context.attrs().has("alpha") ? context.attrs().real("alpha") : 0.01}});
}
void import_global_average(ImportContext& context) {
  refuse_channels_last(context, context.attrs());
  import_unary(context, "GlobalAveragePool", {});
}
void import_average(ImportContext& context) {
  refuse_channels_last(context, context.attrs());
  Attrs attrs = context.attrs();
  attrs.erase("channels_last");
  import_unary(context, "AveragePool", std::move(attrs));
}

/// y_scale, y_zero, then x, scale, zero of each part
void import_concat(ImportContext& context) {
  std::vector<Value*> parts;
  for (size_t i = 2; i + 1 < context.inputs(); i += 3)
    parts.push_back(dequantized(context, context.input(i), context.input(i + 1), given(context, i + 2)));
  HONE_CHECK(!parts.empty(), "QLinearConcat has nothing to join");
  context.set_output(
      0, quantized(context, made(context, "Concat", std::move(parts), {{"axis", context.attrs().integer("axis")}}),
                   context.input(0), context.input(1), context.input(2)));
}

/// In models of an opset before 13 everything from the axis on is one row.
void import_softmax(ImportContext& context) {
  const int64_t axis = context.attrs().integer_or("axis", -1);
  Value* x = dequantized(context, context.input(0), context.input(1), given(context, 2));
  const bool flattens = context.attrs().integer_or("opset", 13) < 13;
  Value* rows = flattens ? made(context, "Flatten", {x}, {{"axis", axis}}) : x;
  Value* y = made(context, "Softmax", {rows}, {{"axis", flattens ? int64_t{-1} : axis}});
  if (flattens) y = made(context, "Reshape", {y, made(context, "Shape", {x})});
  context.set_output(0, quantized(context, y, context.input(3), given(context, 4), context.input(0)));
}

/// condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero
void import_where(ImportContext& context) {
  Value* x = dequantized(context, context.input(1), context.input(2), given(context, 3));
  Value* y = dequantized(context, context.input(4), context.input(5), given(context, 6));
  context.set_output(0, quantized(context, made(context, "Where", {context.input(0), x, y}), context.input(7),
                                  given(context, 8), context.input(1)));
}

// ---- Matmuls ----

/// a, a_scale, a_zero, b, b_scale, b_zero, c?, y_scale?, y_zero?; c counts steps of a_scale b_scale. Without y_scale the
/// result stays in floats.
void import_q_gemm(ImportContext& context) {
  const Attrs& attrs = context.attrs();
  const double alpha = attrs.has("alpha") ? attrs.real("alpha") : 1;
  const int64_t trans_a = attrs.integer_or("transA", 0), trans_b = attrs.integer_or("transB", 0);
  Value* a = dequantized(context, context.input(0), context.input(1), given(context, 2));
  Value* b = made(context, "DequantizeLinear", {context.input(3), context.input(4), given(context, 5)},
                  {{"axis", int64_t{trans_b != 0 ? 0 : 1}}});
  Value* y = made(context, "Gemm", {a, b}, {{"alpha", alpha}, {"transA", trans_a}, {"transB", trans_b}});
  if (Value* c = given(context, 6)) {
    Value* step = made(context, "Mul", {context.input(1), context.input(4)});
    if (alpha != 1) step = made(context, "Mul", {step, scalar_like(context, step, alpha)});
    y = plus(context, y, made(context, "Mul", {as_type(context, c, step->type.dtype), step}));
  }
  Value* y_scale = given(context, 7);
  context.set_output(0, y_scale == nullptr ? y : quantized(context, y, y_scale, given(context, 8), context.input(0)));
}

/// The matmul of integers, scaled.
Value* scaled_product(ImportContext& context, Value* a, Value* b, Value* a_scale, Value* b_scale, Value* a_zero,
                      Value* b_zero) {
  Value* sum = made(context, "MatMulInteger", {a, b, a_zero, b_zero});
  return made(context, "Mul", {as_type(context, sum, a_scale->type.dtype), made(context, "Mul", {a_scale, b_scale})});
}

/// a, b, a_scale, b_scale, a_zero?, b_zero?, bias?
void import_integer_to_float(ImportContext& context) {
  Value* y = scaled_product(context, context.input(0), context.input(1), context.input(2), context.input(3),
                            given(context, 4), given(context, 5));
  context.set_output(0, plus(context, y, given(context, 6)));
}

/// a, b, b_scale, b_zero?, bias?
void import_dynamic_matmul(ImportContext& context) {
  const Node* a = context.add("DynamicQuantizeLinear", {context.input(0)});
  Value* y = scaled_product(context, a->outputs[0], context.input(1), a->outputs[1], context.input(2), a->outputs[2],
                            given(context, 3));
  context.set_output(0, plus(context, y, given(context, 4)));
}

// ---- MatMulNBits(a, b, scales, zeros?, group index?, bias?) ----

/// Field `index` of a row of fields of `bits` bits, the first in the lowest bits.
int64_t field(std::span<const uint8_t> row, int64_t index, int64_t bits) {
  const int64_t bit = index * bits;
  return (row[static_cast<size_t>(bit / 8)] >> (bit % 8)) & ((1 << bits) - 1);
}

/// b: [n, blocks of k, bytes]; scales: [n * blocks]; zeros as numbers or packed like b. The result is k x n.
Tensor unpacked_weight(const Tensor& b, const Tensor& scales, const Tensor* zeros, const Attrs& attrs) {
  const int64_t k = attrs.integer("K"), n = attrs.integer("N"), bits = attrs.integer_or("bits", 4),
                block = attrs.integer("block_size");
  constexpr int64_t kMost = INT32_MAX;  // what is multiplied below fits
  HONE_CHECK(
      (bits == 2 || bits == 4 || bits == 8) && block >= 16 && k > 0 && n > 0 && block < kMost && k < kMost && n < kMost,
      "MatMulNBits with {} bits in blocks of {}", bits, block);
  const int64_t blocks = (k + block - 1) / block, row_bytes = blocks * block * bits / 8,
                zero_bytes = (blocks * bits + 7) / 8;
  HONE_CHECK(b.dtype() == DType::u8 && b.size() == n * row_bytes && scales.size() == n * blocks,
             "the packed weight or its scales do not have {} rows of {} blocks", n, blocks);
  const bool packed_zeros = zeros != nullptr && zeros->dtype() == DType::u8;
  HONE_CHECK(zeros == nullptr || zeros->size() == n * (packed_zeros ? zero_bytes : blocks),
             "the zero points do not have {} rows of {} blocks", n, blocks);
  const std::vector<double> factor = read_doubles(scales),
                            shifts = zeros != nullptr && !packed_zeros ? read_doubles(*zeros) : std::vector<double>();
  std::vector<float> out(static_cast<size_t>(k * n));
  for (int64_t row = 0; row < n; ++row) {
    const std::span<const uint8_t> fields =
        b.data<uint8_t>().subspan(static_cast<size_t>(row * row_bytes), static_cast<size_t>(row_bytes));
    for (int64_t i = 0; i < k; ++i) {
      const int64_t at = row * blocks + i / block;
      double zero = static_cast<double>(1 << (bits - 1));
      if (packed_zeros)
        zero = static_cast<double>(
            field(zeros->data<uint8_t>().subspan(static_cast<size_t>(row * zero_bytes)), i / block, bits));
      else if (zeros != nullptr) zero = shifts[static_cast<size_t>(at)];
      out[static_cast<size_t>(i * n + row)] =
          static_cast<float>((static_cast<double>(field(fields, i, bits)) - zero) * factor[static_cast<size_t>(at)]);
    }
  }
  return write_floats(scales.dtype(), {k, n}, out);
}

void import_n_bits(ImportContext& context) {
  for (const size_t i : {size_t{1}, size_t{2}, size_t{3}})
    HONE_CHECK(given(context, i) == nullptr || context.input(i)->is_constant(),
               "operand {} of MatMulNBits must be a constant", i);
  HONE_CHECK(given(context, 4) == nullptr, "MatMulNBits with a group index is not supported");
  const Value* zeros = given(context, 3);
  Value* weight = context.constant(unpacked_weight(*context.input(1)->constant, *context.input(2)->constant,
                                                   zeros == nullptr ? nullptr : &*zeros->constant, context.attrs()));
  context.set_output(0, plus(context, made(context, "MatMul", {context.input(0), weight}), given(context, 5)));
}

const OnnxRule kRules[] = {
    {"QLinearAdd", 1, kEveryLater, import_binary<false>, kDomain, 0x5b},
    {"QLinearMul", 1, kEveryLater, import_binary<true>, kDomain, 0x5b},
    {"QLinearSigmoid", 1, kEveryLater, import_sigmoid, kDomain, 0xb},
    {"QLinearLeakyRelu", 1, kEveryLater, import_leaky_relu, kDomain, 0xb},
    {"QLinearAveragePool", 1, kEveryLater, import_average, kDomain, 0xb},
    {"QLinearGlobalAveragePool", 1, kEveryLater, import_global_average, kDomain, 0xb},
    {"QLinearConcat", 1, kEveryLater, import_concat, kDomain, 0x7},
    {"QLinearSoftmax", 1, kEveryLater, import_softmax, kDomain, 0xb},
    {"QLinearWhere", 1, kEveryLater, import_where, kDomain, 0xb7},
    {"QGemm", 1, kEveryLater, import_q_gemm, kDomain, 0x3f},
    {"MatMulIntegerToFloat", 1, kEveryLater, import_integer_to_float, kDomain, 0xf},
    {"DynamicQuantizeMatMul", 1, kEveryLater, import_dynamic_matmul, kDomain, 0x7},
    {"MatMulNBits", 1, kEveryLater, import_n_bits, kDomain, 0x7},
};

}  // namespace

std::span<const OnnxRule> microsoft_quantized_rules() { return kRules; }

}  // namespace hone
