// SPDX-License-Identifier: Apache-2.0
//
// The report of engines as one HTML file that needs nothing else: data as JSON, the script that draws them, and the library that it
// draws with (D3, BSD licence) stand in it.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "explore/engine_file.h"

namespace hone {

/// What the page shows: engines with layers, graph and hazards, and how each further one aligns with the first.
nlohmann::ordered_json report_json(std::span<const EngineRows> engines);
std::string report_page(std::span<const EngineRows> engines);

}  // namespace hone
