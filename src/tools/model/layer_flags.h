// SPDX-License-Identifier: Apache-2.0
//
// Flags that name layers of the model, held against the model: names that it lacks, lists of the wrong length, types that no flag
// allows.
#pragma once

#include "base/log.h"
#include "ir/graph.h"
#include "options/tool_options.h"

namespace hone {

/// Warns of names that no layer has; throws Error when --layerOutputTypes gives a layer another number of types than it has
/// outputs (one type serves all), and for a type that no flag allows, or that a layer cannot have, where
/// --precisionConstraints=obey makes it binding; else warns of that.
void check_layer_flags(const Graph& graph, const Options& options, const Logger& log);

}  // namespace hone
