// SPDX-License-Identifier: Apache-2.0
//
// The builder's table of contents.
#include "builder/build.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/env.h"
#include "base/text.h"
#include "base/version.h"
#include "builder/debug_tensors.h"
#include "builder/layer_types.h"
#include "builder/lower.h"
#include "builder/portable.h"
#include "builder/profile.h"
#include "builder/refit.h"
#include "builder/tune.h"
#include "ir/range.h"
#include "ops/ops.h"
#include "passes/pipeline.h"

namespace hone {
namespace {

/// What kernels are tuned for where only the data decide a size.
constexpr int64_t kUsualDataSize = 64;

bool all_ranked(const Graph& graph) {
  for (const Node* node : graph.nodes())
    for (const Value* output : node->outputs)
      if (!output->type.ranked) return false;
  return true;
}

/// Every layer and tensor gets a name; those of layers are unique.
void name_layers(Graph& graph) {
  std::set<std::string> taken;
  for (Node* node : graph.nodes()) {
    if (node->name.empty()) node->name = fmt::format("({})", node->op_name());
    std::string name = node->name;
    for (int i = 1; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", node->name, i);
    node->name = std::move(name);
    for (Value* output : node->outputs)
      if (output->name.empty()) output->name = fmt::format("{}_output_{}", node->name, output->index);
  }
}

/// What floats are brought to: what is allowed, where the device gains by it.
DType precision_of(const BuildOptions& options, const DeviceInfo& device) {
  if (!device.small_floats) return options.bf16 && device.bf16_products ? DType::bf16 : DType::f32;
  return options.fp16 ? DType::f16 : options.bf16 ? DType::bf16 : DType::f32;
}

std::string precision_text(const BuildOptions& options) {
  std::string text = "FP32";
  if (options.fp16) text += "+FP16";
  if (options.bf16) text += "+BF16";
  if (options.int8) text += "+INT8";
  return text;
}

using InputRanges = std::map<std::string, std::optional<ValueRange>>;

/// Taken before passes rewrite the consumers.
InputRanges input_ranges(const Graph& graph) {
  InputRanges ranges;
  for (const Value* input : graph.inputs())
    if (const auto range = accepted_range(input)) ranges[input->name] = ValueRange{range->low, range->high};
  return ranges;
}

/// Shapes as the model declares them, for the plan's interface.
struct DeclaredShapes {
  std::vector<Shape> inputs, outputs;
};
DeclaredShapes declared_shapes(const Graph& graph, size_t outputs) {
  DeclaredShapes shapes;
  for (const Value* value : graph.inputs()) shapes.inputs.push_back(value->type.shape);
  for (size_t i = 0; i < outputs; ++i) shapes.outputs.push_back(graph.outputs()[i]->type.shape);
  return shapes;
}

std::vector<IoTensor> io_of(const Graph& graph, const DeclaredShapes& declared, const EdgeLayouts& edges,
                            const InputRanges& ranges) {
  const auto typed = [](const Value* value, const Shape& shape, Layout layout) {
    TensorType type = value->type;
    type.shape = shape;
    type.layout = layout;
    return type;
  };
  std::vector<IoTensor> io;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Value* value = graph.inputs()[i];
    const auto range = ranges.find(value->name);
    io.push_back({value->name, typed(value, declared.inputs[i], edges.of_input(value)), true,
                  range == ranges.end() ? std::nullopt : range->second});
  }
  for (size_t i = 0; i < declared.outputs.size(); ++i) {
    const Value* value = graph.outputs()[i];
    io.push_back({value->name, typed(value, declared.outputs[i], edges.of_output(value)), false});
  }
  return io;
}

/// Whether dynamic inputs will only ever have one set of shapes: then all sizes are numbers, and what follows from them is folded.
bool is_fixed(const std::vector<ProfilePoints>& points, const BuildOptions& options) {
  return points.size() == 1 && !points[0].ranges.empty() && points[0].min == points[0].max && !options.portable;
}

/// Whether every size is known before the engine runs.
bool sizes_follow_from_inputs(const Graph& graph) { return graph.size_deciders().empty() && all_ranked(graph); }

/// Shape arithmetic that layers hold as expressions has no layer of its own.
void note_shape_nodes(const Graph& graph, Plan& plan) {
  std::set<std::string> told;
  for (const Profile& profile : plan.profiles)
    for (const Step& step : profile.steps) told.insert(step.origin.begin(), step.origin.end());
  for (const Node* node : graph.nodes())
    if (node->is(ops::symbolic_constant))
      for (const std::string& name : node->origin)
        if (told.insert(name).second) plan.folded.push_back({name, "form_regions"});
}

std::vector<LayerRecord> records_of(const Choice& choice) {
  std::vector<LayerRecord> records;
  for (const Layer& layer : choice.layers) {
    LayerRecord record{
        .layer = layer.region.name(),
        .candidates = {},
        .chosen = layer.chosen < 0 ? "view" : layer.candidates[static_cast<size_t>(layer.chosen)].tactic.text()};
    for (const Candidate& c : layer.candidates)
      record.candidates.push_back({c.tactic.text(), c.timing.ms, c.timing.spread, c.timing.note});
    for (const Candidates::Refusal& r : layer.refusals)
      record.candidates.push_back({r.tactic, -1, 0, "refused: " + r.reason});
    records.push_back(std::move(record));
  }
  return records;
}

void log_memory(const Profile& profile, const Graph& graph, size_t outputs, const Logger& log) {
  const auto arena = std::count_if(profile.buffers.begin(), profile.buffers.end(),
                                   [](const BufferSlot& b) { return b.kind == BufferKind::arena && b.alias < 0; });
  log.verbose("Total number of blocks in pre-optimized block assignment: {}", arena);
  log.info("Detected {} inputs and {} output network tensors.", graph.inputs().size(), outputs);
  log.info("Total Activation Memory: {}", profile.arena_bytes);
}

/// What no source of the device takes runs on the host, between copies.
void log_host_layers(const Profile& profile, const Logger& log) {
  int64_t layers = 0, to_host = 0, from_host = 0;
  for (const Step& step : profile.steps) {
    if (!step.details.has("BytesToHost")) continue;
    ++layers;
    to_host += step.details.integer("BytesToHost");
    from_host += step.details.integer("BytesFromHost");
  }
  if (layers != 0)
    log.info("{} of {} layers run on the host; an inference copies {} bytes there and {} bytes back.", layers,
             profile.steps.size(), to_host, from_host);
}

void log_layers(const Profile& profile, const Logger& log) {
  log.verbose("Engine Layer Information:");
  const auto tensors = [&](const std::vector<BufferId>& ids) {
    std::vector<std::string> texts;
    for (const BufferId id : ids) {
      const BufferSlot& slot = profile.buffers[static_cast<size_t>(id)];
      std::vector<std::string> dims;
      for (const Dim& dim : slot.type.shape) dims.push_back(dim.is_constant() ? dim.text() : "-1");
      texts.push_back(fmt::format("{} ({}[{}])", slot.name,
                                  slot.type.dtype == DType::f32 ? "Float" : name_of(slot.type.dtype), join(dims, ",")));
    }
    return join(texts, ", ");
  };
  for (const Step& step : profile.steps)
    log.verbose("Layer({}.{}): {}, {} -> {}", step.source, step.tactic, step.name, tensors(step.inputs),
                tensors(step.outputs));
}

/// The graph that regions are formed of, and what was noted before passes changed it.
struct Prepared {
  Graph graph;
  size_t outputs;  // those of the model; debug tensors follow
  InputRanges ranges;
  std::optional<DeclaredShapes> declared;
  std::vector<ProfilePoints> points;
  std::vector<Folded> folded;
};

Prepared prepare(Graph graph, const BuildOptions& options, const DeviceInfo& device, const Logger& log) {
  InputRanges ranges = input_ranges(graph);
  const size_t outputs = graph.outputs().size();
  cast_io(graph, options);
  append_debug_outputs(graph, options.debug_tensors);
  std::optional<DeclaredShapes> declared;
  std::vector<ProfilePoints> points;
  for (const ProfileOptions& profile : options.profiles.empty() ? std::vector<ProfileOptions>(1) : options.profiles)
    points.push_back(profile_points(graph, profile, log));
  if (is_fixed(points, options) && sizes_follow_from_inputs(graph)) {
    Graph fixed = graph.specialize(points[0].opt);
    if (sizes_follow_from_inputs(fixed)) {
      declared = declared_shapes(graph, outputs);
      graph = std::move(fixed);
    }
  }

  std::vector<Folded> folded;
  // Graph to graph: simplify, fold, fuse. See passes/pipeline.cpp for the order and its reasons.
  // They rely on ranks, so a graph that leaves some to the run stays as it is.
  if (all_ranked(graph))
    run(graph, pipeline(),
        {.log = log,
         .disabled = options.disabled_passes,
         .dump_directory = env_text("HONE_DUMP").value_or(""),
         .widen_half = !device.small_floats,
         .folded = &folded,
         .precision = precision_of(options, device),
         .only_convolutions = !device.small_floats,
         .keeps_f32 = [&](const Node& node) { return kept_in_f32(options, node); }});
  name_layers(graph);
  // Where nodes were merged, sizes still bear the names of those that are gone.
  if (!graph.size_deciders().empty()) graph.infer_all();
  return {std::move(graph), outputs, std::move(ranges), std::move(declared), std::move(points), std::move(folded)};
}

}  // namespace

Plan build(Graph given, const BuildOptions& options, const Backend& backend, Device& device, TimingCache& cache,
           const Logger& log) {
  const double start = now_ms();
  const size_t known_before = cache.entries();
  std::optional<RefitPart> refit;
  if (options.refit || options.strip_weights) refit = refit_part(given, options);
  auto [graph, outputs, ranges, declared, points, folded] = prepare(std::move(given), options, device.info(), log);
  const EdgeLayouts edges = edge_layouts(graph, outputs, options, log);
  const DataSizes sizes(graph);

  // From here on no operator is created or removed; nodes are only grouped, once per shape profile.
  Plan plan;
  plan.meta = {.hone_version = kVersion,
               .backend = std::string(backend.name),
               .device = device.info().name,
               .architecture = device.info().architecture,
               .model = graph.name,
               .options = fmt::format("level={} precision={}", options.optimization_level, precision_text(options)),
               .profiling_verbosity = options.profiling_verbosity,
               .precision = precision_text(options)};
  plan.io = io_of(graph, declared.value_or(declared_shapes(graph, outputs)), edges, ranges);
  for (const std::string& node : options.folded_by_import) plan.folded.push_back({node, "import"});
  for (Folded& node : folded) plan.folded.push_back({std::move(node.node), std::string(node.pass)});
  if (options.portable) plan.portable = portable_part(graph);
  if (options.strip_weights) plan.weights = WeightStorage::not_in_file;
  PlanAssets assets(plan, graph);
  TimingCache used;
  log.info("{}", options.timing_cache_file.empty()
                     ? "Local timing cache in use. Profiling results in this builder pass will not be stored."
                     : "Global timing cache in use. Profiling results in this builder pass will be stored.");
  for (size_t i = 0; i < points.size(); ++i) {
    log.verbose("Constructing optimization profile number {} [{}/{}].", i, i + 1, points.size());
    for (const std::string& symbol : sizes.symbols()) points[i].opt.emplace(symbol, kUsualDataSize);
    const TuneContext context{.graph = graph,
                              .outputs = outputs,
                              .edges = edges,
                              .sizes = sizes,
                              .points = points[i],
                              .options = options,
                              .backend = backend,
                              .device = device,
                              .cache = cache,
                              .used = used,
                              .log = log,
                              .start_ms = start};

    // Ask every source; measure what the cache does not know.
    std::vector<Layer> layers = make_layers(context);

    // Choose tactics and layouts together, then write down steps and buffers.
    const Choice choice = choose(std::move(layers), context);
    const double chosen = now_ms();
    plan.profiles.push_back(lower(choice, context, assets));
    log.verbose("Kernels compiled and weights laid out in {:g} seconds.", seconds_since(chosen));
    log.verbose("After reformat layers: {} layers", plan.profiles.back().steps.size());
    log_memory(plan.profiles.back(), graph, outputs, log);
    log_host_layers(plan.profiles.back(), log);
    const std::vector<LayerRecord> records = records_of(choice);
    plan.log.insert(plan.log.end(), records.begin(), records.end());
  }
  if (refit) {
    refit->timings = used.text();
    plan.refit = std::move(refit);
  }
  note_shape_nodes(graph, plan);
  log.info("Engine generation completed in {:g} seconds.", seconds_since(start));
  log.verbose("Timing cache: {} entries, {} of them new, served {} hits since creation.", cache.entries(),
              cache.entries() - known_before, cache.hits());
  log_layers(plan.profiles.back(), log);
  verify(plan);
  return plan;
}

std::vector<LayerOffers> survey(Graph given, const BuildOptions& asked, const Backend& backend, Device& device,
                                const Logger& log) {
  BuildOptions options = asked;
  options.optimization_level = 0;  // nothing is timed
  Prepared prepared = prepare(std::move(given), options, device.info(), log);
  const Graph& graph = prepared.graph;
  const EdgeLayouts edges = edge_layouts(graph, prepared.outputs, options, log);
  const DataSizes sizes(graph);
  ProfilePoints& points = prepared.points.front();
  for (const std::string& symbol : sizes.symbols()) points.opt.emplace(symbol, kUsualDataSize);
  TimingCache cache, used;
  std::vector<LayerOffers> result;
  for (const Layer& layer : make_layers({.graph = graph,
                            .outputs = prepared.outputs,
                            .edges = edges,
                            .sizes = sizes,
                            .points = points,
                            .options = options,
                            .backend = backend,
                            .device = device,
                            .cache = cache,
                            .used = used,
                            .log = log,
                            .start_ms = now_ms()})) {
    LayerOffers offers{.name = layer.region.name(),
                       .origin = layer.region.origin(),
                       .is_view = layer.region.is_view,
                       .host_only = !layer.region.is_view && sizes.host_only(layer.region),
                       .sources = {},
                       .refusals = layer.refusals};
    for (const Candidate& candidate : layer.candidates)
      if (std::find(offers.sources.begin(), offers.sources.end(), candidate.tactic.source) == offers.sources.end())
        offers.sources.push_back(candidate.tactic.source);
    result.push_back(std::move(offers));
  }
  return result;
}

}  // namespace hone
