// SPDX-License-Identifier: Apache-2.0
//
// Two ways for a value to be known before a run: all operands are constants, so the reference code computes it; or its
// integer contents follow from the input shapes (Shape, Gather, Concat … chains), so inference has them as expressions.
#include <algorithm>

#include "base/limits.h"
#include "ir/custom.h"
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

int64_t bytes_of(const TensorType& type) {
  return type.shape.is_static() ? byte_size(type.dtype, type.shape.values()) : 0;
}

bool may_fold(const Graph& graph, const Node* node, const PassContext& context) {
  const Traits& traits = node->op->traits;
  if (traits.random || traits.has_bodies || node->is(ops::symbolic_constant)) return false;
  if (node->op->custom != nullptr && !node->op->custom->foldable) return false;
  int64_t operand_bytes = 0, result_bytes = 0;
  for (const Value* input : node->inputs) {
    if (input == nullptr) continue;
    if (!input->is_constant()) return false;
    operand_bytes += bytes_of(input->type);
  }
  for (const Value* output : node->outputs) {
    if (graph.is_output(output) || output->type.element != nullptr) return false;
    result_bytes += bytes_of(output->type);
  }
  // Larger results are only worth storing in a plan when they replace operands at least as large, or weights in fewer bits that no
  // kernel reads.
  constexpr int64_t kMostBitsForOne = 8;
  const bool widens = !context.quantized_weights &&
                      (node->is(ops::dequantize_linear) || node->is(ops::dequantize_table) || node->is(ops::cast));
  return result_bytes <= std::max(operand_bytes * (widens ? kMostBitsForOne : 1), kMaxFoldedBytes);
}

Tensor integer_tensor(DType dtype, Dims dims, const SymbolicData& data) {
  TensorBuilder builder(dtype, std::move(dims));
  visit(dtype, [&]<typename T>() {
    const std::span<T> out = builder.data<T>();
    for (size_t i = 0; i < out.size(); ++i) {
      if constexpr (std::is_integral_v<T>) out[i] = static_cast<T>(data[i].value());
    }
  });
  return builder.finish();
}

bool all_known(const SymbolicData& data) {
  return std::all_of(data.begin(), data.end(), [](const Dim& d) { return d.is_constant(); });
}

}  // namespace

void fold_constants(Graph& graph, const PassContext& context) {
  bool folded = false;
  for (Node* node : graph.nodes()) {
    if (!may_fold(graph, node, context)) continue;
    std::vector<const Tensor*> operands;
    for (const Value* input : node->inputs) operands.push_back(input == nullptr ? nullptr : &*input->constant);
    std::vector<Tensor> results = evaluate_node(*node, std::move(operands));
    for (size_t i = 0; i < results.size(); ++i)
      graph.replace(node->outputs[i], graph.add_constant(std::move(results[i]), node->outputs[i]->name));
    graph.erase(node);
    folded = true;
  }
  // Constants where expressions stood may settle sizes further down.
  if (folded) graph.infer_all();
}

void fold_shapes(Graph& graph, const PassContext&) {
  bool folded = false;
  for (Node* node : graph.nodes()) {
    if (node->is(ops::symbolic_constant) || node->op->traits.has_bodies) continue;
    for (Value* output : node->outputs) {
      if (output->symbolic == nullptr || output->uses.empty() || graph.is_output(output) ||
          !output->type.shape.is_static())
        continue;
      const SymbolicData& data = *output->symbolic;
      const Dims dims = output->type.shape.values();
      if (all_known(data)) {
        graph.replace(output, graph.add_constant(integer_tensor(output->type.dtype, dims, data), output->name));
      } else if (output->type.dtype == DType::i64 && follows_from_inputs(graph, Shape(data))) {
        const Attrs attrs{{"values", texts_of(Shape(data))}, {"dims", dims}};
        graph.replace(output, insert_for(graph, node, ops::symbolic_constant, {}, attrs, {node})->output());
      } else {
        continue;
      }
      folded = true;
    }
  }
  if (folded) graph.infer_all();
}

}  // namespace hone::passes
