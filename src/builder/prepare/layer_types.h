// SPDX-License-Identifier: Apache-2.0
//
// What a user asks of single layers' types. A layer is a node of the model; nodes that import or passes made carry its name as
// their origin.
#pragma once

#include <string_view>

#include "builder/options.h"
#include "passes/pass.h"

namespace hone {

/// What is asked of a node with BuildOptions::layer_types: for the model's nodes behind it by name, where "fp32" goes before others;
/// else by the last pattern that one of them fits. Empty: nothing.
std::string_view layer_type(const BuildOptions& options, const Node& node);

/// What has to be so, by BuildOptions::required_types and result_types.
AskedTypes asked_types(const BuildOptions& options, const Node& node);
/// Whether required_types asks for the type in this layer by its name, not by a pattern.
bool is_required(const BuildOptions& options, const Node& node, std::string_view type);
/// Whether there is anything of that kind.
bool asks_types(const BuildOptions& options);

}  // namespace hone
