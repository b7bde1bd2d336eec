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

/// Why a conversion is none that regions take in.
std::string oddity_of(const Node& node) {
  const Value &scale = *node.input(1), &integers = node.is(ops::quantize_linear) ? *node.output() : *node.input(0);
  const DType type = integers.type.dtype;
  if (type != DType::u8 && type != DType::i8) return fmt::format("its integers are {}, not of 8 bits", name_of(type));
  if (!scale.is_constant() || (node.input(2) != nullptr && !node.input(2)->is_constant()))
    return "its scale or zero point is not known before the network runs";
  if (scale.constant->size() != 1) return fmt::format("it has {} scales", scale.constant->size());
  if (scale.type.dtype == DType::f32)
    return fmt::format("its scale, {:.3g}, is at the end of what floats can be", scale.constant->data<float>()[0]);
  return fmt::format("its scale is {}, not f32", name_of(scale.type.dtype));
}

std::string reason_of(const Graph& graph, const Node& node) {
  if (!byte_scale(node)) return oddity_of(node);
  const bool quantises = node.is(ops::quantize_linear);
  const Value& floats = quantises ? *node.input(0) : *node.output();
  if (quantises && floats.producer == nullptr) return "the network is given floats";
  if (graph.is_output(&floats)) return "the network gives floats";
  if (!quantises) return fmt::format("computed in floats behind it: {}", readers_of(floats));
  if (floats.uses.size() > 1) return fmt::format("the floats have other readers: {}", readers_of(floats));
  return fmt::format("computed in floats before it: {}", label_of(*floats.producer));
}

/// A region of conversions that begins and ends in bytes is a table of bytes, which is told as what ends it.
bool is_table(const Region& region) {
  return region.nodes.size() > 1 && region.nodes.front()->is(ops::dequantize_linear) &&
         region.nodes.back()->is(ops::quantize_linear);
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
    if (is_table(region)) {
      const Node &first = *region.nodes.front(), &last = *region.nodes.back();
      result.alone.push_back(
          {name_in_model(last), first.input(0)->name, true,
           fmt::format("bytes of one scale become bytes of another, for {}", readers_of(*last.output()))});
      continue;
    }
    for (const Node* node : region.nodes)
      result.alone.push_back({name_in_model(*node), node->input(0)->name, node->is(ops::quantize_linear),
                              reason_of(session.graph, *node)});
  }
  return result;
}

}  // namespace hone
