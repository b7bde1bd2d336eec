// SPDX-License-Identifier: Apache-2.0
#include "tools/trtexec/layer_types.h"

#include <algorithm>

#include "base/text.h"
#include "tools/common/plan_view.h"

namespace hone {
namespace {

/// Whether a layer has the type in memory, or rounds to it inside.
bool has_type(const hone_plan* plan, size_t index, const PlanLayer& layer, DType type) {
  const Attrs parameters = layer.parameters();
  for (const char* rounded : {"operands", "weights"})
    if (parameters.has(rounded) && parse_dtype(parameters.text(rounded)) == type) return true;
  for (size_t i = 0; i < layer.known.inputs + layer.known.outputs; ++i) {
    const auto held = static_cast<DType>(ask<hone_tensor>(hone_plan_layer_tensor, plan, 0, index, i).dtype);
    if (held == type || (type == DType::i8 && held == DType::u8)) return true;
  }
  return false;
}

bool is_folded(const hone_plan* plan, const std::string& layer) {
  for (size_t i = 0; i < hone_plan_folded_nodes(plan); ++i) {
    const char *node = nullptr, *pass = nullptr;
    check(hone_plan_folded_node(plan, i, &node, &pass));
    if (node == layer) return true;
  }
  return false;
}

void report_layer(const hone_plan* plan, const std::vector<PlanLayer>& layers, const std::string& layer,
                  std::string_view types, const Logger& log) {
  std::vector<size_t> steps;
  for (size_t i = 0; i < layers.size(); ++i)
    if (std::ranges::find(layers[i].nodes, layer) != layers[i].nodes.end()) steps.push_back(i);
  if (steps.empty() && !is_folded(plan, layer)) return;  // the model has no such layer, as was said
  if (steps.empty())
    return log.info("Layer {}: nothing is left of it in the engine, so it has no type of its own.", layer);
  for (const std::string_view type : split(types, '+')) {
    const DType asked = *dtype_of_word(type);
    const bool found = std::ranges::any_of(steps, [&](size_t i) { return has_type(plan, i, layers[i], asked); });
    if (found) log.info("Layer {}: {} was asked for and obtained.", layer, type);
    else log.warning("Layer {}: {} was asked for, it is computed in another type.", layer, type);
  }
}

}  // namespace

void report_layer_types(const hone_plan* plan, const Options& options, const Logger& log) {
  const ToolOptions& tool = options.tool;
  if (tool.precision_constraints == "none" || tool.strongly_typed) return;
  if (tool.layer_precisions.empty() && tool.layer_output_types.empty()) return;
  const std::vector<PlanLayer> layers = layers_of(plan, 0);
  for (const NamedTexts* entries : {&tool.layer_precisions, &tool.layer_output_types})
    for (const auto& [layer, types] : *entries)
      if (layer.find('*') == std::string::npos) report_layer(plan, layers, layer, types, log);
}

}  // namespace hone
