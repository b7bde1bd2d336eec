// SPDX-License-Identifier: Apache-2.0
//
// From the imported graph to the one that is tuned. Passes rewrite what the plan has to say of the model, so that is noted first.
#include "builder/session.h"

#include <algorithm>
#include <set>

#include "base/env.h"
#include "base/text.h"
#include "builder/prepare/debug_tensors.h"
#include "builder/prepare/layer_types.h"
#include "builder/prepare/profile.h"
#include "builder/prepare/quantize.h"
#include "builder/refit/refit.h"
#include "ir/range.h"
#include "passes/pipeline.h"

namespace hone {
namespace {

/// What kernels are tuned for where a size is data-dependent.
constexpr int64_t kUsualDataSize = 64;

bool all_ranked(const Graph& graph) {
  for (const Node* node : graph.nodes())
    for (const Value* output : node->outputs)
      if (!output->type.ranked) return false;
  return true;
}

/// The name, or with a number behind it where it is taken.
std::string unique(const std::string& wanted, std::set<std::string>& taken) {
  std::string name = wanted;
  for (int i = 1; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
  return name;
}

/// Every layer and tensor gets a name of its own.
void name_layers(Graph& graph) {
  std::set<std::string> layers, tensors;
  for (const Value* input : graph.inputs()) tensors.insert(input->name);
  for (const Node* node : graph.nodes())
    for (const Value* output : node->outputs) tensors.insert(output->name);
  for (Node* node : graph.nodes()) {
    node->name = unique(node->name.empty() ? fmt::format("({})", node->op_name()) : node->name, layers);
    for (Value* output : node->outputs)
      if (output->name.empty()) output->name = unique(fmt::format("{}_output_{}", node->name, output->index), tensors);
  }
}

/// What floats are brought to: what is allowed, where the device gains by it.
DType precision_of(const BuildOptions& options, const DeviceInfo& device) {
  if (!device.half_networks) return options.bf16 && device.bf16_matmuls ? DType::bf16 : DType::f32;
  return options.fp16 ? DType::f16 : options.bf16 ? DType::bf16 : DType::f32;
}

std::map<std::string, ValueRange> input_ranges(const Graph& graph) {
  std::map<std::string, ValueRange> ranges;
  for (const Value* input : graph.inputs())
    if (const auto range = accepted_range(input)) ranges[input->name] = {range->low, range->high};
  return ranges;
}

DeclaredShapes declared_shapes(const Graph& graph, size_t outputs) {
  DeclaredShapes shapes;
  for (const Value* value : graph.inputs()) shapes.inputs.push_back(value->type.shape);
  for (size_t i = 0; i < outputs; ++i) shapes.outputs.push_back(graph.outputs()[i]->type.shape);
  return shapes;
}

std::vector<ProfilePoints> profiles_of(const Graph& graph, const BuildOptions& options, const Listeners& listeners) {
  std::vector<ProfilePoints> points;
  for (const ProfileOptions& profile : options.profiles.empty() ? std::vector<ProfileOptions>(1) : options.profiles)
    points.push_back(profile_points(graph, profile, listeners));
  return points;
}

/// Whether dynamic inputs will only ever have one set of shapes: then all sizes are numbers, and what follows from them is folded.
bool is_fixed(const std::vector<ProfilePoints>& points, const BuildOptions& options) {
  return points.size() == 1 && !points[0].ranges.empty() && points[0].min == points[0].max && !options.portable;
}

/// Whether every size is known before the engine runs.
bool sizes_follow_from_inputs(const Graph& graph) { return graph.size_deciders().empty() && all_ranked(graph); }

std::optional<Graph> with_fixed_sizes(const Graph& graph, const std::vector<ProfilePoints>& points,
                                      const BuildOptions& options) {
  if (!is_fixed(points, options) || !sizes_follow_from_inputs(graph)) return std::nullopt;
  Graph fixed = graph.specialize(points[0].opt);
  if (!sizes_follow_from_inputs(fixed)) return std::nullopt;
  return fixed;
}

/// Layers of which another type is asked than the one that all are brought to.
bool keeps_wide(const BuildOptions& options, const Node& node, DType precision) {
  if (layer_type(options, node) == "fp32") return true;
  const std::optional<DType> required = asked_types(options, node).computes;
  return required && *required != precision && (required == DType::f16 || required == DType::bf16);
}

/// Of the architectures that a plan is to serve ("sm_89"), as of the device's own.
bool all_have_float8(const std::vector<std::string>& targets) {
  return std::ranges::all_of(targets,
                             [](const std::string& name) { return parse_integer(name.substr(3)).value_or(0) >= 89; });
}

/// Graph to graph: simplify, fold, fuse. See passes/pipeline.cpp for the order and its reasons.
/// They rely on ranks, so a graph that leaves some to the run stays as it is.
void run_passes(PreparedGraph& prepared, const BuildOptions& options, const DeviceInfo& device,
                const Listeners& listeners) {
  if (!all_ranked(prepared.graph)) return;
  Logger log(
      [&](Severity severity, std::string_view line) { listeners.tell(&BuildListener::pass_said, severity, line); });
  log.set_threshold(Severity::verbose);
  run(prepared.graph, pipeline(),
      {.log = log,
       .disabled = options.disabled_passes,
       .dump_directory = env_text("HONE_DUMP").value_or(""),
       .widen_half = !device.half_arithmetic,
       .byte_matmuls = device.byte_matmuls,
       .code_products = device.code_products,
       .float8_products = device.float8_products && all_have_float8(options.targets),
       .quantized_weights = device.quantized_weights,
       .half_quantized_weights = device.half_quantized_weights,
       .folded = &prepared.folded,
       .precision = precision_of(options, device),
       .only_convolutions = !device.half_networks,
       .keeps_f32 = [&](const Node& node) { return keeps_wide(options, node, precision_of(options, device)); },
       .asked = asks_types(options) ? [&](const Node& node) { return asked_types(options, node); }
                                    : std::function<AskedTypes(const Node&)>()});
}

/// What a later build does not read from the calibration file again, which may be gone.
BuildOptions with_scales(BuildOptions options, const TensorScales& scales) {
  options.scales = scales;
  return options;
}

PreparedGraph prepare(Graph graph, const BuildOptions& options, const DeviceInfo& device, const Listeners& listeners) {
  PreparedGraph prepared;
  if (options.refit || options.strip_weights) prepared.refit = refit_part(graph, options);
  const TensorScales scales = quantize_network(graph, options, device, listeners);
  quantize_results(graph, options, scales);
  if (prepared.refit && options.scales.empty()) prepared.refit->options = options_text(with_scales(options, scales));
  prepared.ranges = input_ranges(graph);
  prepared.outputs = graph.outputs().size();
  cast_io(graph, options, scales, listeners);
  append_debug_outputs(graph, options.debug_tensors);
  prepared.profiles = profiles_of(graph, options, listeners);
  std::optional<Graph> fixed = with_fixed_sizes(graph, prepared.profiles, options);
  if (fixed) {
    prepared.declared = declared_shapes(graph, prepared.outputs);
    graph = std::move(*fixed);
  }
  prepared.graph = std::move(graph);
  run_passes(prepared, options, device, listeners);
  name_layers(prepared.graph);
  // Where nodes were merged, sizes still bear the names of those that are gone.
  if (!prepared.graph.size_deciders().empty()) prepared.graph.infer_all();
  if (!fixed) prepared.declared = declared_shapes(prepared.graph, prepared.outputs);
  return prepared;
}

}  // namespace

BuildSession::BuildSession(Graph given, const BuildOptions& asked, const Backend& all, Device& target,
                           TimingCache& times, const Listeners& told)
    : options(asked),
      backend(all),
      device(target),
      cache(times),
      known_before(times.entries()),
      listeners(told),
      prepared(prepare(std::move(given), asked, target.info(), told)),
      graph(prepared.graph),
      edges(edge_layouts(graph, prepared.outputs, asked, told)),
      sizes(graph),
      gatings(graph) {
  for (ProfilePoints& points : prepared.profiles)
    for (const std::string& symbol : sizes.symbols()) points.opt.emplace(symbol, kUsualDataSize);
}

bool must_stop(const BuildOptions& options, double start_ms) {
  if (options.budget_seconds >= 0 && seconds_since(start_ms) >= options.budget_seconds) return true;
  return options.stop && options.stop();
}

}  // namespace hone
