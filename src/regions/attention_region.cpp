// SPDX-License-Identifier: Apache-2.0

#include "regions/attention_region.h"

#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone {
namespace {

std::string reason_against(const Problem& problem, const Node& node) {
  if (problem.only() == nullptr) return "more follows in the region";
  for (const Value* operand : node.inputs) {
    if (operand == nullptr) continue;
    if (operand->type.dtype != DType::f32) return fmt::format("operand is {}, not f32", name_of(operand->type.dtype));
    if (operand->type.shape.elements() == Dim(0)) return "empty operands";
  }
  for (size_t i = 0; i < 3; ++i)
    if (input_index(problem.region, node.input(i)) < 0) return "queries, keys or values are constant";
  return {};
}

Dims dims_of(const ConcreteType& type) {
  HONE_CHECK(type.dtype == DType::f32 && type.layout == Layout::linear,
             "attention in the plan has an operand that is not f32 in linear layout");
  return type.dims;
}

const OperandCode& operand(const AttentionCode& code, size_t i) {
  HONE_CHECK(code.operands.size() == 3 || code.operands.size() == 4, "attention in the plan has {} operands",
             code.operands.size());
  HONE_CHECK(i == 3 || !code.operands[i].is_constant(), "attention in the plan has constant queries, keys or values");
  return code.operands[i];
}

HeadTensor tensor_of(const AttentionCode& code, const OperandCode& operand, const KernelShapes& shapes) {
  return {dims_of(operand_type(operand, shapes)), code.order};
}

Dims result_dims(const KernelShapes& shapes) {
  HONE_CHECK(shapes.outputs.size() == 1, "attention in the plan has {} results", shapes.outputs.size());
  return dims_of(shapes.outputs[0]);
}

AttentionMask mask_of(const OperandCode& operand, const Dims& dims, const Dims& scores) {
  HONE_CHECK(dims.size() <= 4, "attention in the plan has a mask of rank {}", dims.size());
  AttentionMask mask{operand, Dims(4 - dims.size(), 1), {}};
  mask.dims.insert(mask.dims.end(), dims.begin(), dims.end());
  for (size_t i = 0; i < 4; ++i)
    HONE_CHECK(mask.dims[i] == 1 || mask.dims[i] == scores[i],
               "attention in the plan has a mask of {} for scores of {}", join_dims(dims), join_dims(scores));
  mask.strides = strides_of(mask.dims);
  for (size_t i = 0; i < 4; ++i)
    if (mask.dims[i] == 1) mask.strides[i] = 0;
  return mask;
}

}  // namespace

std::optional<AttentionRegion> read_attention_region(const Problem& problem) {
  const Node* node = anchor_of(problem.region, ops::scaled_dot_product_attention);
  if (node == nullptr) return std::nullopt;
  AttentionRegion region{.node = node, .code = {}, .refusal = reason_against(problem, *node)};
  for (const Value* value : node->inputs)
    if (value != nullptr) region.code.operands.push_back(operand_code(problem.region, value, region.constants));
  region.code.scale = static_cast<float>(node->attrs.real("scale"));
  region.code.order = node->attrs.text("layout") == "bhsd" ? HeadOrder::heads_first : HeadOrder::tokens_first;
  return region;
}

HeadTensor::HeadTensor(const Dims& d, HeadOrder order) {
  HONE_CHECK(d.size() == 4, "attention in the plan has an operand of rank {}", d.size());
  const bool heads_first = order == HeadOrder::heads_first;
  batch = d[0], heads = d[heads_first ? 1 : 2], rows = d[heads_first ? 2 : 1], columns = d[3];
  batch_stride = d[1] * d[2] * d[3];
  head_stride = heads_first ? rows * columns : columns;
  row_stride = heads_first ? columns : heads * columns;
}

AttentionLayer::AttentionLayer(const AttentionCode& code, const KernelShapes& shapes)
    : q_operand(operand(code, 0)),
      k_operand(operand(code, 1)),
      v_operand(operand(code, 2)),
      q(tensor_of(code, q_operand, shapes)),
      k(tensor_of(code, k_operand, shapes)),
      v(tensor_of(code, v_operand, shapes)),
      y(result_dims(shapes), code.order),
      scale(code.scale) {
  const bool valid = q.rows > 0 && q.heads > 0 && q.columns > 0 && v.columns > 0 && k.rows > 0 && k.heads > 0 &&
                     q.batch > 0 && k.batch == q.batch && v.batch == q.batch && y.batch == q.batch &&
                     v.heads == k.heads && q.heads % k.heads == 0 && y.heads == q.heads && k.columns == q.columns &&
                     v.rows == k.rows && y.rows == q.rows && y.columns == v.columns;
  HONE_CHECK(valid, "attention in the plan has operands that do not fit together");
  if (code.operands.size() == 4)
    mask =
        mask_of(code.operands[3], dims_of(operand_type(code.operands[3], shapes)), {q.batch, q.heads, q.rows, k.rows});
}

}  // namespace hone
