// SPDX-License-Identifier: Apache-2.0
//
// The network that a plan was built of, as the plan keeps it: its text, and its constants. Of a file without weights those are left
// out that can be given by name; what the import computed of weights cannot, and such a file needs the model.
#pragma once

#include <set>
#include <string>

#include "ir/graph.h"
#include "plan/plan.h"

namespace hone {

/// Whether constants of this type shape the network: their contents are part of it.
bool decides_structure(DType dtype);
/// What a constant operand is for its node: "Kernel", "Bias", "Scale", "Shift" or "Constant".
std::string_view weight_role(const Node& node, size_t operand);

/// Every constant of a graph and of its bodies that has a name, with a node that reads it, in the order in which nodes do.
struct NamedConstant {
  Value* value;
  const Node* node;
  size_t operand;
};
std::vector<NamedConstant> named_constants(const Graph& graph);

void keep_network(const Graph& graph, RefitPart& part);

struct KeptNetwork {
  Graph graph;
  std::set<std::string> missing;  // weights that are zero until they are given
};
/// Throws Error where the plan keeps no network, or left out what cannot be given.
KeptNetwork kept_network(const Plan& plan, const OperatorList& operators);

}  // namespace hone
