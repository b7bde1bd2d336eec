// SPDX-License-Identifier: Apache-2.0

#include "regions/integer_region.h"

#include <algorithm>
#include <cmath>

#include "ops/ops.h"
#include "ops/support.h"
#include "regions/match_region.h"

namespace hone {
namespace {

/// Scales between which sums, scaled and divided, stay far from the ends of f32.
constexpr float kLargestScale = 0x1p30F, kSmallestScale = 0x1p-30F;

bool is_byte(DType dtype) { return dtype == DType::u8 || dtype == DType::i8; }
bool is_one(const Value* value) { return value->type.shape.elements() == Dim(1); }
bool is_moderate(float number) { return std::fabs(number) <= kLargestScale; }

std::string reason_against_operands_of(const Graph& region, const Node& node) {
  const Value *a = node.input(0), *b = node.input(1), *a_zero = node.input(2), *b_zero = node.input(3);
  if (input_index(region, a) < 0 || !b->is_constant()) return "its weights are no constant";
  if (a->type.shape.elements() == Dim(0) || node.output()->type.shape.elements() == Dim(0)) return "empty operands";
  if (a_zero != nullptr && !is_one(a_zero)) return "each row has a zero point";
  if (a_zero != nullptr && !a_zero->is_constant() && input_index(region, a_zero) < 0)
    return "the zero point depends on the input's shape";
  if (b_zero != nullptr && !b_zero->is_constant()) return "the weights' zero points are no constant";
  return {};
}

std::string reason_against_factors_of(const Graph& region, const Node& node) {
  const Value *a = node.input(0), *b = node.input(1), *c = node.output();
  if (input_index(region, a) < 0 || input_index(region, b) < 0) return "an operand is a constant";
  for (const Value* value : {a, b, c})
    if (value->type.shape.elements() == Dim(0)) return "empty operands";
  if (a->type.shape.rank() < 2 || b->type.shape.rank() < 2) return "an operand is a vector";
  for (const size_t i : {size_t{2}, size_t{3}})
    if (const Value* zero = node.input(i); zero != nullptr && (!zero->is_constant() || !is_one(zero)))
      return "a zero point is not one number that is known";
  return {};
}

/// Bytes are made of floats that are certainly finite.
std::string reason_against_bytes(const SumsRegion& region, const SumsCode& code, int64_t columns) {
  const RegionMatch& match = region.match;
  if (!code.result) {
    if (code.rounding || code.residual) return "its result is rounded to bytes and back";
    return {};
  }
  if (match.residual >= 0 && !code.residual) return "bytes and a residual in floats";
  if (code.factor_input >= 0) return "bytes and a scale that is no constant";
  for (const Quantization& type : {code.rounding, code.residual, code.result})
    if (type && (type.scale < kSmallestScale || type.scale > kLargestScale)) return "a scale of bytes is extreme";
  const auto moderate = [](const std::vector<float>& values) { return std::ranges::all_of(values, is_moderate); };
  if (!moderate(region.factor()) || !moderate(region.bias(columns))) return "a factor of the sums is extreme";
  return {};
}

SumsCode sums_of(const Graph& region, const RegionMatch& match) {
  SumsCode code;
  if (const Value* zero = match.anchor->input(2); zero != nullptr && zero->is_constant())
    code.zero = zero->constant->integer(0);
  else if (zero != nullptr) code.zero_input = input_index(region, zero);
  if (match.factor != nullptr) {
    code.factor = is_one(match.factor) ? Factor::one : Factor::columns;
    code.factor_input = match.factor->is_constant() ? -1 : input_index(region, match.factor);
  }
  code.rounding = match.rounding, code.residual = match.residual_type, code.result = match.result_type;
  return code;
}

/// The match of an anchor, refused where it is not one of such sums.
SumsRegion match_sums(const Graph& region, const Node& node, size_t channel_axis, std::string reason) {
  if (!reason.empty()) return {{.anchor = &node, .refusal = std::move(reason)}};
  SumsRegion result{match_region(region, &node, channel_axis)};
  RegionMatch& match = result.match;
  if (match && region.node_count() > 1 && match.factor == nullptr) match.refusal = "its sums are not multiplied";
  const Shape& sums = node.output()->type.shape;
  const int64_t columns = sums[sums.rank() - channel_axis].value();
  if (match) match.refusal = reason_against_bytes(result, sums_of(region, match), columns);
  return result;
}

}  // namespace

void SumsCode::require_operands(const EpilogueCode& epilogue, int64_t columns, const KernelShapes& shapes) const {
  const auto count = static_cast<int64_t>(shapes.inputs.size());
  HONE_CHECK(zero_input < count && factor_input < count && epilogue.residual < count && shapes.outputs.size() == 1,
             "sums of integers in the plan have {} inputs and {} results", count, shapes.outputs.size());
  const auto input = [&](int64_t i) -> const ConcreteType& { return shapes.inputs[static_cast<size_t>(i)]; };
  const ConcreteType& type = shapes.outputs[0];
  for (const Quantization& bytes : {rounding, residual, result})
    HONE_CHECK(!bytes || is_byte(bytes.dtype), "sums of integers in the plan become {}", name_of(bytes.dtype));
  HONE_CHECK(type.dtype == (factor == Factor::none ? DType::i32 : result.dtype), "sums of integers in the plan are {}",
             name_of(type.dtype));
  HONE_CHECK(result || (!rounding && !residual), "sums of integers in the plan are rounded to bytes and back");
  if (zero_input >= 0)
    HONE_CHECK(is_byte(input(zero_input).dtype) && elements(input(zero_input).dims) == 1,
               "sums of integers in the plan have zero points {}", join_dims(input(zero_input).dims));
  if (factor_input >= 0)
    HONE_CHECK(input(factor_input).dtype == DType::f32 && elements(input(factor_input).dims) == factors(columns),
               "sums of integers in the plan have factors {}", join_dims(input(factor_input).dims));
  const bool plain = !epilogue.bias && epilogue.residual < 0 && epilogue.activation.kind == ActivationKind::none;
  HONE_CHECK(factor != Factor::none || plain, "sums of integers in the plan have floats added");
  if (epilogue.residual < 0) return;
  ConcreteType added = type;
  added.dtype = residual.dtype;
  HONE_CHECK(input(epilogue.residual) == added && (!result || residual),
             "a kernel in the plan adds tensors of different sizes");
}

void IntegerLinearCode::require_operands(const KernelShapes& shapes) const {
  sums.require_operands(epilogue, n, shapes);
  HONE_CHECK(input < static_cast<int64_t>(shapes.inputs.size()), "an integer matmul in the plan has no input {}",
             input);
  const ConcreteType &a = shapes.inputs[static_cast<size_t>(input)], &c = shapes.outputs[0];
  const int64_t rows = elements(a.dims) / k;
  const bool fits = is_byte(a.dtype) && rows > 0 && rows * k == elements(a.dims) && elements(c.dims) == rows * n &&
                    a.layout == Layout::linear && c.layout == Layout::linear;
  HONE_CHECK(fits, "an integer matmul in the plan takes {} to {}", join_dims(a.dims), join_dims(c.dims));
}

void IntegerProductCode::require_operands(const KernelShapes& shapes) const {
  const auto count = static_cast<int64_t>(shapes.inputs.size());
  HONE_CHECK(a < count && b < count && shapes.outputs.size() == 1, "an integer product in the plan has no input {}",
             std::max(a, b));
  const ConcreteType &left = shapes.inputs[static_cast<size_t>(a)], &right = shapes.inputs[static_cast<size_t>(b)],
                     &result = shapes.outputs[0];
  const auto fits = [](const ConcreteType& type) {
    return type.dims.size() >= 2 && elements(type.dims) > 0 && type.layout == Layout::linear;
  };
  HONE_CHECK(is_byte(left.dtype) && is_byte(right.dtype) && fits(left) && fits(right) && fits(result) &&
                 sums.zero_input < 0 && sums.factor_input < 0,
             "an integer product in the plan takes {} and {}", join_dims(left.dims), join_dims(right.dims));
  sums.require_operands(epilogue, result.dims.back(), shapes);
}

void IntegerConvCode::require_operands(const KernelShapes& shapes) const {
  sums.require_operands(conv.epilogue, conv.channels, shapes);
  conv.require_window(shapes);
  const ConcreteType &x = conv.input_type(shapes), &y = shapes.outputs[0];
  const bool fits = is_byte(x.dtype) && elements(x.dims) > 0 && elements(y.dims) > 0;
  HONE_CHECK(fits, "an integer convolution in the plan takes {} to {}", join_dims(x.dims), join_dims(y.dims));
}

std::optional<IntegerLinearRegion> read_integer_linear_region(const Graph& region) {
  const Node* node = anchor_of(region, ops::mat_mul_integer);
  if (node == nullptr) return std::nullopt;
  const Shape& weights = node->input(1)->type.shape;
  if (weights.rank() != 2) return IntegerLinearRegion{{{.anchor = node, .refusal = "its weights are no matrix"}}, {}};
  IntegerLinearRegion result{match_sums(region, *node, 1, reason_against_operands_of(region, *node)), {}};
  const RegionMatch& match = result.match;
  if (!match) return result;
  const Dims w = weights.values();
  result.code = {.input = input_index(region, node->input(0)),
                 .n = w[1],
                 .k = w[0],
                 .epilogue = epilogue_code(match, !match.biases.empty()),
                 .sums = sums_of(region, match)};
  return result;
}

std::optional<IntegerProductRegion> read_integer_product_region(const Graph& region) {
  const Node* node = anchor_of(region, ops::mat_mul_integer);
  if (node == nullptr || node->input(1)->is_constant()) return std::nullopt;
  IntegerProductRegion result{match_sums(region, *node, 1, reason_against_factors_of(region, *node)), {}};
  RegionMatch& match = result.match;
  if (!match) return result;
  if (match.addend != nullptr) match.refusal = "integers are added to the sums";
  if (match.factor != nullptr && !match.factor->is_constant()) match.refusal = "the scale is no constant";
  const Value* zero = node->input(3);
  result.code = {.a = input_index(region, node->input(0)),
                 .b = input_index(region, node->input(1)),
                 .transposed_b = node->attrs.integer("trans_b") != 0,
                 .b_zero = zero == nullptr ? 0 : zero->constant->integer(0),
                 .epilogue = epilogue_code(match, !match.biases.empty()),
                 .sums = sums_of(region, match)};
  return result;
}

std::optional<IntegerConvRegion> read_integer_conv_region(const Graph& region) {
  const Node* node = anchor_of(region, ops::conv_integer);
  if (node == nullptr) return std::nullopt;
  const Shape& weights = node->input(1)->type.shape;
  IntegerConvRegion result{match_sums(region, *node, weights.rank() - 1, reason_against_operands_of(region, *node)),
                           {}};
  RegionMatch& match = result.match;
  if (!match) return result;
  const WindowAttrs window(node->attrs, weights.rank() - 2, kernel_of_weight(weights));
  if (std::optional<ConvCode> code = conv_code(region, match, window, !match.biases.empty()))
    result.code = {std::move(*code), sums_of(region, match)};
  else match.refusal = kBeyondBounds;
  return result;
}

std::vector<float> SumsRegion::factor() const {
  if (match.factor == nullptr || !match.factor->is_constant()) return {};
  const Floats values(*match.factor->constant);
  return {values.data(), values.data() + values.size()};
}

std::vector<int32_t> SumsRegion::addends(int64_t columns) const {
  std::vector<int32_t> result(static_cast<size_t>(columns), 0);
  if (match.addend == nullptr) return result;
  const std::vector<int64_t> values = match.addend->constant->integers();
  for (size_t i = 0; i < result.size(); ++i) result[i] = static_cast<int32_t>(values[values.size() == 1 ? 0 : i]);
  return result;
}

std::vector<float> SumsRegion::bias(int64_t columns) const { return collect_bias(match, nullptr, columns); }

SignedWeights::SignedWeights(const Node& node) {
  const Tensor& b = *node.input(1)->constant;
  const int32_t shift = b.dtype() == DType::u8 ? 128 : 0;
  const bool matrix = node.is(ops::mat_mul_integer);
  const Dims& dims = b.dims();
  const int64_t columns = dims[matrix ? 1 : 0];
  depth = dims[matrix ? 0 : 1];
  taps = b.size() / (depth * columns);
  const std::vector<int64_t> from = b.integers();
  values.reserve(from.size());
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t c = 0; c < depth; ++c) {
        const int64_t at = matrix ? c * columns + j : (j * depth + c) * taps + tap;
        values.push_back(static_cast<int32_t>(from[static_cast<size_t>(at)]) - shift);
      }
  const std::vector<int64_t> zero =
      node.input(3) == nullptr ? std::vector<int64_t>{0} : node.input(3)->constant->integers();
  for (int64_t j = 0; j < columns; ++j)
    zeros.push_back(static_cast<int32_t>(zero[zero.size() == 1 ? 0 : static_cast<size_t>(j)]) - shift);
}

bool SignedWeights::have_zeros() const {
  return std::ranges::any_of(zeros, [](int32_t zero) { return zero != 0; });
}

void SignedWeights::take_off_zeros() {
  const auto k = static_cast<size_t>(depth * taps);
  for (size_t i = 0; i < values.size(); ++i) values[i] -= zeros[i / k];
  std::ranges::fill(zeros, 0);
}

uint32_t SignedWeights::lean(int64_t column) const {
  const int64_t k = depth * taps;
  auto lean = static_cast<uint32_t>(k) * static_cast<uint32_t>(zeros[static_cast<size_t>(column)]);
  for (int64_t p = 0; p < k; ++p) lean -= static_cast<uint32_t>(values[static_cast<size_t>(column * k + p)]);
  return lean;
}

}  // namespace hone
