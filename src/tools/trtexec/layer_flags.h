// SPDX-License-Identifier: Apache-2.0
//
// Flags that name layers of the model, held against the model: names that it lacks, and lists of the wrong length.
#pragma once

#include "base/log.h"
#include "ir/graph.h"
#include "options/tool_options.h"

namespace hone {

/// Warns of names that no layer has; throws Error when --layerOutputTypes gives a layer another number of types than it has
/// outputs (one type serves all).
void check_layer_flags(const Graph& graph, const ToolOptions& options, const Logger& log);

}  // namespace hone
