// SPDX-License-Identifier: Apache-2.0
//
// Tensors that stay readable: while a plan is made they are outputs of the graph, behind its own, so that no pass and no
// region swallows them; then they become buffers that nothing else may use before the inference ends.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "plan/plan.h"

namespace hone {

/// Appends the tensors to the graph's outputs, but for those that are inputs or outputs anyway. Throws Error for a name that
/// the graph does not have.
void append_debug_outputs(Graph& graph, const std::vector<std::string>& names);
/// Marks the inputs and outputs among the names.
void mark_debug_io(Profile& profile, const std::vector<std::string>& names);
/// Marks every tensor that one layer leaves for another, in the layout in which it is computed.
void mark_unfused(Profile& profile);

}  // namespace hone
