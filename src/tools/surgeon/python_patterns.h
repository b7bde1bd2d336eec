// SPDX-License-Identifier: Apache-2.0
//
// pattern.py, as Polygraphy's plugins have it: get_matching_subgraphs(graph) and get_plugin_metadata() say where an operator would fit,
// replace_with_plugin(...), where there is one, puts it there. It runs on onnx_graphsurgeon, or on hone.graph where that is not installed.
#pragma once

#include <optional>
#include <string>

#include "tensor/json.h"

namespace hone {

/// {"name": ..., "op": ..., "instances": [{"inputs": [...], "outputs": [...], "attributes": {...}}]}. Throws StatusError where the script fails.
Json python_matches(const std::string& script, const std::string& model);

/// How many instances of `plugin` the script has replaced in the model, which is written to `result`; nothing where it leaves that to others.
std::optional<size_t> python_replaces(const std::string& script, const std::string& model, const Json& plugin,
                                      const std::string& result);

}  // namespace hone
