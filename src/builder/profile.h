// SPDX-License-Identifier: Apache-2.0
//
// From the shapes a user gives to the values of the graph's symbols.
#pragma once

#include "base/log.h"
#include "builder/layers.h"

namespace hone {

/// Checks names, ranks, fixed sizes and order. Dynamic sizes of inputs without an entry become 1, with a warning.
/// Throws Error naming the input and the axis.
ProfilePoints profile_points(const Graph& graph, const ProfileOptions& options, const Logger& log);

}  // namespace hone
