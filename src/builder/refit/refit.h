// SPDX-License-Identifier: Apache-2.0
//
// Refit: the same engine of other weights. The engine is built once more along the same choices: the plan holds the times that
// they came from, so nothing is timed, and every fold and packing of weights is right whatever the new weights are.
#pragma once

#include "builder/events/listener.h"
#include "builder/options.h"
#include "ir/graph.h"
#include "plan/plan.h"
#include "tuner/timing_cache.h"

namespace hone {

struct Backend;
class Device;

/// Of a graph as it was imported; `timings` are added when they are known.
RefitPart refit_part(const Graph& graph, const BuildOptions& options);
/// The plan's engine with the weights of `graph`. Throws Error when the plan keeps no weights apart, and with the first
/// difference when the graph is another network. `folded_by_import` as in BuildOptions.
Plan refit(const Plan& plan, Graph graph, std::vector<std::string> folded_by_import, const Backend& backend,
           Device& device, const Listeners& listeners);

/// What shapes a plan, as text that a plan can hold, and back. Callbacks and files are left out.
std::string options_text(const BuildOptions& options);
BuildOptions parse_options_text(std::string_view text);

}  // namespace hone
