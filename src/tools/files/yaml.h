// SPDX-License-Identifier: Apache-2.0
//
// YAML by libyaml, as the values that JSON has: what Python's yaml.safe_load makes of a plain word is made of it here, too. Nothing read
// from a file is trusted: nesting and the copies that aliases make are bounded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensor/json.h"

namespace hone {

/// The documents of a file; empty ones are left out. Throws Error with the line where it cannot be read.
std::vector<Json> parse_yaml(std::string_view text);
/// Documents of block style, which parse_yaml() and PyYAML read as they were.
std::string yaml_text(const std::vector<Json>& documents);

}  // namespace hone
