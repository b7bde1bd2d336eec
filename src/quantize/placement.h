// SPDX-License-Identifier: Apache-2.0
//
// Which tensors of a network in f32 are quantised, and for which of their readers. Read off the graph as it was imported, so that
// the same places can be found in the model's file.
//
// Convolutions and matmuls with constant weights are computed in integers; around them bytes travel as far as they can: through
// what only moves elements, into the residual of an addition, into averages and gates. Nothing else is touched: a pair of
// QuantizeLinear and DequantizeLinear inside a formula costs accuracy and saves nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace hone {

/// An activation with one scale.
struct PlacedTensor {
  Value* value = nullptr;
  std::vector<Use> uses;  // the operands that read the quantised form; others go on reading the floats
  size_t group = 0;       // tensors of one group have one scale, so that bytes pass through what is between them
};
/// Constant weights with a scale for each index of an axis.
struct PlacedWeights {
  Value* value = nullptr;
  std::vector<Use> uses;
  int64_t axis = 0;
};
/// A convolution or matmul that stays in f32.
struct UnquantizedNode {
  const Node* node = nullptr;
  std::string reason;
};

struct Placement {
  std::vector<PlacedTensor> tensors;  // in the order of their producers
  std::vector<PlacedWeights> weights;
  std::vector<UnquantizedNode> left;
  size_t nodes = 0;  // convolutions and matmuls that are quantised
};

struct PlacementRules {
  /// Nodes that stay as they are; empty: none.
  std::function<bool(const Node&)> keeps_floats = {};
  /// Tensors whose scale is known; empty: all.
  std::function<bool(const Value&)> has_scale = {};
  /// Products of one group alone, whose sums run over whole pieces of so many channels; 0: all.
  int64_t piece = 0;
  /// Nothing but the operands of convolutions and matmuls: bytes go no further.
  bool products_alone = false;
};

Placement place_quantization(const Graph& graph, const PlacementRules& rules);
/// Weights alone: of matmuls, with the axis that they sum over. Activations stay in f32.
Placement place_weights(const Graph& graph, const PlacementRules& rules);

}  // namespace hone
