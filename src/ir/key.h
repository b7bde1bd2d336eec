// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace hone {

/// A graph with this structure_key(): values are numbered, weights get deterministic values. Throws Error, with the column,
/// for text that is no key, for unknown operators, and for keys of nodes with bodies.
Graph parse_key(std::string_view key, const OpLookup& lookup);

}  // namespace hone
