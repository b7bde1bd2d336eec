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

AttentionSizes::Operands operands_of(const AttentionCode& code, const KernelShapes& shapes) {
  const auto dims = [&](size_t i) { return dims_of(operand_type(operand(code, i), shapes)); };
  HONE_CHECK(shapes.outputs.size() == 1, "attention in the plan has {} results", shapes.outputs.size());
  AttentionSizes::Operands operands{dims(0), dims(1), dims(2), dims_of(shapes.outputs[0])};
  if (code.operands.size() == 4) operands.mask = dims(3);
  return operands;
}

}  // namespace

std::optional<AttentionRegion> read_attention_region(const Problem& problem) {
  const Node* node = anchor_of(problem.region, ops::scaled_dot_product_attention);
  if (node == nullptr) return std::nullopt;
  AttentionRegion region{.node = node, .code = {}, .refusal = reason_against(problem, *node)};
  for (const Value* value : node->inputs)
    if (value != nullptr) region.code.operands.push_back(operand_code(problem.region, value, region.constants));
  region.scale = node->attrs.real("scale");
  region.code.scale = static_cast<float>(region.scale);
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

AttentionMask::AttentionMask(const Dims& given, const Dims& scores) : dims(given) {
  HONE_CHECK(given.size() <= 4, "attention in the plan has a mask of rank {}", given.size());
  dims.insert(dims.begin(), 4 - given.size(), 1);
  for (size_t i = 0; i < 4; ++i)
    HONE_CHECK(dims[i] == 1 || dims[i] == scores[i], "attention in the plan has a mask of {} for scores of {}",
               join_dims(given), join_dims(scores));
  strides = strides_of(dims);
  for (size_t i = 0; i < 4; ++i)
    if (dims[i] == 1) strides[i] = 0;
}

AttentionSizes::AttentionSizes(const Operands& dims, HeadOrder order)
    : q(dims.q, order), k(dims.k, order), v(dims.v, order), y(dims.y, order) {
  const bool valid = q.rows > 0 && q.heads > 0 && q.columns > 0 && v.columns > 0 && k.rows > 0 && k.heads > 0 &&
                     q.batch > 0 && k.batch == q.batch && v.batch == q.batch && y.batch == q.batch &&
                     v.heads == k.heads && q.heads % k.heads == 0 && y.heads == q.heads && k.columns == q.columns &&
                     v.rows == k.rows && y.rows == q.rows && y.columns == v.columns;
  HONE_CHECK(valid, "attention in the plan has operands that do not fit together");
  if (dims.mask) mask.emplace(*dims.mask, Dims{q.batch, q.heads, q.rows, k.rows});
}

AttentionLayer::AttentionLayer(const AttentionCode& code, const KernelShapes& shapes)
    : AttentionSizes(operands_of(code, shapes), code.order),
      q_operand(code.operands[0]),
      k_operand(code.operands[1]),
      v_operand(code.operands[2]),
      mask_operand(mask ? code.operands[3] : OperandCode()),
      scale(code.scale) {}

}  // namespace hone
