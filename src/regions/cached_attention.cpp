// SPDX-License-Identifier: Apache-2.0

#include "regions/cached_attention.h"

#include <algorithm>

#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone {
namespace {

using Code = CachedAttentionCode;

/// The Concat of two tensors along the tokens that makes an operand, or null.
const Node* joining(const Node& attention, size_t operand) {
  const Node* node = attention.input(operand)->producer;
  if (node == nullptr || !node->is(ops::concat) || node->inputs.size() != 2) return nullptr;
  const int64_t axis = node->attrs.integer("axis");
  return axis == 2 || axis == -2 ? node : nullptr;
}

int64_t result_of(const Graph& region, const Value* value) {
  const auto at = std::ranges::find(region.outputs(), value);
  return at == region.outputs().end() ? -1 : at - region.outputs().begin();
}

std::string reason_against(const Graph& region, const Node& node) {
  if (node.attrs.text("layout") != "bhsd") return "tokens stand before heads";
  for (const Value* value : {node.input(0), joining(node, 1)->input(0), joining(node, 1)->input(1),
                             joining(node, 2)->input(0), joining(node, 2)->input(1)})
    if (input_index(region, value) < 0) return "queries, keys or values are constant";
  if (result_of(region, node.output()) < 0 || node.output()->type.shape.elements() == Dim(0)) return "empty operands";
  return {};
}

Dims dims_of(const ConcreteType& type) {
  HONE_CHECK(type.dtype == DType::f32 && type.layout == Layout::linear,
             "attention in the plan has an operand that is not f32 in linear layout");
  return type.dims;
}

Dims operand_dims(const Code& code, size_t i, const KernelShapes& shapes) {
  HONE_CHECK(code.operands.size() == 5 || code.operands.size() == 6, "attention to a cache in the plan has {} operands",
             code.operands.size());
  HONE_CHECK(i == Code::kMask || !code.operands[i].is_constant(),
             "attention in the plan has constant queries, keys or values");
  return dims_of(operand_type(code.operands[i], shapes));
}

/// Keys or values, those in the cache and those behind it.
Dims joined(const Code& code, size_t first, const KernelShapes& shapes) {
  return joined_tokens(operand_dims(code, first, shapes), operand_dims(code, first + 1, shapes));
}

AttentionSizes::Operands operands_of(const Code& code, const KernelShapes& shapes) {
  const size_t kept = (code.keys >= 0 ? 1U : 0U) + (code.values >= 0 ? 1U : 0U),
               result = attention_result(code.keys, code.values);
  HONE_CHECK((code.keys != code.values || code.keys < 0) && shapes.outputs.size() == kept + 1 &&
                 std::max(code.keys, code.values) <= static_cast<int64_t>(kept) && result <= kept,
             "attention to a cache in the plan has {} results", shapes.outputs.size());
  AttentionSizes::Operands operands{operand_dims(code, Code::kQueries, shapes), joined(code, Code::kPastKeys, shapes),
                                    joined(code, Code::kPastValues, shapes), dims_of(shapes.outputs[result])};
  if (code.operands.size() == 6) operands.mask = operand_dims(code, Code::kMask, shapes);
  const auto require_kept = [&](int64_t i, const Dims& dims) {
    HONE_CHECK(i < 0 || dims_of(shapes.outputs[static_cast<size_t>(i)]) == dims,
               "attention to a cache in the plan keeps {} as another size", join_dims(dims));
  };
  require_kept(code.keys, operands.k);
  require_kept(code.values, operands.v);
  return operands;
}

}  // namespace

size_t attention_result(int64_t keys, int64_t values) {
  size_t i = 0;
  while (static_cast<int64_t>(i) == keys || static_cast<int64_t>(i) == values) ++i;
  return i;
}

Dims joined_tokens(const Dims& past, const Dims& fresh) {
  HONE_CHECK(past.size() == 4 && fresh.size() == 4, "attention to a cache in the plan has an operand of another rank");
  Dims all = past;
  all[2] = fresh[2];
  HONE_CHECK(all == fresh, "attention to a cache in the plan joins {} and {}", join_dims(past), join_dims(fresh));
  all[2] += past[2];
  return all;
}

std::optional<CachedAttentionRegion> read_cached_attention(const Problem& problem) {
  const Graph& graph = problem.region;
  const std::vector<Node*> nodes = graph.nodes();
  if (nodes.size() != 3 || !nodes.back()->is(ops::scaled_dot_product_attention)) return std::nullopt;
  const Node& node = *nodes.back();
  const Node *keys = joining(node, 1), *values = joining(node, 2);
  if (keys == nullptr || values == nullptr || keys == values) return std::nullopt;
  CachedAttentionRegion region{.node = &node, .code = {}, .refusal = reason_against(graph, node)};
  if (!region.refusal.empty()) return region;
  for (const Value* value :
       {node.input(0), keys->input(0), keys->input(1), values->input(0), values->input(1), node.input(3)})
    if (value != nullptr) region.code.operands.push_back(operand_code(graph, value, region.constants));
  region.code.scale = static_cast<float>(node.attrs.real("scale"));
  region.code.keys = result_of(graph, keys->output());
  region.code.values = result_of(graph, values->output());
  return region;
}

CachedAttentionLayer::CachedAttentionLayer(const CachedAttentionCode& given, const KernelShapes& shapes)
    : AttentionSizes(operands_of(given, shapes), HeadOrder::heads_first),
      code(given),
      past(operand_dims(given, Code::kPastKeys, shapes)[2]),
      result(attention_result(given.keys, given.values)) {
  HONE_CHECK(operand_dims(given, Code::kPastValues, shapes)[2] == past,
             "attention to a cache in the plan has other numbers of keys and values");
}

}  // namespace hone
