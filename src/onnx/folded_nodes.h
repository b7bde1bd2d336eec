// SPDX-License-Identifier: Apache-2.0
//
// Which nodes of a model need none in the graph: import evaluates what is constant and leaves out what does nothing.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "onnx/proto.h"

namespace hone::onnx {

/// Names of the nodes that the model's outputs depend on, in the model's order. Constants are data; nodes without a name cannot be
/// told of.
std::vector<std::string> live_names(const GraphProto& model);
/// Adds the tensors that a node reads, those that the bodies it carries take from around it among them.
void add_reads(const NodeProto& node, std::set<std::string_view>& names);
/// Those of `live` that no node of the graph comes from.
std::vector<std::string> folded_nodes(const std::vector<std::string>& live, const Graph& graph);

/// Initialisers that nodes of the model read by name and no node of the graph reads.
std::vector<std::string> consumed_weights(const GraphProto& model, const Graph& graph);

}  // namespace hone::onnx
