// SPDX-License-Identifier: Apache-2.0
#include "builder/header.h"

#include <set>

#include "base/text.h"
#include "base/version.h"
#include "builder/portable.h"
#include "ir/custom.h"
#include "ops/ops.h"

namespace hone {
namespace {

std::string precision_text(const BuildOptions& options) {
  std::string text = "FP32";
  if (options.fp16) text += "+FP16";
  if (options.bf16) text += "+BF16";
  if (options.int8) text += "+INT8";
  return text;
}

PlanMeta meta_of(const BuildSession& session) {
  const std::string precision = precision_text(session.options);
  return {.hone_version = kVersion,
          .backend = std::string(session.backend.name),
          .device = session.device.info().name,
          .architecture = session.device.info().architecture,
          .model = session.graph.name,
          .options = fmt::format("level={} precision={}", session.options.optimization_level, precision),
          .profiling_verbosity = session.options.profiling_verbosity,
          .precision = precision};
}

TensorType outer_type(const Value& value, const Shape& shape, Layout layout) {
  TensorType type = value.type;
  type.shape = shape;
  type.layout = layout;
  return type;
}

std::vector<IoTensor> io_of(const BuildSession& session) {
  const PreparedGraph& prepared = session.prepared;
  std::vector<IoTensor> io;
  for (size_t i = 0; i < prepared.declared.inputs.size(); ++i) {
    const Value* value = session.graph.inputs()[i];
    const auto range = prepared.ranges.find(value->name);
    io.push_back({value->name, outer_type(*value, prepared.declared.inputs[i], session.edges.of_input(value)), true,
                  range == prepared.ranges.end() ? std::nullopt : std::optional(range->second)});
  }
  for (size_t i = 0; i < prepared.declared.outputs.size(); ++i) {
    const Value* value = session.graph.outputs()[i];
    io.push_back(
        {value->name, outer_type(*value, prepared.declared.outputs[i], session.edges.of_output(value)), false});
  }
  return io;
}

std::vector<PlanOperator> operators_of(const Graph& graph) {
  std::vector<PlanOperator> operators;
  for (const std::shared_ptr<const OpDef>& op : custom_operators(graph))
    operators.push_back({.domain = op->custom->domain,
                         .name = op->custom->name,
                         .version = op->custom->version,
                         .library = op->custom->library,
                         .hash = op->custom->hash});
  return operators;
}

}  // namespace

Plan plan_header(const BuildSession& session) {
  Plan plan;
  plan.meta = meta_of(session);
  plan.io = io_of(session);
  for (const std::string& node : session.options.folded_by_import) plan.folded.push_back({node, "import"});
  for (const Folded& node : session.prepared.folded) plan.folded.push_back({node.node, std::string(node.pass)});
  if (session.options.portable) plan.portable = portable_part(session.graph);
  plan.operators = operators_of(session.graph);
  if (session.options.strip_weights) plan.weights = WeightStorage::not_in_file;
  return plan;
}

void note_shape_nodes(const Graph& graph, Plan& plan) {
  std::set<std::string> told;
  for (const Profile& profile : plan.profiles)
    for (const Step& step : profile.steps) told.insert(step.origin.begin(), step.origin.end());
  for (const Node* node : graph.nodes())
    if (node->is(ops::symbolic_constant))
      for (const std::string& name : node->origin)
        if (told.insert(name).second) plan.folded.push_back({name, "form_regions"});
}

}  // namespace hone
