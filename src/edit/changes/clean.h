// SPDX-License-Identifier: Apache-2.0
//
// What does nothing is removed, and nodes are put into an order in which producers come first.
#pragma once

#include "edit/names.h"

namespace hone::edit {

/// Removes nodes that no output depends on, weights that nobody reads and what is said of tensors that are gone; inputs stay.
/// Bodies and functions are cleaned, too. The number of nodes removed.
size_t clean(Model& model);
/// The same of one graph alone.
size_t clean(Graph& graph);

/// Removes weights that nobody reads.
void drop_unread_weights(Graph& graph);

/// Nodes in the order that they have where it may stay. Throws Error with the nodes of a cycle where there is one.
void sort_nodes(Model& model);

/// Removes the nodes whose position is marked.
void remove_nodes(Graph& graph, const std::vector<bool>& marked);

}  // namespace hone::edit
