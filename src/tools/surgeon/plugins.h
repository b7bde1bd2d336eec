// SPDX-License-Identifier: Apache-2.0
//
// Operators of one's own and where they fit. A folder holds one folder for each operator, with pattern.json: {"name": "gelu", "op": "MyGelu",
// "domain": "", "pattern": "Mul($x, Sigmoid($x))", "attributes": {...}}, or with pattern.py. What was found is a configuration:
// {"name": ..., "op": ..., "instances": [{"inputs": [...], "outputs": [...], "attributes": {...}}]}.
#pragma once

#include "edit/changes/pattern.h"
#include "tensor/json.h"
#include "tools/companion/arguments.h"
#include "tools/companion/narrator.h"

namespace hone {

/// --plugin-dir, --include, --exclude before the command's own.
std::vector<CompanionFlag> with_plugin_choice(std::vector<CompanionFlag> own);

struct Plugin {
  std::string folder, name, op;
  edit::Pattern pattern;
  std::vector<std::string> inputs;  // names in the pattern
  Json attributes = Json::object();
  std::string domain = {};
  std::string script = {};  // instead of all but the folder
};
/// Of a pattern.json. Throws StatusError.
Plugin read_plugin(const std::string& file);

/// Configurations of those that fit the model, whose counts are told. Throws StatusError for patterns that cannot be read.
Json plugin_matches(const Arguments& arguments, const Narrator& narrator);

/// Of a YAML file. Throws StatusError.
std::vector<Json> read_plugin_config(const std::string& path);

/// Puts an operator where its configuration says; `folder` may hold a pattern.py that does it in a way of its own.
void put_plugin(edit::Model& model, const Json& plugin, const std::string& folder, const Narrator& narrator);

}  // namespace hone
