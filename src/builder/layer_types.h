// SPDX-License-Identifier: Apache-2.0
//
// What BuildOptions::layer_types says of a node.
#pragma once

#include "builder/options.h"
#include "ir/graph.h"

namespace hone {

/// Whether the node has to be computed in f32 although smaller types are allowed: one of the model's nodes behind it is asked to
/// be, or all are and none of these is named.
bool kept_in_f32(const BuildOptions& options, const Node& node);

}  // namespace hone
