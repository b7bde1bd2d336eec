// SPDX-License-Identifier: Apache-2.0
//
// Weights of 2:4 structure: of every four consecutive input channels two at most are not zero.
#pragma once

#include <span>

#include "ir/graph.h"

namespace hone {

/// `zero` is the element that stands for zero.
bool is_sparse(const Tensor& weights, size_t channel_axis, double zero = 0);
/// As trtexec prunes: of every four input channels the first two stay, the others become `zero`.
Tensor pruned(const Tensor& weights, size_t channel_axis, double zero = 0);

/// Of a convolution or a matmul with constant weights (Conv, Linear) their axis of input channels; nothing for other nodes.
std::optional<size_t> channel_axis_of_weights(const Node& node);
/// Whether the weights of all of those are sparse; false where there are none.
bool have_sparse_weights(std::span<const Node* const> nodes);
/// Prunes the weights of all of those.
void prune_weights(Graph& graph);

}  // namespace hone
