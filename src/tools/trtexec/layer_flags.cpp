// SPDX-License-Identifier: Apache-2.0
//
// A layer is what the model calls a node; where import made several nodes of one, all of them carry its name as origin.
#include "tools/trtexec/layer_flags.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace hone {
namespace {

using OutputCounts = std::map<std::string, size_t, std::less<>>;

/// Outputs of every layer of the model.
OutputCounts count_outputs(const Graph& graph) {
  OutputCounts counts;
  for (const Node* node : graph.nodes())
    for (const std::string& layer : node->origin) {
      const auto used = static_cast<size_t>(
          std::ranges::count_if(node->outputs, [](const Value* value) { return value != nullptr; }));
      counts[layer] = std::max(counts[layer], used);
    }
  return counts;
}

void warn_of_unknown(const NamedTexts& entries, std::string_view flag, const OutputCounts& layers, const Logger& log) {
  for (const auto& [name, value] : entries) {
    if (name.find('*') != std::string::npos || layers.contains(name)) continue;
    std::vector<std::string_view> names;
    for (const auto& [layer, count] : layers) names.push_back(layer);
    log.warning("{} names the layer {}, which the model does not have; the nearest name is {}", flag, name,
                nearest(name, names));
  }
}

bool is_allowed(std::string_view type, const Options& options) {
  const BuildOptions& build = options.build;
  if (type == "fp16") return build.fp16;
  if (type == "bf16") return build.bf16;
  if (type == "int8") return build.int8;
  if (type == "fp8") return options.tool.fp8;
  return type != "int4" || options.tool.int4;
}

bool is_named(const Node& node, const std::string& layer) {
  return std::ranges::any_of(node.origin, [&](const auto& name) { return fits_pattern(layer, name); });
}

void check_types(const Graph& graph, const Options& options, const Logger& log) {
  for (const auto& [layer, type] : options.tool.layer_precisions) {
    if (is_allowed(type, options)) continue;
    for (const Node* node : graph.nodes()) {
      if (!is_named(*node, layer)) continue;
      const std::string message =
          fmt::format("--layerPrecisions asks for {} in layer {} (tensor {}), but --{} is not given", type,
                      node->origin.front(), node->output()->name, type);
      if (options.tool.precision_constraints == "obey") throw Error(message, fmt::format("add --{}", type));
      log.warning("{}; it stays in another type", message);
      break;
    }
  }
}

}  // namespace

void check_layer_flags(const Graph& graph, const Options& given, const Logger& log) {
  const ToolOptions& options = given.tool;
  if (options.layer_precisions.empty() && options.layer_output_types.empty() && options.layer_devices.empty()) return;
  const OutputCounts layers = count_outputs(graph);
  warn_of_unknown(options.layer_precisions, "--layerPrecisions", layers, log);
  warn_of_unknown(options.layer_output_types, "--layerOutputTypes", layers, log);
  warn_of_unknown(options.layer_devices, "--layerDeviceTypes", layers, log);
  for (const auto& [name, types] : options.layer_output_types) {
    const auto found = layers.find(name);
    const size_t count = split(types, '+').size();
    if (found == layers.end() || count == 1 || count == found->second) continue;
    log.error("Layer {} is given {} types ({}), but has {} outputs", name, count, types, found->second);
    throw Error("Invalid --layerOutputTypes flag.",
                "give one type for all outputs of a layer, or as many as it has, joined with +");
  }
  if (options.precision_constraints != "none") check_types(graph, given, log);
}

}  // namespace hone
