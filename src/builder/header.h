// SPDX-License-Identifier: Apache-2.0
//
// What a plan says of itself beside its layers: where it is from, its inputs and outputs, and the nodes that no layer stands
// for.
#pragma once

#include "builder/session.h"
#include "plan/plan.h"

namespace hone {

/// A plan that has everything but layers.
Plan plan_header(const BuildSession& session);
/// Shape arithmetic that layers hold as expressions has no layer of its own: to be asked when all layers are there.
void note_shape_nodes(const Graph& graph, Plan& plan);

}  // namespace hone
