// SPDX-License-Identifier: Apache-2.0
//
// `hone accuracy`: a network in few bits beside itself in FP32, layer by layer: where error enters, what the types can hold, and how
// few layers have to stay in FP32 for a budget of error.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "builder/prepare/quantize.h"
#include "describe/precision.h"
#include "quantize/read_scales.h"
#include "tools/accuracy/accuracy_plot.h"
#include "tools/accuracy/layer_errors.h"
#include "tools/accuracy/reduced_network.h"
#include "tools/commands/commands.h"
#include "tools/common/friendly.h"
#include "tools/common/model_shapes.h"
#include "tools/common/terminal.h"
#include "tools/model/calibration.h"
#include "tools/model/handles.h"
#include "tools/model/layer_flags.h"
#include "tools/model/read.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShown = 20;  // layers of the table; all of them with --json

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      "accuracy",
      "MODEL.onnx",
      "Runs the model in few bits and in FP32 side by side and ranks the layers by the error that enters in each. The "
      "types are "
      "those of trtexec's flags (--int8, --fp16, --bf16, --best, --layerPrecisions, --precisionFile); without any, "
      "all.",
      {{"--data", "<file>", "--calibData",
        "samples: an .npz archive with an array per input, or a folder of them; --int8 calibrates on them, too"},
       {"--reference", "<file>", "", "the model in floating point, where MODEL is a quantised one"},
       {"-s", "<shapes>", "--shapes", "input shapes, name:1x3x224x224[,...]; those of the data where they are given"},
       {"--cache", "<file>", "--timingCacheFile", "timing cache to read"},
       {"--budget", "<x>", "",
        "find the fewest layers that have to stay in FP32 for the outputs' relative error to be x at most"},
       {"--keep-list", "<file>", "", "write these layers, as trtexec's --precisionFile reads them"},
       {"--plot", "<file.svg>", "", "draw the error along the depth, and accuracy against speed, for a browser"}}};
  return kCommand;
}

std::optional<double> budget_of(const FriendlyLine& line) {
  if (!line.has("--budget")) return std::nullopt;
  const std::optional<double> budget = parse_real(line.value("--budget"));
  if (budget && *budget >= 0) return budget;
  throw Error(fmt::format("--budget takes a number that is not negative, not '{}'", line.value("--budget")),
              "0.01 keeps the outputs within a hundredth of those in FP32");
}

hone_model import_model(const std::string& path, const Logger& log) {
  ImportedModel imported = read_model(path, log);
  return {std::move(imported.graph), std::move(imported.live), std::move(imported.folded)};
}

/// What is compared, and in which types it is built.
struct Subject {
  hone_model model;
  std::optional<hone_model> other;  // --reference
  hone_device device;
  Samples samples;
  BuildOptions build;
  Graph quantized;  // as it is built

  const hone_model& exact() const { return other ? *other : model; }
  std::map<std::string, Counterpart, std::less<>> counterparts() const { return counterparts_in(quantized); }
};

Samples samples_of(const FriendlyLine& line, const Graph& graph) {
  const std::string& path = line.options.tool.calibration_data;
  return Samples(path.empty() ? nullptr : std::make_unique<DataSet>(path, graph));
}

/// Data say the shapes that they are run at.
std::vector<ProfileOptions> profiles_of(const FriendlyLine& line, const Graph& graph, const DataSet* data,
                                        const Logger& log) {
  if (data == nullptr)
    return model_profiles(tensors_of(graph), line.options.build.profiles, line.options.tool.shape_arguments, log);
  std::vector<ProfileOptions> profiles(1);
  for (const Value* input : graph.inputs())
    if (const Dims& dims = data->shapes().at(input->name); !input->type.shape.is_static())
      profiles[0][input->name] = {dims, dims, dims};
  return profiles;
}

void choose_types(BuildOptions& build, bool is_quantized) {
  if (build.fp16 || build.bf16 || build.int8 || build.best || is_quantized) return;
  build.fp16 = build.bf16 = build.int8 = true;
}

Subject subject_of(const FriendlyLine& line, const Logger& log) {
  if (line.options.tool.onnx.empty())
    throw Error(fmt::format("{} is no ONNX model", line.file), "a plan does not say what its layers are in FP32");
  hone_model model = import_model(line.options.tool.onnx, log);
  std::optional<hone_model> other;
  if (line.has("--reference")) other = import_model(line.value("--reference"), log);
  Samples samples = samples_of(line, model.graph);
  Subject subject{std::move(model),   std::move(other),   {open_device(line.options.tool.device)},
                  std::move(samples), line.options.build, {}};
  const Graph& graph = subject.model.graph;
  if (is_quantized(graph) && !subject.other)
    throw Error(fmt::format("{} is quantised itself, and says nothing of what it was in floating point", line.file),
                "give the model that it was made of with --reference");
  check_layer_flags(graph, line.options, log);
  choose_types(subject.build, is_quantized(graph));
  subject.build.profiles = profiles_of(line, graph, subject.samples.data(), log);
  subject.build.input_formats.clear();  // what programs exchange is not what is looked at
  subject.build.output_formats.clear();
  calibrate(subject.model, subject.device, line.options.tool, subject.build, log);
  subject.quantized = graph.clone();
  quantize_network(subject.quantized, subject.build, subject.device.device->info(), {});
  return subject;
}

/// The engine in few bits, and what was found of it.
struct Findings {
  std::string precision;
  std::vector<LayerError> layers;  // in the order of the steps
  std::map<const Step*, double> ms;
  std::vector<Trial> trials;  // the first with nothing kept, the last with the list that was asked for
  size_t most_waiting = 0;
  double exact_ms = 0;
  std::unique_ptr<RunningPlan> network;  // holds the steps
};

std::vector<const LayerError*> worst_first(const std::vector<LayerError>& layers) {
  std::vector<const LayerError*> ranked;
  for (const LayerError& layer : layers) ranked.push_back(&layer);
  const auto badness = [](const LayerError* layer) {
    return std::isnan(layer->alone) ? std::numeric_limits<double>::infinity() : layer->alone;
  };
  std::ranges::stable_sort(ranked, std::greater(), badness);
  return ranked;
}

void walk(const Subject& subject, ReducedNetwork& network, Findings& findings) {
  const auto counterparts = subject.counterparts();
  const Plan plan = network.plan({});
  findings.network = network.running(plan);
  const auto led = network.running(plan);
  const auto exact = network.running(network.exact_plan(exact_tensors(plan, subject.exact().graph, counterparts)));
  findings.precision = precision_text(findings.network->plan().profiles[0]);
  LayerErrors errors(*findings.network, *led, *exact, counterparts);
  Progress progress;
  for (size_t batch = 0; batch < subject.samples.count(); ++batch) {
    errors.add(subject.samples.at(batch));
    progress.advanced(batch + 1, subject.samples.count(), "batches compared");
  }
  findings.layers = errors.errors();
  findings.most_waiting = errors.most_waiting();
  const std::vector<LayerTime> times = findings.network->layer_times();
  const std::vector<Step>& steps = findings.network->plan().profiles[0].steps;
  for (size_t i = 0; i < steps.size(); ++i) findings.ms[&steps[i]] = times[i].ms;
}

/// A ladder of kept layers, for the plot.
void climb(ReducedNetwork& network, const std::vector<std::vector<std::string>>& groups, std::vector<Trial>& trials) {
  Progress progress;
  NodeNames kept;
  for (size_t count = 1; count < 2 * groups.size(); count *= 2) {
    for (size_t i = count / 2; i < std::min(count, groups.size()); ++i) kept.insert(groups[i].begin(), groups[i].end());
    trials.push_back(network.trial(kept));
    progress.advanced(trials.size(), trials.size() + 1, "engines tried");
  }
}

std::vector<std::vector<std::string>> groups_of(const std::vector<const LayerError*>& ranked) {
  std::vector<std::vector<std::string>> groups;
  for (const LayerError* layer : ranked)
    if (const auto& nodes = layer->step->origin;
        layer->alone != 0 && !nodes.empty() && std::ranges::find(groups, nodes) == groups.end())
      groups.push_back(nodes);
  return groups;
}

Findings examine(const FriendlyLine& line, const Subject& subject, std::optional<double> budget) {
  ReducedNetwork network(subject.model, subject.exact(), subject.device, subject.build, subject.samples);
  Findings findings;
  walk(subject, network, findings);
  findings.exact_ms = network.exact_ms();
  findings.trials.push_back(network.trial({}));
  const auto groups = groups_of(worst_first(findings.layers));
  if (line.has("--plot") && !is_quantized(subject.model.graph)) climb(network, groups, findings.trials);
  if (!budget) return findings;
  Progress progress;
  const std::vector<Trial> found = fewest_kept(network, groups, *budget, progress);
  findings.trials.insert(findings.trials.end(), found.begin(), found.end());
  return findings;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json layer_json(const LayerError& layer, const Findings& findings) {
  return {{"layer", layer.step->name},
          {"kind", layer.step->kind},
          {"nodes", layer.step->origin},
          {"tensor", layer.error.tensor},
          {"type", name_of(layer.type)},
          {"tactic", layer.step->source + ":" + layer.step->tactic},
          {"ms", findings.ms.at(layer.step)},
          {"enters", number(layer.alone)},
          {"relative_error", number(layer.error.relative)},
          {"cosine_similarity", number(layer.error.cosine)},
          {"max_error", number(layer.error.largest)},
          {"min", layer.low},
          {"max", layer.high},
          {"type_min", layer.limits.low},
          {"type_max", layer.limits.high},
          {"beyond", layer.beyond},
          {"below", layer.below}};
}

Json trial_json(const Trial& trial) { return {{"error", number(trial.error)}, {"ms", trial.ms}, {"kept", trial.kept}}; }

Json to_json(const FriendlyLine& line, const Findings& findings, std::optional<double> budget) {
  Json layers = Json::array(), trials = Json::array();
  for (const LayerError* layer : worst_first(findings.layers)) layers.push_back(layer_json(*layer, findings));
  for (const Trial& trial : findings.trials) trials.push_back(trial_json(trial));
  Json json{{"file", line.file},
            {"precision", findings.precision},
            {"error", number(findings.trials.front().error)},
            {"ms", findings.trials.front().ms},
            {"fp32_ms", findings.exact_ms},
            {"most_waiting", findings.most_waiting},
            {"layers", layers},
            {"trials", trials}};
  if (budget) json["kept"] = trial_json(findings.trials.back());
  return json;
}

/// The model's nodes; copies and conversions of the builder's own have none.
std::string label_of(const Step& step) {
  return step.origin.empty() ? step.name
                             : join(std::vector<std::string_view>(step.origin.begin(), step.origin.end()), " + ");
}

std::string percent(double share) { return share == 0 ? "" : fmt::format("{:.2g} %", 100 * share); }

void print_layers(const Findings& findings, const Page& page) {
  page.line(fmt::format("  {:>9} {:>9} {:>22} {:>8} {:>8}  {:<5} {}", "enters", "error", "values", "beyond", "below",
                        "type", "layer"));
  const std::vector<const LayerError*> ranked = worst_first(findings.layers);
  for (size_t i = 0; i < std::min(kShown, ranked.size()); ++i) {
    const LayerError& layer = *ranked[i];
    page.line(fmt::format("  {:>9.3g} {:>9.3g} {:>22} {:>8} {:>8}  {:<5} {}", layer.alone, layer.error.relative,
                          fmt::format("{:.4g} to {:.4g}", layer.low, layer.high), percent(layer.beyond),
                          percent(layer.below), name_of(layer.type), label_of(*layer.step)));
  }
  if (ranked.size() > kShown) page.line(fmt::format("  and {} more; --json lists all", ranked.size() - kShown));
}

std::string text_of(const Trial& trial) {
  return fmt::format("error {:.3g} of the outputs, relatively; {:.3f} ms", trial.error, trial.ms);
}

void print(const FriendlyLine& line, const Subject& subject, const Findings& findings, std::optional<double> budget) {
  const Page page;
  page.title(line.file);
  print_layers(findings, page);
  page.pair("data", subject.samples.data() == nullptr
                        ? "random values: give samples with --data to see what matters"
                        : fmt::format("{} batches of {}", subject.samples.count(), line.options.tool.calibration_data));
  page.pair("precision", findings.precision);
  page.pair("engine", text_of(findings.trials.front()));
  page.pair("FP32", fmt::format("{:.3f} ms", findings.exact_ms));
  if (!budget) return;
  const Trial& last = findings.trials.back();
  page.pair("kept", fmt::format("{} nodes in FP32: {}", last.kept.size(), text_of(last)));
  for (const std::string& node : last.kept) page.line("  " + node);
}

int accuracy(const FriendlyLine& line) {
  const Logger log = quiet_logger();
  for (const std::string& warning : line.warnings) log.warning("{}", warning);
  const std::optional<double> budget = budget_of(line);
  if (line.has("--keep-list") && !budget)
    throw Error("--keep-list without a budget", "say how much error is allowed: --budget=0.01");
  const Subject subject = subject_of(line, log);
  if (budget && is_quantized(subject.model.graph))
    throw Error(fmt::format("{} is quantised itself; its layers cannot be kept in FP32", line.file),
                "give the model in floating point, with --int8");
  const Findings findings = examine(line, subject, budget);
  if (line.has("--keep-list")) write_file(line.value("--keep-list"), keep_list_text(findings.trials.back().kept));
  if (line.has("--plot"))
    write_file(line.value("--plot"), accuracy_plot(line.file, findings.layers, findings.trials, findings.exact_ms));
  if (line.json)
    fmt::print("{}\n", to_json(line, findings, budget).dump(2, ' ', false, Json::error_handler_t::replace));
  else print(line, subject, findings, budget);
  const bool within = !budget || findings.trials.back().error <= *budget;
  if (!within)
    log.error("even with all layers in FP32 the error is {:.3g}; the budget of {} cannot be kept",
              findings.trials.back().error, *budget);
  return within ? 0 : 1;
}

}  // namespace

const FriendlyCommand& describe_accuracy() { return command(); }

int run_accuracy(Words words) { return run_friendly(command(), words, {}, accuracy); }

}  // namespace hone
