// SPDX-License-Identifier: Apache-2.0
//
// What a node is asked with the tensors at hand, before its operator runs: whether they fit together, and whether there is memory for
// what comes of them.
#pragma once

#include <span>

#include "ir/op.h"

namespace hone {

/// Throws Error where operands contradict each other, OutOfMemory where a result has more elements than the reference can work on.
void check_at_hand(const Node& node, std::span<const Tensor* const> inputs);

}  // namespace hone
