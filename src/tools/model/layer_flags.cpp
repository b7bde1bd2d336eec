// SPDX-License-Identifier: Apache-2.0
//
// A layer is what the model calls a node; where import made several nodes of one, all of them carry its name as origin.
#include "tools/model/layer_flags.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace hone {
namespace {

using OutputCounts = std::map<std::string, size_t, std::less<>>;

bool is_pattern(const std::string& layer) { return layer.find('*') != std::string::npos; }

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
    if (is_pattern(name) || layers.contains(name)) continue;
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

/// Why no kernel computes the layer in the type, or brings its results to it; empty: one may.
std::string obstacle(std::string_view type, const Node& node) {
  const DType has = node.output()->type.dtype, asked = *dtype_of_word(type);
  const bool real = is_float(has) && !is_small(has);
  if (has == asked || (real && (asked == DType::f32 || asked == DType::f16 || asked == DType::bf16))) return {};
  if (real && asked == DType::i8) return {};
  if (asked == DType::f8e4m3fn || asked == DType::i4)
    return fmt::format("{} comes from QuantizeLinear and DequantizeLinear in the model alone", type);
  return fmt::format("the tensor holds {}", name_of(has));
}

/// Where obey makes it binding an error, else a warning.
void refuse(const std::string& message, const std::string& hint, const Options& options, const Logger& log) {
  if (options.tool.precision_constraints == "obey") throw Error(message, hint);
  log.warning("{}; it stays in another type", message);
}

/// One entry of a flag against the first layer that it means.
void check_type(const Graph& graph, std::string_view flag, const std::string& layer, std::string_view type,
                size_t output, const Options& options, const Logger& log) {
  for (const Node* node : graph.nodes()) {
    if (!is_named(*node, layer) || output >= node->outputs.size()) continue;
    const std::string asked = fmt::format("{} asks for {} in layer {} (tensor {})", flag, type, node->origin.front(),
                                          node->output(output)->label());
    const bool results = flag == "--layerOutputTypes", free = results && (type == "fp16" || type == "bf16");
    if (!free && !is_allowed(type, options))
      return refuse(fmt::format("{}, but --{} is not given", asked, type), fmt::format("add --{}", type), options, log);
    if (is_pattern(layer)) return;
    const std::string reason = results && type == "fp8" ? "" : obstacle(type, *node);
    if (!reason.empty())
      refuse(fmt::format("{}, but {}", asked, reason), fmt::format("leave {} out of {}", layer, flag), options, log);
    return;
  }
}

void check_types(const Graph& graph, const Options& options, const Logger& log) {
  for (const auto& [layer, type] : options.tool.layer_precisions)
    check_type(graph, "--layerPrecisions", layer, type, 0, options, log);
  for (const auto& [layer, types] : options.tool.layer_output_types) {
    const std::vector<std::string_view> each = split(types, '+');
    for (size_t i = 0; i < each.size(); ++i) check_type(graph, "--layerOutputTypes", layer, each[i], i, options, log);
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
  if (options.precision_constraints != "none" && !options.strongly_typed) check_types(graph, given, log);
}

}  // namespace hone
