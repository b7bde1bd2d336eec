// SPDX-License-Identifier: Apache-2.0
#include "builder/conversions.h"

#include <algorithm>

#include "base/text.h"
#include "builder/regions.h"
#include "builder/session.h"
#include "ops/byte_scale.h"
#include "ops/ops.h"

namespace hone {
namespace {

constexpr size_t kNamed = 3;

bool is_conversion(const Node& node) {
  return (node.is(ops::quantize_linear) || node.is(ops::dequantize_linear)) && !node.input(0)->is_constant();
}

const std::string& name_in_model(const Node& node) { return node.origin.empty() ? node.name : node.origin.front(); }

std::string label_of(const Node& node) { return fmt::format("{} ({})", name_in_model(node), node.op_name()); }

std::string readers_of(const Value& value) {
  std::vector<std::string> readers;
  for (const Use& use : value.uses)
    if (const std::string label = label_of(*use.node); std::ranges::find(readers, label) == readers.end())
      readers.push_back(label);
  const size_t more = readers.size() - std::min(readers.size(), kNamed);
  readers.resize(readers.size() - more);
  return join(readers, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string reason_of(const Graph& graph, const Node& node) {
  if (!byte_scale(node)) return "its scale is not one number that is known, or its integers have not 8 bits";
  const bool quantises = node.is(ops::quantize_linear);
  const Value& floats = quantises ? *node.input(0) : *node.output();
  if (quantises && floats.producer == nullptr) return "the network is given floats";
  if (graph.is_output(&floats)) return "the network gives floats";
  if (!quantises) return fmt::format("computed in floats behind it: {}", readers_of(floats));
  if (floats.uses.size() > 1) return fmt::format("the floats have other readers: {}", readers_of(floats));
  return fmt::format("computed in floats before it: {}", label_of(*floats.producer));
}

}  // namespace

ConversionSurvey survey_conversions(Graph given, const BuildOptions& asked, const Backend& backend, Device& device,
                                    const Listeners& listeners) {
  ConversionSurvey result;
  for (const Node* node : given.nodes()) result.conversions += is_conversion(*node);
  BuildOptions options = asked;
  options.optimization_level = 0;
  TimingCache cache;
  const BuildSession session(std::move(given), options, backend, device, cache, listeners);
  for (const Region& region : form_regions(session.graph, device.info().byte_matmuls)) {
    if (!std::ranges::all_of(region.nodes, [](const Node* node) { return is_conversion(*node); })) continue;
    for (const Node* node : region.nodes)
      result.alone.push_back({name_in_model(*node), node->input(0)->name, node->is(ops::quantize_linear),
                              reason_of(session.graph, *node)});
  }
  return result;
}

}  // namespace hone
