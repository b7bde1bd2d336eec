// SPDX-License-Identifier: Apache-2.0
#include "quantize/read_scales.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "ops/ops.h"

namespace hone {
namespace {

std::set<std::string_view> tensor_names(const Graph& graph) {
  std::set<std::string_view> names;
  for (const Value* input : graph.inputs()) names.insert(input->name);
  for (const Node* node : graph.nodes())
    for (const Value* value : node->outputs) names.insert(value->name);
  return names;
}

}  // namespace

bool is_quantized(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node* node) {
    return node->is(ops::quantize_linear) || node->is(ops::dequantize_linear) ||
           node->is(ops::dynamic_quantize_linear) || node->is(ops::mat_mul_integer) || node->is(ops::conv_integer);
  });
}

TensorScales scales_in(const CalibrationCache& cache, const Graph& graph, const Logger& log) {
  const std::set<std::string_view> names = tensor_names(graph);
  TensorScales scales;
  for (const auto& [tensor, scale] : cache.scales) {
    if (!names.contains(tensor)) continue;
    if (scale == 0)
      throw Error(fmt::format("the scale of tensor {} is 0", tensor),
                  "calibrate on data for which the tensor is not all zeros, or leave its line out");
    scales[tensor] = {scale, 0};
  }
  if (scales.empty())
    throw Error(fmt::format("none of its {} tensors is in the network", cache.scales.size()),
                "it was made for another model, or for one with other names; calibrate this one");
  log.info("Read {} scales of {}; {} of them are of tensors that the network does not have.", cache.scales.size(),
           cache.calibrator, cache.scales.size() - scales.size());
  return scales;
}

TensorScales read_scales(const std::string& path, const Graph& graph, const Logger& log) {
  return with_note([&] { return "using the calibration cache " + path; },
                   [&] { return scales_in(read_calibration_cache(path), graph, log); });
}

}  // namespace hone
