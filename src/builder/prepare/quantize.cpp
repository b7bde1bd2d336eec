// SPDX-License-Identifier: Apache-2.0
#include "builder/prepare/quantize.h"

#include "builder/session.h"
#include "device/device.h"
#include "quantize/fold_weights.h"
#include "quantize/quantize_graph.h"
#include "quantize/read_scales.h"

namespace hone {
void quantize_network(Graph& graph, const BuildOptions& options, const DeviceInfo& device, const Listeners& listeners) {
  if (!options.int8 || (options.scales.empty() && options.calibration_file.empty())) return;
  Logger log(
      [&](Severity severity, std::string_view line) { listeners.tell(&BuildListener::pass_said, severity, line); });
  log.set_threshold(Severity::verbose);
  TensorScales scales = options.scales;
  if (scales.empty()) scales = read_scales(options.calibration_file, graph, log);
  if (is_quantized(graph))
    return log.warning("The network has quantised tensors of its own; the scales of the calibration are not used.");
  if (!device.byte_matmuls)
    return log.warning("This device has no kernels for 8-bit integers; the network is computed in floating point.");
  const auto keeps_floats = [&](const Node& node) {
    const std::string_view type = layer_type(options, node);
    return !type.empty() && type != "int8";
  };
  const PlacementRules rules{keeps_floats, [&](const Value& value) { return scales.contains(value.name); }};
  fold_weights(graph);
  const Placement placement = place_quantization(graph, rules);
  quantize_graph(graph, placement, united_scales(placement, scales), options.codes);
  log.info("INT8: {} of {} convolutions and matmuls are quantised, {} tensors between them.", placement.nodes,
           placement.nodes + placement.left.size(), placement.tensors.size());
  for (const UnquantizedNode& left : placement.left)
    log.info("INT8: {} stays in floating point: {}.", left.node->name, left.reason);
}

}  // namespace hone
