// SPDX-License-Identifier: Apache-2.0
//
// Folding per-channel numbers into the weights of what computes a channel: Conv, ConvTranspose, Linear.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "passes/pass.h"

namespace hone {

/// A node with constant weights whose result is a sum per output channel.
struct Weighted {
  Node* node;
  int64_t channels;
  size_t channel_axis;  // of the result
};

/// The node's description when its weight and bias are constants; nothing for other nodes.
std::optional<Weighted> weighted(Node* node);
/// y -> y * scale + shift, in the weights. `parts` names the nodes that it replaces.
void fold_affine(Graph& graph, const Weighted& target, std::span<const double> scale, std::span<const double> shift);

/// Folds `node`, which computes y * scale + shift of the target's result, into the target and removes it.
void absorb_affine(Graph& graph, const PassContext& context, const Weighted& target, Node* node,
                   std::span<const double> scale, std::span<const double> shift);

/// One number per channel from a constant that broadcasts along everything but `axis` of a result of this rank;
/// nothing when it varies along another axis.
std::optional<std::vector<double>> per_channel(const Value* constant, size_t rank, size_t axis, int64_t channels);

}  // namespace hone
