// SPDX-License-Identifier: Apache-2.0
#include "explore/hazards.h"

#include <fmt/format.h>
#include <algorithm>

namespace hone {
namespace {

struct Finding {
  std::string hazard, mitigation;
};
using Findings = std::vector<Finding>;

bool is_low(const ElementWord& element) { return element.bits > 0 && element.bits <= 8 && element.name != "BOOL"; }
bool is_float(const ElementWord& element) { return element.name.starts_with("FP") || element.name == "BF16"; }

Findings of_convolution(const LayerRow& row) {
  Findings found;
  if ((row.type != "Convolution" && row.type != "Deconvolution") || row.inputs.empty() || row.outputs.empty())
    return found;
  const TensorRow &in = row.inputs[0], &out = row.outputs[0];
  if (in.element.bits == 8 && !is_low(out.element))
    found.push_back({fmt::format("reads {} and writes {}", in.element.name, out.element.name),
                     "quantise the result, so that what follows reads a quarter of the bytes"});
  if (in.element.bits > 16 || in.dims.size() < 2 || out.dims.size() < 2 || row.groups > 1) return found;
  const int64_t step = in.element.bits == 8 ? 16 : 8;
  for (const auto& [side, channels] : {std::pair("input", in.dims[1]), std::pair("output", out.dims[1])})
    if (channels > 0 && channels % step != 0)
      found.push_back(
          {fmt::format("{} {} channels in {}: matrix units take {} at a time", channels, side, in.element.name, step),
           "pad the channels in the model to a multiple, or keep this layer in a wider type"});
  return found;
}

Findings of_conversion(const LayerRow& row) {
  Findings found;
  if (row.inputs.empty() || row.outputs.empty()) return found;
  const ElementWord &in = row.inputs[0].element, &out = row.outputs[0].element;
  const bool moves = row.type == "Reformat" || row.type == "Slice" || row.type == "Shuffle" || row.type == "NoOp";
  if (moves && in.name != out.name) {
    const bool quantises = is_low(in) != is_low(out) && (is_float(in) || is_float(out));
    found.push_back({fmt::format("a {} that converts {} to {}{}", row.type, in.name, out.name,
                                 row.origin.empty() ? "" : fmt::format(" (origin {})", row.origin)),
                     quantises ? "quantise its neighbour, too, so that both sides have one type"
                               : "give both sides one type: the conversion is a pass over memory"});
  } else if (row.type == "Reformat" && row.share >= 1) {
    found.push_back({fmt::format("changes the layout for {:.1f} % of the time", row.share),
                     "give inputs and outputs the layout of their neighbours (--inputIOFormats, --outputIOFormats)"});
  }
  if (row.type == "Quantize" || row.type == "Dequantize" || row.type == "QuantizeLinear" ||
      row.type == "DequantizeLinear")
    found.push_back({"a conversion between floats and integers that joined no layer",
                     "hone inspect MODEL --quantisation says what stands in the way"});
  return found;
}

Findings of_source(const LayerRow& row) {
  if (!row.tactic.starts_with("reference.") || row.share < 1) return {};
  return {{fmt::format("computed by the reference, for {:.1f} % of the time", row.share),
           "hone inspect capability MODEL says why no kernel takes it"}};
}

}  // namespace

std::vector<Hazard> find_hazards(const EngineRows& engine) {
  struct Linter {
    const char* kind;
    Findings (*look)(const LayerRow&);
  };
  static constexpr Linter kLinters[] = {
      {"convolution", of_convolution}, {"conversion", of_conversion}, {"reference", of_source}};
  std::vector<Hazard> hazards;
  for (const LayerRow& row : engine.layers)
    for (const Linter& linter : kLinters)
      for (Finding& finding : linter.look(row))
        hazards.push_back(
            {row.name, linter.kind, std::move(finding.hazard), std::move(finding.mitigation), row.median_ms});
  std::ranges::stable_sort(hazards, std::greater(), &Hazard::ms);
  return hazards;
}

}  // namespace hone
