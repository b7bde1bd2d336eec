// SPDX-License-Identifier: Apache-2.0

#include "regions/quantized_region.h"

#include <algorithm>
#include <cmath>

#include "ops/ops.h"
#include "ops/support.h"
#include "regions/match_region.h"

namespace hone {
namespace {

std::string reason_against(const Graph& region, const Node& node) {
  const Value* x = node.input(0);
  if (input_index(region, x) < 0) return "its input is a constant";
  if (!is_float(x->type.dtype)) return fmt::format("input is {}", name_of(x->type.dtype));
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (node.input(i) != nullptr && !node.input(i)->is_constant()) return "weights are not constant";
  if (x->type.shape.elements() == Dim(0) || node.output()->type.shape.elements() == Dim(0)) return "empty operands";
  return {};
}

constexpr int kTableMiddle = 8;

/// What unsigned codes are moved by to be signed.
int middle_of(DType dtype) {
  const bool is_unsigned = dtype == DType::u8 || dtype == DType::u4 || dtype == DType::u2;
  return is_unsigned ? 1 << (bits_of(dtype) - 1) : 0;
}

std::vector<float> moved_zeros(const Value* given, float middle, size_t count) {
  std::vector<float> zeros(count, 0.0F);
  if (given != nullptr) {
    const Floats values(*given->constant);
    std::copy_n(values.data(), count, zeros.begin());
  }
  for (float& zero : zeros) zero -= middle;
  const bool any = std::ranges::any_of(zeros, [](float zero) { return zero != 0; });
  return any ? zeros : std::vector<float>();
}

std::vector<int8_t> signed_codes(const Tensor& given, CodeKind kind) {
  std::vector<int8_t> codes;
  if (kind != CodeKind::integer && is_float(given.dtype())) {
    const int middle = is_table(kind) ? kTableMiddle : 0;
    for (const uint8_t code : given.codes()) codes.push_back(static_cast<int8_t>(code - middle));
    return codes;
  }
  for (const int64_t value : given.integers()) codes.push_back(static_cast<int8_t>(value - middle_of(given.dtype())));
  return codes;
}

QuantizedLinearRegion read_matched(const Graph& region, RegionMatch match) {
  const Dims w = match.anchor->input(1)->type.shape.values();
  LinearCode code{input_index(region, match.anchor->input(0)), w[1], w[0], epilogue_code(match, !match.biases.empty())};
  return {std::move(match), code};
}

/// The nodes of read_quantized_linear_regions() where there are several, else none.
std::vector<const Node*> parallel_nodes(const Graph& region) {
  const std::vector<Node*> nodes = region.nodes();
  if (nodes.size() < 2 || region.outputs().size() != nodes.size()) return {};
  const Node& first = *nodes[0];
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[i];
    const bool fits = node.is(ops::quantized_linear) && node.input(0) == first.input(0) &&
                      reason_against(region, node).empty() && node.input(1)->type.dtype == first.input(1)->type.dtype &&
                      node.attrs.integer("block_size") == first.attrs.integer("block_size") &&
                      node.attrs.text("table") == first.attrs.text("table") && region.outputs()[i] == node.output();
    if (!fits) return {};
  }
  return {nodes.begin(), nodes.end()};
}

}  // namespace

std::optional<QuantizedLinearRegion> read_quantized_linear_region(const Graph& region) {
  const Node* node = anchor_of(region, ops::quantized_linear);
  if (node == nullptr) return std::nullopt;
  if (std::string reason = reason_against(region, *node); !reason.empty())
    return QuantizedLinearRegion{{.anchor = node, .refusal = std::move(reason)}, {}};
  return read_matched(region, match_region(region, node, 1));
}

std::vector<QuantizedLinearRegion> read_quantized_linear_regions(const Graph& region) {
  std::vector<QuantizedLinearRegion> list;
  for (const Node* node : parallel_nodes(region)) list.push_back(read_matched(region, {.anchor = node}));
  if (!list.empty()) return list;
  if (std::optional<QuantizedLinearRegion> one = read_quantized_linear_region(region)) list.push_back(std::move(*one));
  return list;
}

CodeKind QuantizedLinearRegion::kind() const {
  const DType dtype = node().input(1)->type.dtype;
  if (dtype == DType::f8e4m3fn) return CodeKind::e4m3;
  if (dtype == DType::f8e5m2) return CodeKind::e5m2;
  if (dtype == DType::f4e2m1) return CodeKind::e2m1;
  const std::string& table = node().attrs.text("table");
  if (table.empty()) return CodeKind::integer;
  return table == "nf4" ? CodeKind::nf4 : CodeKind::fp4;
}

bool QuantizedLinearRegion::may_have_zeros() const {
  return node().input(3) != nullptr || (kind() == CodeKind::integer && middle_of(node().input(1)->type.dtype) != 0);
}

QuantizedWeights QuantizedLinearRegion::weights() const {
  const Tensor& given = *node().input(1)->constant;
  const DType dtype = given.dtype();
  QuantizedWeights weights{.n = code.n, .k = code.k, .block = std::min(node().attrs.integer("block_size"), code.k)};
  weights.bits = bits_of(dtype) == 8 ? 8 : 4;
  weights.kind = kind();
  weights.codes = signed_codes(given, weights.kind);
  const Floats scales = scaled_weights(match, *node().input(2)->constant);
  weights.scales.assign(scales.span().begin(), scales.span().end());
  const int middle = weights.kind == CodeKind::integer ? middle_of(dtype) : 0;
  weights.zeros = moved_zeros(node().input(3), static_cast<float>(middle), weights.scales.size());
  weights.integer_zeros = std::ranges::all_of(
      weights.zeros, [](float zero) { return std::nearbyint(zero) == zero && zero >= -128 && zero <= 127; });
  return weights;
}

std::vector<float> QuantizedLinearRegion::bias() const { return collect_bias(match, nullptr, code.n); }

}  // namespace hone
