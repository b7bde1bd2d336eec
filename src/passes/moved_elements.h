// SPDX-License-Identifier: Apache-2.0
//
// Nodes that only move elements: what holds for every element of their operands, such as being one of a few codes, holds for every
// element of their results.
#pragma once

#include "ir/graph.h"

namespace hone {

/// Whether the results hold every element of the operands that are handed on, and no others.
bool keeps_elements(const Node& node);
/// Whether no result has an element that is not one of the operands that are handed on, or zero.
bool moves_elements(const Node& node);
/// How many operands, from the first, are handed on.
size_t moved_operands(const Node& node);

}  // namespace hone
