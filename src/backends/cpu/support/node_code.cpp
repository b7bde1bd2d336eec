// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/support/node_code.h"

#include <algorithm>

#include "backends/cpu/support/region_reader.h"
#include "base/checked.h"
#include "device/code.h"
#include "ops/ops.h"
#include "regions/copy_request.h"
#include "regions/region_match.h"

namespace hone::cpu {
namespace {

constexpr int64_t kMaxKnownBytes = 256;  // larger constants are bound at launch

OperandCode describe_operand(std::vector<Tensor>& constants, const Graph& region, const Value& value) {
  OperandCode code;
  if (!value.is_constant()) {
    if (const int input = input_index(region, &value); input >= 0) {
      code.kind = OperandKind::input, code.index = input;
      return code;
    }
    std::optional<std::vector<std::string>> texts = size_texts(&value);
    HONE_ASSERT(texts.has_value(), "an operand of a single node is neither an input nor known");
    code.kind = OperandKind::sizes, code.sizes = std::move(*texts), code.dims = value.type.shape.values();
    return code;
  }
  if (static_cast<int64_t>(value.constant->bytes().size()) <= kMaxKnownBytes) {
    code.kind = OperandKind::contents, code.contents = *value.constant;
    return code;
  }
  code.kind = OperandKind::constant, code.index = static_cast<int64_t>(constants.size());
  code.dtype = value.type.dtype, code.dims = value.constant->dims();
  constants.push_back(*value.constant);
  return code;
}

NodeOperand known_operand(Tensor tensor) {
  ConcreteType type{tensor.dtype(), tensor.dims(), Layout::linear};
  return {std::move(type), 0, std::move(tensor)};
}

Tensor evaluated(const std::vector<std::string>& texts, const Dims& dims, const SymbolValues& symbols) {
  Dims values;
  for (const std::string& text : texts) values.push_back(Dim::parse(text).evaluate(symbols));
  require_sizes(dims);
  HONE_CHECK(elements(dims) == static_cast<int64_t>(values.size()), "a kernel in the plan has {} numbers for {}",
             values.size(), join_dims(dims));
  return Tensor::of<int64_t>(dims, std::span<const int64_t>(values));
}

std::optional<NodeOperand> bind_operand(const OperandCode& code, const KernelShapes& shapes) {
  switch (code.kind) {
    case OperandKind::none: break;
    case OperandKind::input:
      HONE_CHECK(code.index < static_cast<int64_t>(shapes.inputs.size()), "a kernel in the plan reads operand {}",
                 code.index);
      return NodeOperand{shapes.inputs[static_cast<size_t>(code.index)], code.index, std::nullopt};
    case OperandKind::constant:
      return NodeOperand{{code.dtype, code.dims, Layout::linear}, -1 - code.index, std::nullopt};
    case OperandKind::contents:
      HONE_CHECK(code.contents.has_value(), "a kernel in the plan has an operand without contents");
      return known_operand(*code.contents);
    case OperandKind::sizes: return known_operand(evaluated(code.sizes, code.dims, shapes.symbols));
  }
  return std::nullopt;
}

}  // namespace

const Node* single_node(const Problem& problem) {
  if (problem.region.node_count() != 1) return nullptr;
  const Node* node = problem.symbolic.nodes().back();
  for (const Node* other : problem.symbolic.nodes())
    if (other != node && !other->is(ops::symbolic_constant)) return nullptr;
  return node;
}

std::string reason_not_numeric(const Node& node) {
  for (const auto* list : {&node.inputs, &node.outputs})
    for (const Value* value : *list)
      if (value != nullptr && (is_object(value->type.dtype) || is_small(value->type.dtype)))
        return "handles texts or numbers of few bits";
  return {};
}

void offer_linear(const Problem& problem, std::string_view family, Candidates& out) {
  const auto linear = [](size_t count) { return std::vector<Layout>(count, Layout::linear); };
  out.offer({"cpu",
             std::string(family),
             {},
             linear(problem.region.inputs().size()),
             linear(problem.region.outputs().size())});
}

NodeCode describe_node(const Problem& problem, std::vector<Tensor>& constants, std::initializer_list<size_t> without) {
  const Node& node = *single_node(problem);
  NodeCode code;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool left_out = node.input(i) == nullptr || std::find(without.begin(), without.end(), i) != without.end();
    code.operands.push_back(left_out ? OperandCode() : describe_operand(constants, problem.symbolic, *node.input(i)));
  }
  for (const Value* output : node.outputs) {
    const auto& outputs = problem.symbolic.outputs();
    const auto found = std::find(outputs.begin(), outputs.end(), output);
    code.results.push_back(found == outputs.end() ? -1 : found - outputs.begin());
  }
  return code;
}

std::vector<ConstantSpec> node_constants(const NodeCode& code) {
  std::vector<ConstantSpec> specs;
  for (const OperandCode& operand : code.operands) {
    if (operand.kind != OperandKind::constant) continue;
    HONE_CHECK(operand.index == static_cast<int64_t>(specs.size()), "a kernel in the plan reads constant {}",
               operand.index);
    HONE_CHECK(!is_object(operand.dtype) && !is_small(operand.dtype), "a kernel in the plan has a constant of type {}",
               name_of(operand.dtype));
    require_sizes(operand.dims);
    specs.push_back({operand.dtype, operand.dims});
  }
  return specs;
}

BoundNode::BoundNode(const NodeCode& code, const KernelShapes& shapes, std::string_view family) : family_(family) {
  for (const OperandCode& operand : code.operands) operands_.push_back(bind_operand(operand, shapes));
  for (const int64_t place : code.results) {
    HONE_CHECK(place < static_cast<int64_t>(shapes.outputs.size()), "a kernel in the plan writes result {}", place);
    if (place < 0) results_.emplace_back();
    else results_.push_back(NodeResult{shapes.outputs[static_cast<size_t>(place)], place});
  }
  for (const std::optional<NodeOperand>& operand : operands_)
    require(!operand || (!is_object(operand->type.dtype) && !is_small(operand->type.dtype)));
  for (const auto* list : {&shapes.inputs, &shapes.outputs})
    for (const ConcreteType& type : *list)
      require(!is_object(type.dtype) && !is_small(type.dtype) && !is_blocked(type.layout) &&
              channel_block(type.layout) == 1);
}

const NodeOperand& BoundNode::operand(size_t i) const {
  require(has(i));
  return *operands_[i];
}

const NodeResult& BoundNode::result(size_t i) const {
  require(wants(i));
  return *results_[i];
}

Dims BoundNode::integers(size_t i) const {
  require(operand(i).known.has_value());
  return operand(i).known->integers();
}

std::vector<double> BoundNode::reals(size_t i) const {
  require(operand(i).known.has_value());
  std::vector<double> values;
  for (int64_t k = 0; k < operand(i).known->size(); ++k) values.push_back(operand(i).known->real(k));
  return values;
}

Dims BoundNode::strides_along(const Dims& result, size_t i) const {
  const Dims &dims = operand(i).type.dims, own = strides_of(dims);
  require(dims.size() <= result.size());
  Dims strides(result.size(), 0);
  for (size_t k = 0; k < dims.size(); ++k) {
    const size_t axis = result.size() - dims.size() + k;
    require(dims[k] == 1 || dims[k] == result[axis]);
    strides[axis] = dims[k] == 1 ? 0 : own[k];
  }
  return strides;
}

}  // namespace hone::cpu
