// SPDX-License-Identifier: Apache-2.0
#include "builder/prepare/layer_types.h"

#include <algorithm>

#include "base/text.h"

namespace hone {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

bool is_named(const Node& node, const std::string& layer) {
  return std::ranges::find(node.origin, layer) != node.origin.end();
}
bool is_meant(const Node& node, const std::string& layer) {
  if (layer == "*" || is_named(node, layer)) return true;
  return layer.find('*') != std::string::npos &&
         std::ranges::any_of(node.origin, [&](const auto& name) { return fits_pattern(layer, name); });
}

/// The last entry with the node's name, else the last pattern that fits.
std::string_view entry_for(const Entries& entries, const Node& node, std::string_view first_of_names) {
  std::string_view by_name, by_pattern;
  for (const auto& [layer, value] : entries) {
    if (!is_meant(node, layer)) continue;
    if (!is_named(node, layer)) by_pattern = value;
    else if (first_of_names.empty() || by_name != first_of_names) by_name = value;
  }
  return by_name.empty() ? by_pattern : by_name;
}

}  // namespace

std::string_view layer_type(const BuildOptions& options, const Node& node) {
  return entry_for(options.layer_types, node, "fp32");
}

AskedTypes asked_types(const BuildOptions& options, const Node& node) {
  AskedTypes asked{.computes = dtype_of_word(entry_for(options.required_types, node, "fp32"))};
  const std::string_view results = entry_for(options.result_types, node, {});
  if (results.empty()) return asked;
  for (const std::string_view word : split(results, '+'))
    asked.results.push_back(dtype_of_word(word).value_or(DType::f32));
  return asked;
}

bool is_required(const BuildOptions& options, const Node& node, std::string_view type) {
  return std::ranges::any_of(options.required_types,
                             [&](const auto& entry) { return entry.second == type && is_named(node, entry.first); });
}

bool asks_types(const BuildOptions& options) {
  return !options.required_types.empty() || !options.result_types.empty();
}

}  // namespace hone
