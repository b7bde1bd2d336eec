// SPDX-License-Identifier: Apache-2.0
//
// Reads a region as "one anchor, then what can be done to its result while it is in registers": + bias, + residual,
// activation. Every family with an epilogue starts here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/tactic.h"
#include "ir/graph.h"
#include "regions/epilogue.h"

namespace hone {

struct RegionMatch {
  const Node* anchor = nullptr;
  std::vector<const Value*> biases;  // constants added to every channel after the anchor, besides its own bias
  float scale = 1;                   // product with a constant scalar directly behind the anchor
  int residual = -1;                 // which region input is added, or -1
  bool residual_after_activation = false;
  Activation activation;
  std::string refusal;  // why the region does not have this form; empty when it does

  explicit operator bool() const { return refusal.empty(); }
  bool plain() const { return biases.empty() && scale == 1 && residual < 0 && activation.kind == ActivationKind::none; }
};

/// The region's first node when it is an `op` (whatever follows), else null: whether a family should speak at all.
const Node* anchor_of(const Graph& region, const OpDef& op);
/// The matmuls (Linear) of one input with constant weights and biases of the same sizes that make up the region, in the order
/// of its outputs; empty where it is anything else.
std::vector<const Node*> parallel_matmuls(const Graph& region);
/// `channel_axis` counts from the end: 1 is the last axis of the anchor's result (Linear), rank - 1 the second (Conv).
RegionMatch match_region(const Graph& region, const Node* anchor, size_t channel_axis);

/// The sizes in the order in which the bytes lie (linear and channels_last), and where a logical axis went.
Dims physical_dims(const ConcreteType& type);
size_t physical_axis(size_t axis, const ConcreteType& type);

/// The activation that a node computes of operand 0, when it is one of the epilogue's.
std::optional<Activation> activation_of(const Node& node);
/// Position of a value among the region's inputs, or -1.
int input_index(const Graph& region, const Value* value);

EpilogueCode epilogue_code(const RegionMatch& match, bool bias);
/// Throws Error where the residual is no input of the kernel, or has another type than its result.
void require_residual(const EpilogueCode& epilogue, const KernelShapes& shapes);

/// Why an anchor's first operand and its constants (weights, bias) are not such; empty when they are.
std::string reason_against_operands(const Graph& region, const Node& anchor);
/// Constant weights times the region's scale.
std::vector<float> scaled_weights(const RegionMatch& match, const Tensor& weights);
/// The anchor's own bias, scaled, plus the region's, one value per channel; empty when there is none.
std::vector<float> collect_bias(const RegionMatch& match, const Value* own, int64_t channels);

}  // namespace hone
