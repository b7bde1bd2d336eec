// SPDX-License-Identifier: Apache-2.0
#include "tools/quantize/balancing.h"

#include <algorithm>
#include <cmath>

#include "quantize/bias_correction.h"

namespace hone {
namespace {

ChannelRanges ranges_over(const hone_model& model, const hone_device& device, const std::vector<ReadChannels>& tensors,
                          DataSet& data) {
  std::set<std::string> names;
  for (const ReadChannels& each : tensors) names.insert(each.tensor->name);
  ChannelRanges ranges;
  if (names.empty()) return ranges;
  observe(model, device, names, data, [&](const std::string& tensor, const Dims& dims, std::span<const float> values) {
    const auto channels = static_cast<size_t>(dims.back());
    Factors& largest = ranges.try_emplace(tensor, Factors(channels, 0.0F)).first->second;
    for (size_t i = 0; i < values.size(); ++i) {
      HONE_CHECK(std::isfinite(values[i]), "value {} is {}, which is not finite", i, values[i]);
      float& reached = largest[i % channels];
      reached = std::max(reached, std::fabs(values[i]));
    }
  });
  return ranges;
}

void take(const Balanced& balanced, const std::string& what, QuantizedModel& result) {
  apply(balanced.edits, result.model.graph);
  result.edits.add(balanced.edits);
  result.done.push_back(fmt::format("{}: {} tensors have other ranges of channels", what, balanced.tensors));
}

}  // namespace

void balance(const QuantizeRequest& request, const TakesPart& takes_part, const hone_device& device,
             QuantizedModel& result) {
  const Graph& graph = result.model.graph;
  if (request.equalizes) take(equalized(graph, takes_part), "equalised", result);
  if (request.smooth) {
    DataSet data(request.data, graph);
    const ChannelRanges seen = ranges_over(result.model, device, balanced_tensors(graph, takes_part), data);
    take(smoothed(graph, takes_part, seen, *request.smooth), "smoothed", result);
  }
  if (!request.scales_channels()) return;
  DataSet data(request.data, graph);
  const Moments moments = moments_over(result.model, device, result.placement, false, data);
  take(scaled_for_blocks(graph, takes_part, moments, request.block, request.codes), "scaled for blocks (AWQ)", result);
}

void correct_biases(const QuantizeRequest& request, const hone_device& device,
                    const std::function<Placement(const Graph&)>& place, QuantizedModel& result) {
  hone_model both{result.model.graph.clone(), {}, {}};
  const std::vector<ShadowProduct> shadows =
      add_shadow_products(both.graph, place(both.graph), result.scales, request.codes);
  std::set<std::string> names;
  std::map<std::string, ChannelMeans, std::less<>> means;
  for (const ShadowProduct& shadow : shadows)
    for (const std::string& name : {shadow.exact, shadow.rounded}) {
      names.insert(name);
      means.try_emplace(name, shadow.axis, shadow.channels);
    }
  DataSet data(request.data, result.model.graph);
  observe(both, device, names, data, [&](const std::string& tensor, const Dims& dims, std::span<const float> values) {
    means.at(tensor).add(dims, values);
  });
  std::map<std::string, std::vector<float>, std::less<>> shifts;
  for (const ShadowProduct& shadow : shadows) {
    std::vector<float>& shift = shifts[shadow.exact];
    for (size_t i = 0; i < shadow.channels; ++i)
      shift.push_back(static_cast<float>(means.at(shadow.exact).mean(i) - means.at(shadow.rounded).mean(i)));
  }
  const CorrectedBiases corrected = corrected_biases(result.model.graph, shifts);
  result.edits.add(corrected.edits);
  result.done.push_back(fmt::format("biases corrected: {} of {} products", corrected.products, result.placement.nodes));
}

}  // namespace hone
