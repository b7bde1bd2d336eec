// SPDX-License-Identifier: Apache-2.0
#include "builder/prepare/quantize.h"

#include <algorithm>

#include "builder/prepare/layer_types.h"
#include "builder/prepare/scales.h"
#include "device/device.h"
#include "ops/weight_codes.h"
#include "quantize/fold_weights.h"
#include "quantize/quantize_graph.h"
#include "quantize/read_scales.h"

namespace hone {
namespace {

void quantize(Graph& graph, const BuildOptions& options, const DeviceInfo& device, const TensorScales& scales,
              const Logger& log) {
  const auto keeps_floats = [&](const Node& node) {
    const std::string_view type = layer_type(options, node);
    return !type.empty() && type != "int8";
  };
  const PlacementRules rules{.keeps_floats = keeps_floats,
                             .has_scale = [&](const Value& value) { return scales.contains(value.name); },
                             .piece = device.byte_matmuls ? 0 : kCodesAtOnce};
  fold_weights(graph);
  const Placement placement = place_quantization(graph, rules);
  for (const UnquantizedNode& left : placement.left)
    if (is_required(options, *left.node, "int8"))
      throw Error(fmt::format("layer {} (tensor {}) is asked for in int8, but cannot be: {}", left.node->name,
                              left.node->output()->label(), left.reason),
                  "leave it out of --layerPrecisions, or write --precisionConstraints=prefer");
  quantize_graph(graph, placement, united_scales(placement, scales), options.codes);
  log.info("INT8: {} of {} convolutions and matmuls are quantised, {} tensors between them.", placement.nodes,
           placement.nodes + placement.left.size(), placement.tensors.size());
  for (const UnquantizedNode& left : placement.left)
    log.info("INT8: {} stays in floating point: {}.", left.node->name, left.reason);
}

/// A result of a layer that is asked for in 8 bits and is computed in f32.
struct CodedResult {
  const Node* node;
  Value* value;
  DType type;
  Node* next;  // behind it in the graph; null: none
};

/// Nodes that import or quantisation made of one layer hand values to each other.
bool leaves_layer(const Graph& graph, const Node& node, const Value& value) {
  const auto is_same_layer = [&](const Use& use) { return use.node->origin == node.origin; };
  return graph.is_output(&value) || value.uses.empty() || !std::ranges::all_of(value.uses, is_same_layer);
}

std::vector<CodedResult> coded_results(const Graph& graph, const BuildOptions& options) {
  std::vector<CodedResult> results;
  const std::vector<Node*> nodes = options.result_types.empty() ? std::vector<Node*>() : graph.nodes();
  for (size_t at = 0; at < nodes.size(); ++at) {
    const std::vector<DType> types = asked_types(options, *nodes[at]).results;
    for (size_t i = 0; i < nodes[at]->outputs.size() && !types.empty(); ++i) {
      Value* value = nodes[at]->outputs[i];
      const DType type = types[types.size() == 1 ? 0 : std::min(i, types.size() - 1)];
      if (is_code(type) && value->type.dtype == DType::f32 && leaves_layer(graph, *nodes[at], *value) &&
          !model_scale(*value, type))
        results.push_back({nodes[at], value, type, at + 1 < nodes.size() ? nodes[at + 1] : nullptr});
    }
  }
  return results;
}

CodeScale scale_for(const CodedResult& result, const BuildOptions& options, const TensorScales& scales) {
  for (const TensorScales* known : {&scales, &options.other_scales})
    if (const auto at = known->find(result.value->name); at != known->end())
      return calibrated_scale(at->second, options.codes, result.type);
  throw Error(fmt::format("layer {} is asked for {} results, but nothing says the scale of tensor {}",
                          result.node->name, result.type == DType::i8 ? "int8" : "fp8", result.value->label()),
              "calibrate with --calibData, or give a cache with --calib that names the tensor");
}

void quantize_result(Graph& graph, const CodedResult& result, const CodeScale& scale) {
  Value* value = result.value;
  Value* codes = quantized(graph, value, scale, result.next);
  codes->producer->origin = result.node->origin;
  const std::string name = value->name;
  const bool is_output = graph.is_output(value);
  graph.replace(value, dequantized(graph, codes, scale, result.next));
  graph.set_input(codes->producer, 0, value);
  if (!is_output) value->name = name;
}

}  // namespace

TensorScales quantize_network(Graph& graph, const BuildOptions& options, const DeviceInfo& device,
                              const Listeners& listeners) {
  Logger log(
      [&](Severity severity, std::string_view line) { listeners.tell(&BuildListener::pass_said, severity, line); });
  log.set_threshold(Severity::verbose);
  TensorScales scales = known_scales(graph, options, log);
  if (!options.int8 || scales.empty()) return scales;
  if (is_quantized(graph))
    log.warning("The network has quantised tensors of its own; the scales of the calibration are not used.");
  else if (!device.has_integers())
    log.warning("This device has no kernels for 8-bit integers; the network is computed in floating point.");
  else quantize(graph, options, device, scales, log);
  return scales;
}

void quantize_results(Graph& graph, const BuildOptions& options, const TensorScales& scales) {
  for (const CodedResult& result : coded_results(graph, options))
    quantize_result(graph, result, scale_for(result, options, scales));
}

std::set<std::string> results_without_scale(const Graph& graph, const BuildOptions& options) {
  std::set<std::string> names;
  for (const CodedResult& result : coded_results(graph, options))
    if (result.type == DType::i8) names.insert(result.value->name);
  return names;
}

}  // namespace hone
