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
constexpr size_t kMaxOperands = 64;

std::string numbered(const char* name, size_t i) { return fmt::format("{}{}", name, i); }

void write_operand(Attrs& attrs, std::vector<Tensor>& constants, const Graph& region, const Value& value, size_t i) {
  if (!value.is_constant()) {
    if (const int input = input_index(region, &value); input >= 0)
      return attrs.set(numbered("operand", i), int64_t{input});
    std::optional<std::vector<std::string>> texts = size_texts(&value);
    HONE_ASSERT(texts.has_value(), "operand {} of a single node is neither an input nor known", i);
    attrs.set(numbered("sizes", i), std::move(*texts));
    return attrs.set(numbered("dims", i), value.type.shape.values());
  }
  if (static_cast<int64_t>(value.constant->bytes().size()) <= kMaxKnownBytes)
    return attrs.set(numbered("value", i), *value.constant);
  attrs.set(numbered("operand", i), -1 - static_cast<int64_t>(constants.size()));
  attrs.set(numbered("type", i), std::string(name_of(value.type.dtype)));
  attrs.set(numbered("dims", i), value.constant->dims());
  constants.push_back(*value.constant);
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

std::optional<NodeOperand> read_operand(const Attrs& attrs, const KernelShapes& shapes, size_t i) {
  if (attrs.has(numbered("value", i))) return known_operand(attrs.tensor(numbered("value", i)));
  if (attrs.has(numbered("sizes", i)))
    return known_operand(
        evaluated(attrs.texts(numbered("sizes", i)), attrs.integers(numbered("dims", i)), shapes.symbols));
  if (!attrs.has(numbered("operand", i))) return std::nullopt;
  const int64_t place = attrs.integer(numbered("operand", i));
  HONE_CHECK(place >= -static_cast<int64_t>(kMaxOperands) && place < static_cast<int64_t>(shapes.inputs.size()),
             "a kernel in the plan reads operand {}", place);
  if (place >= 0) return NodeOperand{shapes.inputs[static_cast<size_t>(place)], place, std::nullopt};
  const std::optional<DType> dtype = parse_dtype(attrs.text(numbered("type", i)));
  HONE_CHECK(dtype && !is_object(*dtype) && !is_small(*dtype),
             "a kernel in the plan has a constant of an unknown type");
  return NodeOperand{constant_operand(shapes, -1 - place, *dtype, attrs.integers(numbered("dims", i))), place,
                     std::nullopt};
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

Attrs describe_node(const Problem& problem, std::vector<Tensor>& constants, std::initializer_list<size_t> without) {
  const Node& node = *single_node(problem);
  Attrs attrs = node.attrs;
  attrs.set("op", std::string(node.op_name()));
  attrs.set("operands", static_cast<int64_t>(node.inputs.size()));
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.input(i) != nullptr && std::find(without.begin(), without.end(), i) == without.end())
      write_operand(attrs, constants, problem.symbolic, *node.input(i), i);
  Dims results;
  for (const Value* output : node.outputs) {
    const auto& outputs = problem.symbolic.outputs();
    const auto found = std::find(outputs.begin(), outputs.end(), output);
    results.push_back(found == outputs.end() ? -1 : found - outputs.begin());
  }
  attrs.set("results", std::move(results));
  return attrs;
}

Compiled compile_node(const Problem& problem, std::string_view family) {
  Compiled compiled;
  compiled.code = encode_code(family, describe_node(problem, compiled.constants));
  return compiled;
}

NodeCode::NodeCode(const Attrs& attrs, const KernelShapes& shapes) : attrs_(attrs), shapes_(shapes) {
  const int64_t count = attrs.integer("operands");
  HONE_CHECK(count >= 0 && count <= static_cast<int64_t>(kMaxOperands), "a kernel in the plan has {} operands", count);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) operands_.push_back(read_operand(attrs, shapes, i));
  for (const int64_t place : attrs.integers("results")) {
    HONE_CHECK(place >= -1 && place < static_cast<int64_t>(shapes.outputs.size()),
               "a kernel in the plan writes result {}", place);
    if (place < 0) results_.emplace_back();
    else results_.push_back(NodeResult{shapes.outputs[static_cast<size_t>(place)], place});
  }
  for (const std::optional<NodeOperand>& operand : operands_) require(!operand || !is_small(operand->type.dtype));
  for (const auto* list : {&shapes.inputs, &shapes.outputs})
    for (const ConcreteType& type : *list)
      require(!is_object(type.dtype) && !is_small(type.dtype) && !is_blocked(type.layout) &&
              channel_block(type.layout) == 1);
}

const NodeOperand& NodeCode::operand(size_t i) const {
  require(has(i));
  return *operands_[i];
}

const NodeResult& NodeCode::result(size_t i) const {
  require(wants(i));
  return *results_[i];
}

void NodeCode::require_constants(int64_t place, const std::vector<Dims>& sizes) const {
  for (const Dims& dims : sizes) require_constant(shapes_, place++, DType::f32, dims);
}

Dims NodeCode::integers(size_t i) const {
  require(operand(i).known.has_value());
  return operand(i).known->integers();
}

std::vector<double> NodeCode::reals(size_t i) const {
  require(operand(i).known.has_value());
  std::vector<double> values;
  for (int64_t k = 0; k < operand(i).known->size(); ++k) values.push_back(operand(i).known->real(k));
  return values;
}

}  // namespace hone::cpu
