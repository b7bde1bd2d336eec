// SPDX-License-Identifier: Apache-2.0
//
// The meaning of a graph: every node by its operator's reference code, in order. Also the contexts that operators see.
#include <algorithm>
#include <new>
#include <stdexcept>
#include <unordered_map>

#include "base/hash.h"
#include "base/limits.h"
#include "base/state_error.h"
#include "ir/at_hand.h"
#include "ir/op.h"

namespace hone {

const TensorType& InferContext::type(size_t i) const {
  HONE_CHECK(has(i), "operand {} of {} is missing", i, node_.op->name);
  return node_.input(i)->type;
}

const Tensor* InferContext::constant(size_t i) const {
  const Value* value = node_.input(i);
  return value != nullptr && value->constant ? &*value->constant : nullptr;
}

std::optional<SymbolicData> InferContext::symbolic(size_t i) const {
  const Value* value = node_.input(i);
  if (value == nullptr) return std::nullopt;
  if (value->symbolic) return *value->symbolic;
  if (!value->constant || is_float(value->type.dtype) || is_object(value->type.dtype) ||
      value->constant->size() > kMaxSymbolicElements)
    return std::nullopt;
  SymbolicData data;
  for (const int64_t number : value->constant->integers()) data.emplace_back(number);
  return data;
}

/// Sizes of sizes (what a chain of slices leaves of results of data-dependent shape) would grow without end.
static bool too_long(const Dim& dim) { return !dim.is_constant() && dim.text().size() > kMaxSizeText / 4; }

void InferContext::set(size_t output, TensorType type) {
  HONE_CHECK(type.shape.rank() <= kMaxRank, "result {} would have {} axes; tensors may have {}", output,
             type.shape.rank(), kMaxRank);
  for (const Dim& dim : type.shape)
    HONE_CHECK(!dim.is_constant() || dim.value() >= 0, "result {} would have the size {}", output, dim.text());
  for (size_t axis = 0; axis < type.shape.rank(); ++axis)
    if (too_long(type.shape[axis])) type.shape[axis] = data_dependent(output, axis);
  if (output < node_.outputs.size()) node_.outputs[output]->type = std::move(type);
}
void InferContext::set(size_t output, DType dtype, Shape shape) {
  set(output, {dtype, std::move(shape), Layout::linear});
}

void InferContext::set_symbolic(size_t output, SymbolicData data) {
  if (output < node_.outputs.size() && std::ranges::none_of(data, too_long))
    node_.outputs[output]->symbolic = std::make_shared<const SymbolicData>(std::move(data));
}

Dim InferContext::data_dependent(size_t output, size_t axis) const {
  std::string base = "u_";
  bool plain = true;
  for (const char c : node_.name) {
    plain &= std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    base += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  if (!plain) base += "_" + hash_hex(std::as_bytes(std::span(node_.name))).substr(0, 8);  // "a/b" is not "a_b"
  return Dim::symbol(fmt::format("{}_{}_{}", base, output, axis));
}

const Tensor& EvalContext::input(size_t i) const {
  HONE_CHECK(has(i), "operand {} of {} is missing", i, node_.op->name);
  return *inputs_[i];
}

[[noreturn]] static void no_memory() {
  throw OutOfMemory("there is no memory for its results", "use a smaller batch or smaller shapes");
}

std::vector<Tensor> evaluate_node(const Node& node, std::vector<const Tensor*> inputs) {
  return with_note([&] { return fmt::format("evaluating node {} ({})", node.name, node.op_name()); },
                   [&] {
                     check_at_hand(node, inputs);
                     EvalContext context(node, std::move(inputs));
                     try {
                       if (node.op->eval != nullptr) node.op->eval(context);
                       else if (node.op->is_pointwise()) eval_pointwise(context);
                       else throw InternalError(fmt::format("{} has no reference meaning", node.op->name));
                     } catch (const std::out_of_range&) {
                       throw Error("its attributes or operands are lists of contradictory lengths",
                                   "export the model again; `python -m onnx.checker` examines one");
                     } catch (const std::bad_alloc&) {
                       no_memory();
                     } catch (const std::length_error&) {  // a vector of more elements than there are addresses
                       no_memory();
                     }
                     return std::move(context.results());
                   });
}

std::vector<Tensor> evaluate(const Graph& graph, std::span<const Tensor> inputs) {
  HONE_CHECK(inputs.size() == graph.inputs().size(), "the graph has {} inputs but {} tensors are given",
             graph.inputs().size(), inputs.size());
  std::unordered_map<const Value*, Tensor> values;
  std::unordered_map<const Value*, size_t> remaining;
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i]] = inputs[i];
  for (const Value* output : graph.outputs()) ++remaining[output];
  const std::vector<Node*> nodes = graph.nodes();
  for (const Node* node : nodes)
    for (const Value* input : node->inputs)
      if (input != nullptr) ++remaining[input];
  const auto get = [&](const Value* value) -> const Tensor& {
    if (value->constant) return *value->constant;
    const auto at = values.find(value);
    HONE_ASSERT(at != values.end(), "{} has no value", value->label());
    return at->second;
  };
  for (const Node* node : nodes) {
    std::vector<const Tensor*> operands;
    for (const Value* input : node->inputs) operands.push_back(input == nullptr ? nullptr : &get(input));
    std::vector<Tensor> results = evaluate_node(*node, std::move(operands));
    for (size_t i = 0; i < results.size(); ++i)
      if (remaining[node->outputs[i]] > 0) values[node->outputs[i]] = std::move(results[i]);
    for (const Value* input : node->inputs)
      if (input != nullptr && !input->constant && --remaining[input] == 0) values.erase(input);
  }
  std::vector<Tensor> outputs;
  for (const Value* output : graph.outputs()) outputs.push_back(get(output));
  return outputs;
}

}  // namespace hone
