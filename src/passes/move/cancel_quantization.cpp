// SPDX-License-Identifier: Apache-2.0
//
// What quantisers leave around operators that only move elements. DequantizeLinear sinks below them and QuantizeLinear rises above
// them, so that bytes are moved, until the two meet; with one scale, then, quantising undoes dequantising. That is exact:
// |q - zero| is at most 255, its product with the scale and the quotient are off by 2^-24 each, and nearest to the quotient
// is q - zero again. A maximum of numbers is that of their bytes, since the scale is positive.
//
// On a device without kernels for bytes nothing moves.
#include <algorithm>

#include "ir/op.h"
#include "ops/byte_scale.h"
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/moved_elements.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

/// What a Pad of bytes fills in for zero.
void fill_with(Value* zero, const Node& node, std::vector<Value*>& inputs) {
  if (!node.is(ops::pad) || node.attrs.text("mode") != "constant") return;
  inputs.resize(std::max<size_t>(inputs.size(), 3));
  inputs[2] = zero;
}

/// Weights as exporters write them: fuse_dequantize takes both nodes in.
bool is_turned_matrix(const Node& node, const Node& dequantize) {
  return node.is(ops::transpose) && dequantize.input(0)->is_constant();
}

/// move(DequantizeLinear(x)): DequantizeLinear(move(x)).
bool sink_dequantize(Graph& graph, Node* node) {
  if (!moves_elements(*node)) return false;
  std::vector<Value*> inputs = node->inputs;
  const Node* first = producer(inputs[0], ops::dequantize_linear);
  for (size_t i = 0; i < moved_operands(*node); ++i) {
    const Node* dequantize = producer(inputs[i], ops::dequantize_linear);
    if (dequantize == nullptr || is_turned_matrix(*node, *dequantize) || !byte_scale(*dequantize) ||
        byte_scale(*dequantize) != byte_scale(*first))
      return false;
    inputs[i] = dequantize->input(0);
  }
  fill_with(first->input(2), *node, inputs);
  const Node* moved = insert_for(graph, node, *node->op, std::move(inputs), node->attrs, {node}, node->outputs.size());
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    Value* output = node->outputs[i];
    if (output->uses.empty() && !graph.is_output(output)) continue;
    graph.replace(output, insert_for(graph, node, ops::dequantize_linear,
                                     {moved->outputs[i], first->input(1), first->input(2)}, first->attrs, {first})
                              ->output());
  }
  return true;
}

/// QuantizeLinear(move(x)), where it reads no more of x than move does: move(QuantizeLinear(x)).
bool raise_quantize(Graph& graph, Node* node) {
  if (!node->is(ops::quantize_linear) || !byte_scale(*node) || !used_once(graph, node->input(0))) return false;
  Node* move = node->input(0)->producer;
  if (move == nullptr || !moves_elements(*move)) return false;
  if (!keeps_elements(*move) && !move->is(ops::pad) && !move->is(ops::expand) && !move->is(ops::tile)) return false;
  std::vector<Value*> inputs = move->inputs;
  for (size_t i = 0; i < moved_operands(*move); ++i)
    inputs[i] =
        insert_for(graph, move, ops::quantize_linear, {inputs[i], node->input(1), node->input(2)}, node->attrs, {node})
            ->output();
  fill_with(node->input(2), *move, inputs);
  graph.replace(node->output(), insert_for(graph, node, *move->op, std::move(inputs), move->attrs, {move})->output());
  return true;
}

bool cancel(Graph& graph, Node* node, const PassContext& context) {
  const Node* inner = node->is(ops::quantize_linear) ? producer(node->input(0), ops::dequantize_linear) : nullptr;
  if (inner == nullptr || !byte_scale(*node) || byte_scale(*node) != byte_scale(*inner)) return false;
  const bool is_read = !node->output()->uses.empty() || graph.is_output(node->output());
  if (!is_read || !may_replace(graph, node->output(), inner->input(0))) return false;
  context.report_removal(node->name);
  graph.replace(node->output(), inner->input(0));
  return true;
}

}  // namespace

void cancel_quantization(Graph& graph, const PassContext& context) {
  for (bool changed = true; changed;) {
    changed = false;
    if (context.byte_matmuls) {
      for (Node* node : graph.nodes()) changed |= sink_dequantize(graph, node);
      graph.erase_dead();
      for (Node* node : graph.nodes()) changed |= raise_quantize(graph, node);
    }
    for (Node* node : graph.nodes()) changed |= cancel(graph, node, context);
    graph.erase_dead();
  }
}

}  // namespace hone::passes
