// SPDX-License-Identifier: Apache-2.0
//
// From the shapes a user gives to the values of the graph's symbols.
#pragma once

#include "builder/events/listener.h"
#include "builder/layers.h"

namespace hone {

/// Checks names, ranks, fixed sizes and order. Dynamic sizes of inputs without an entry become 1, which listeners are told.
/// Throws Error naming the input and the axis.
ProfilePoints profile_points(const Graph& graph, const ProfileOptions& options, const Listeners& listeners);

}  // namespace hone
