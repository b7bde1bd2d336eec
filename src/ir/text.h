// SPDX-License-Identifier: Apache-2.0
//
// The text form with large data kept outside: constants print as "f32[2,3]$7" and are number 7 of a list.
#pragma once

#include "ir/graph.h"

namespace hone {

/// `owners`: for each of the list the constant that it belongs to, null for an attribute's.
std::string print_with_data(const Graph& graph, std::vector<Tensor>& data, std::vector<const Value*>* owners = nullptr);
Graph parse_with_data(std::string_view text, const OpLookup& lookup, std::span<const Tensor> data);

}  // namespace hone
