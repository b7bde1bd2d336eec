// SPDX-License-Identifier: Apache-2.0
//
// `hone quantize`: a model in f32 becomes a standard one with QuantizeLinear and DequantizeLinear, after one pass over samples.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "onnx/importer.h"
#include "quantize/quantize_file.h"
#include "quantize/quantize_graph.h"
#include "quantize/read_scales.h"
#include "tools/commands/commands.h"
#include "tools/commands/sensitivity.h"
#include "tools/common/calibration.h"
#include "tools/common/friendly.h"
#include "tools/common/keep_list.h"
#include "tools/common/terminal.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kLargestBlock = 1 << 20;

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      "quantize",
      "MODEL.onnx",
      "Writes the model with its convolutions and matmuls in 8-bit integers: QuantizeLinear and DequantizeLinear with "
      "scales from samples, weights with a scale for each channel. Other programs run it, too.",
      {{"-o", "<file>", "", "where the quantised model goes"},
       {"--data", "<file>", "--calibData", "samples: an .npz archive with an array per input, or a folder of them"},
       {"--calib-data", "<file>", "--calibData", "the same"},
       {"--method", "<name>", "--calibMethod", "what is clipped: entropy (default), minmax, percentile[=99.99] or mse"},
       {"--calib-method", "<name>", "--calibMethod", "the same"},
       {"--calib-cache", "<file>", "--calib", "scales from a calibration cache instead of samples"},
       {"--write-cache", "<file>", "", "write the scales as a calibration cache, too"},
       {"--mode", "<mode>", "", "int8 (default), or int4: weights of matmuls alone, by blocks; data are not needed"},
       {"--block", "<n>", "", "weights that share a scale in mode int4 (default 128)"},
       {"--awq", "<how>", "",
        "clip (default): with data, weights are clipped where that lessens their products' error; off"},
       {"--gptq", "", "",
        "with data: what rounding a weight costs is made good by those behind it; slow, most accurate"},
       {"--asymmetric", "", "", "unsigned codes with zero points: finer steps, but TensorRT does not read them"},
       {"--include-ops", "<types>", "", "quantise these operators alone: Conv,MatMul"},
       {"--exclude-ops", "<types>", "", "leave these operators in floating point"},
       {"--include-nodes", "<regex>", "", "quantise the nodes alone whose whole name fits"},
       {"--exclude-nodes", "<regex>", "", "leave the nodes in floating point whose whole name fits"},
       {"--sensitivity", "<of>", "",
        "node: rank the layers by what each costs when it is quantised alone (a build each)"},
       {"--budget", "<x>", "",
        "leave the worst layers in floating point until the outputs' relative error is x at most"},
       {"--keep-list", "<file>", "",
        "write the layers that the budget left out, as trtexec's --precisionFile reads them"},
       {"--verify", "", "", "with data: hold the written model against MODEL, layer by layer, worst first"},
       {"--compare", "<metric>", "", "of --verify: cosine_similarity (default), relative_error or max_error"},
       {"--threshold", "<x>", "", "of --verify: exit 1 where a layer is worse than this"}}};
  return kCommand;
}

std::optional<std::regex> pattern_of(const FriendlyLine& line, std::string_view flag) {
  if (!line.has(flag)) return std::nullopt;
  try {
    return std::regex(line.value(flag));
  } catch (const std::regex_error&) {
    throw Error(fmt::format("{} takes a regular expression, not '{}'", flag, line.value(flag)),
                "for example --exclude-nodes '/head/.*'");
  }
}

/// Throws Error for operators that nothing of the model is.
std::set<std::string, std::less<>> operators_of(const FriendlyLine& line, std::string_view flag, const Graph& graph) {
  std::set<std::string, std::less<>> types;
  for (const std::string_view type : split(line.value(flag), ','))
    if (!trim(type).empty()) types.emplace(trim(type));
  std::set<std::string_view> known;
  for (const Node* node : graph.nodes()) known.insert(node->op_name());
  const std::vector<std::string_view> names(known.begin(), known.end());
  for (const std::string& type : types)
    if (!known.contains(type))
      throw Error(fmt::format("{}: the model has no node of type {}", flag, type),
                  fmt::format("did you mean {}? It has {}", nearest(type, names), join(names, ", ")));
  return types;
}

/// Which nodes the flags leave in floating point.
std::function<bool(const Node&)> kept_nodes(const FriendlyLine& line, const Graph& graph) {
  const auto only = pattern_of(line, "--include-nodes"), never = pattern_of(line, "--exclude-nodes");
  const auto only_types = operators_of(line, "--include-ops", graph),
             never_types = operators_of(line, "--exclude-ops", graph);
  return [=](const Node& node) {
    const auto fits = [&](const std::regex& pattern) {
      return std::ranges::any_of(node.origin, [&](const std::string& name) { return std::regex_match(name, pattern); });
    };
    if ((never && fits(*never)) || never_types.contains(node.op_name())) return true;
    return (only && !fits(*only)) || (!only_types.empty() && !only_types.contains(node.op_name()));
  };
}

/// What the command line asks for.
struct Request {
  explicit Request(const FriendlyLine& line)
      : out(line.value("-o")),
        new_cache(line.value("--write-cache")),
        mode(line.has("--mode") ? line.value("--mode") : "int8"),
        clipping(read_clipping("--method", line.options.tool.calibration_method)),
        codes(line.has("--asymmetric") ? Codes::asymmetric : Codes::symmetric) {
    if (line.options.tool.onnx.empty() || out.empty())
      throw Error("hone quantize takes an ONNX model and where the quantised one goes",
                  "hone quantize MODEL.onnx -o QUANTISED.onnx --data=samples.npz");
    if (mode != "int8" && mode != "int4")
      throw Error(fmt::format("--mode takes int8 or int4, not '{}'", mode), "int8 is the default");
    if (line.has("--block")) block = parse_integer(line.value("--block")).value_or(0);
    if (block < 1 || block > kLargestBlock)
      throw Error(fmt::format("--block takes a number of weights, not '{}'", line.value("--block")),
                  "for example 32 or 128");
    const std::string awq = line.has("--awq") ? line.value("--awq") : "clip";
    if (awq != "clip" && awq != "off") throw Error(fmt::format("--awq takes clip or off, not '{}'", awq));
    clips = awq == "clip";
    feeds_back = line.has("--gptq");
    if (feeds_back && (mode != "int4" || line.options.tool.calibration_data.empty()))
      throw Error("--gptq is for --mode int4 with samples", "give --data=samples.npz");
    read_analysis(line);
    const bool uses_cache = !new_cache.empty() || !line.options.build.calibration_file.empty();
    if (codes == Codes::asymmetric && uses_cache)
      throw Error("calibration caches have symmetric scales", "leave --asymmetric or the cache out");
  }

  std::string out, new_cache, mode;
  Clipping clipping;
  Codes codes;
  int64_t block = 128;
  bool clips = true, feeds_back = false;
  bool ranks = false, verifies = false;
  std::optional<double> budget, threshold;
  std::string keep_list, metric = "cosine_similarity";

 private:
  void read_analysis(const FriendlyLine& line) {
    verifies = line.has("--verify");
    ranks = line.has("--sensitivity") || line.has("--budget");
    budget = number(line, "--budget");
    threshold = number(line, "--threshold");
    keep_list = line.value("--keep-list");
    if (line.has("--compare")) metric = line.value("--compare");
    if (line.has("--sensitivity") && line.value("--sensitivity") != "node")
      throw Error(fmt::format("--sensitivity takes node, not '{}'", line.value("--sensitivity")));
    if (metric != "cosine_similarity" && metric != "relative_error" && metric != "max_error")
      throw Error(fmt::format("--compare takes cosine_similarity, relative_error or max_error, not '{}'", metric));
    if ((ranks || verifies) && line.options.tool.calibration_data.empty())
      throw Error("--sensitivity, --budget and --verify run the network on samples", "give --data=samples.npz");
    if (ranks && !line.options.build.calibration_file.empty())
      throw Error("--sensitivity and --budget take their scales from the samples", "leave --calib-cache out");
    if (ranks && mode != "int8") throw Error("--sensitivity and --budget are for --mode int8");
    if (!keep_list.empty() && !budget) throw Error("--keep-list is what --budget leaves out", "give --budget=0.01");
  }
  static std::optional<double> number(const FriendlyLine& line, std::string_view flag) {
    if (!line.has(flag)) return std::nullopt;
    const std::optional<double> value = parse_real(line.value(flag));
    if (value && *value >= 0) return value;
    throw Error(fmt::format("{} takes a number of 0 or more, not '{}'", flag, line.value(flag)));
  }
};

/// The network, and what of it becomes integers with which scales.
struct QuantizedModel {
  hone_model model;
  Placement placement;
  TensorScales scales;
  Histograms seen;  // empty where a cache gave the scales
  Moments moments;
  std::string source;             // of the scales
  std::vector<NodeError> ranked;  // where layers were tried alone
  NodeNames kept;                 // of these, in floating point
  std::optional<double> error;    // of what is quantised, where layers were tried
};

void calibrate(const FriendlyLine& line, const Request& request, QuantizedModel& result, const Logger& log) {
  const std::string& path = line.options.tool.calibration_data;
  if (path.empty())
    throw Error("nothing says what values the tensors have",
                "give samples with --data=samples.npz, or scales with --calib-cache=FILE");
  DataSet data(path, result.model.graph);
  const hone_device device{open_device("cpu")};
  if (request.mode == "int4") {
    result.moments = moments_over(result.model, device, result.placement, request.feeds_back, data);
    result.source = fmt::format("blocks of {}, fitted to {} samples of {}", request.block, data.samples(), path);
    return;
  }
  result.seen = histograms_over(result.model, device, result.placement, data);
  if (data.left_over() > 0) log.warning("{} samples of {} fill no batch and were left out", data.left_over(), path);
  result.scales = scales_of(result.placement, result.seen, request.clipping, request.codes);
  result.source =
      fmt::format("{} samples of {}, {}", data.samples() - data.left_over(), path, text_of(request.clipping));
}

PlacementRules without(const PlacementRules& rules, const NodeNames& kept, const Histograms& seen) {
  return {[&rules, &kept](const Node& node) {
            return rules.keeps_floats(node) || (!node.origin.empty() && kept.contains(node.origin.front()));
          },
          [&seen](const Value& value) { return seen.contains(value.name); }};
}

std::vector<std::string> quantised_nodes(const Placement& placement) {
  std::vector<std::string> names;
  for (const PlacedWeights& weights : placement.weights)
    for (const Use& use : weights.uses)
      if (!use.node->origin.empty() && std::ranges::find(names, use.node->origin.front()) == names.end())
        names.push_back(use.node->origin.front());
  return names;
}

std::set<std::string> float_outputs(const Graph& graph) {
  std::set<std::string> names;
  for (const Value* output : graph.outputs())
    if (output->type.dtype == DType::f32) names.insert(output->name);
  return names;
}

/// Tries the layers one by one, and takes those out of the placement that the budget does not allow.
void analyse(const FriendlyLine& line, const Request& request, const PlacementRules& rules, QuantizedModel& result) {
  const Graph& graph = result.model.graph;
  const auto scales_for = [&](const Placement& placement) {
    return scales_of(placement, result.seen, request.clipping, request.codes);
  };
  const Quantise quantise = [&](const NodeNames& kept) {
    hone_model model{graph.clone(), {}, {}};
    const Placement placement = place_quantization(model.graph, without(rules, kept, result.seen));
    quantize_graph(model.graph, placement, scales_for(placement), request.codes);
    return model;
  };
  DataSet data(line.options.tool.calibration_data, graph);
  const hone_device device{open_device("cpu")};
  ExactNetwork exact(result.model, device, float_outputs(graph), data);
  const Sensitivity sensitivity(exact, quantise, quantised_nodes(result.placement));
  result.ranked = sensitivity.ranked();
  if (request.budget) result.kept = sensitivity.kept_for(*request.budget);
  result.error = sensitivity.error_without(result.kept);
  result.placement = place_quantization(graph, without(rules, result.kept, result.seen));
  result.scales = scales_for(result.placement);
}

QuantizedModel prepare(const FriendlyLine& line, const Request& request, const Logger& log) {
  QuantizedModel result{{import_onnx(line.options.tool.onnx, log).graph, {}, {}}, {}, {}, {}, {}, {}};
  const Graph& graph = result.model.graph;
  if (is_quantized(graph))
    throw Error(fmt::format("{} is quantised already", line.file),
                "give the model in floating point that it was made of");
  const std::string& cache = line.options.build.calibration_file;
  const TensorScales known = cache.empty() ? TensorScales() : read_scales(cache, graph, log);
  const PlacementRules rules{kept_nodes(line, graph),
                             [&](const Value& value) { return cache.empty() || known.contains(value.name); }};
  const bool only_weights = request.mode == "int4";
  result.placement = only_weights ? place_weights(graph, rules) : place_quantization(graph, rules);
  const std::vector<UnquantizedNode>& left = result.placement.left;
  if (result.placement.nodes == 0)
    throw Error(fmt::format("{} has no convolution or matmul that can be quantised", line.file),
                left.empty() ? "it has none at all" : fmt::format("{}: {}", left[0].node->name, left[0].reason));
  const bool has_use_for_data = request.clips || request.feeds_back;
  if (only_weights && (!has_use_for_data || line.options.tool.calibration_data.empty())) {
    result.source = fmt::format("blocks of {}", request.block);
  } else if (cache.empty()) {
    calibrate(line, request, result, log);
  } else {
    result.scales = united_scales(result.placement, known);
    result.source = cache;
  }
  if (request.ranks) analyse(line, request, rules, result);
  return result;
}

/// Writes the model, and the cache where it is wanted.
FileQuantization write(const FriendlyLine& line, const Request& request, const QuantizedModel& given,
                       const Logger& log) {
  onnx::ModelFile file(Blob::copy(read_file(line.options.tool.onnx)));
  const Graph& graph = given.model.graph;
  FileQuantization done =
      request.mode == "int4"
          ? quantize_weights_in_file(file, graph, given.placement,
                                     {request.block, request.codes, request.clips, request.feeds_back}, given.moments)
          : quantize_file(file, graph, given.placement, given.scales, request.codes);
  for (const std::string& tensor : done.not_in_file)
    log.warning("{} is inside of a function of the model and stays in floating point", tensor);
  write_file(request.out, file.encode());
  if (!request.keep_list.empty()) write_file(request.keep_list, keep_list_text(given.kept));
  if (!request.new_cache.empty())
    write_file(request.new_cache, format_calibration_cache(cache_of(given.scales, request.clipping)));
  return done;
}

/// The largest magnitude that the codes stand for.
double largest(const TensorScale& scale, Codes codes) {
  return static_cast<double>(scale.scale) * (codes == Codes::symmetric ? 127 : std::max(scale.zero, 255 - scale.zero));
}

Json tensors_json(const QuantizedModel& given, Codes codes) {
  Json tensors = Json::array();
  for (const PlacedTensor& tensor : given.placement.tensors) {
    const std::string& name = tensor.value->name;
    const TensorScale& scale = given.scales.at(name);
    Json row{{"tensor", name}, {"scale", scale.scale}, {"zero_point", scale.zero}};
    if (const auto found = given.seen.find(name); found != given.seen.end()) {
      const Histogram& histogram = found->second;
      row["min"] = histogram.min();
      row["max"] = histogram.max();
      row["clipped_to"] = largest(scale, codes);
      row["clipped"] = share_beyond(histogram, largest(scale, codes));
    }
    tensors.push_back(std::move(row));
  }
  return tensors;
}

void print_tensors(const Json& tensors, const Page& page) {
  page.line(fmt::format("  {:>12} {:>12} {:>12} {:>9}  {}", "min", "max", "scale", "clipped", "tensor"));
  for (const Json& row : tensors) {
    const bool seen = row.contains("min");
    page.line(fmt::format(
        "  {:>12} {:>12} {:>12.6g} {:>9}  {}", seen ? fmt::format("{:.5g}", row["min"].get<double>()) : "",
        seen ? fmt::format("{:.5g}", row["max"].get<double>()) : "", row["scale"].get<double>(),
        seen ? fmt::format("{:.3f} %", 100 * row["clipped"].get<double>()) : "", row["tensor"].get<std::string>()));
  }
}

/// The larger, the worse.
double badness(const TensorError& error, std::string_view metric) {
  const double value = metric == "relative_error" ? error.relative
                       : metric == "max_error"    ? error.largest
                                                  : 1 - error.cosine;
  return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
}

/// What quantised layers make in the written model, against the original; the worst first.
std::vector<TensorError> verified(const FriendlyLine& line, const Request& request, const QuantizedModel& given,
                                  const Logger& log) {
  const hone_model written{import_onnx(request.out, log).graph, {}, {}};
  std::set<std::string> there, tensors;
  for (const Node* node : written.graph.nodes())
    for (const Value* output : node->outputs) there.insert(output->name);
  for (const PlacedWeights& weights : given.placement.weights)
    for (const Use& use : weights.uses)
      if (const Value* output = use.node->output(); there.contains(output->name) && output->type.dtype == DType::f32)
        tensors.insert(output->name);
  DataSet data(line.options.tool.calibration_data, given.model.graph);
  const hone_device device{open_device("cpu")};
  std::vector<TensorError> errors = ExactNetwork(given.model, device, tensors, data).errors_of(written, data.batches());
  std::ranges::stable_sort(errors, std::greater(),
                           [&](const TensorError& error) { return badness(error, request.metric); });
  return errors;
}

/// Whether a layer is worse than the threshold allows.
bool fails(const std::vector<TensorError>& errors, const Request& request) {
  if (!request.threshold || errors.empty()) return false;
  const double allowed = request.metric == "cosine_similarity" ? 1 - *request.threshold : *request.threshold;
  return badness(errors.front(), request.metric) > allowed;
}

Json errors_json(const std::vector<TensorError>& errors) {
  Json rows = Json::array();
  for (const TensorError& error : errors)
    rows.push_back({{"tensor", error.tensor},
                    {"cosine_similarity", error.cosine},
                    {"relative_error", error.relative},
                    {"max_error", error.largest}});
  return rows;
}

Json sensitivity_json(const QuantizedModel& given) {
  Json rows = Json::array();
  for (const NodeError& node : given.ranked)
    rows.push_back({{"node", node.node}, {"error", node.error}, {"kept", given.kept.contains(node.node)}});
  return rows;
}

Json to_json(const QuantizedModel& given, const FileQuantization& done, const Request& request, double seconds) {
  Json left = Json::array();
  for (const UnquantizedNode& node : given.placement.left)
    left.push_back({{"node", node.node->name}, {"reason", node.reason}});
  Json json{{"file", request.out},
            {"ranges", given.source},
            {"nodes", given.placement.nodes},
            {"pairs", done.pairs},
            {"weights", done.weights},
            {"seconds", seconds},
            {"tensors", tensors_json(given, request.codes)},
            {"left", left}};
  if (!given.ranked.empty()) json["sensitivity"] = sensitivity_json(given);
  if (given.error) json["error"] = *given.error;
  return json;
}

void print_sensitivity(const Json& summary, const Page& page) {
  page.line(fmt::format("  {:>12} {:>9}  {}", "error alone", "", "layer"));
  for (const Json& row : summary["sensitivity"])
    page.line(fmt::format("  {:>12.4g} {:>9}  {}", row["error"].get<double>(), row["kept"].get<bool>() ? "kept" : "",
                          row["node"].get<std::string>()));
  page.pair("error", fmt::format("{:.4g} of the outputs, relatively", summary["error"].get<double>()));
}

void print_errors(const Json& rows, const Page& page) {
  page.line(fmt::format("  {:>12} {:>12} {:>12}  {}", "cosine", "relative", "largest", "tensor"));
  for (const Json& row : rows)
    page.line(fmt::format("  {:>12.6f} {:>12.4g} {:>12.4g}  {}", row["cosine_similarity"].get<double>(),
                          row["relative_error"].get<double>(), row["max_error"].get<double>(),
                          row["tensor"].get<std::string>()));
}

void print(const Json& summary, const std::string& model) {
  const Page page;
  const auto out = summary["file"].get<std::string>();
  const auto nodes = summary["nodes"].get<size_t>();
  page.title(fmt::format("{} -> {}", model, out));
  if (!summary["tensors"].empty()) print_tensors(summary["tensors"], page);
  page.pair("quantised", fmt::format("{} of {} convolutions and matmuls, {} tensors", nodes,
                                     nodes + summary["left"].size(), summary["pairs"].get<size_t>()));
  for (const Json& left : summary["left"])
    page.line(fmt::format("  {} stays in floating point: {}", left["node"].get<std::string>(),
                          left["reason"].get<std::string>()));
  if (summary.contains("sensitivity")) print_sensitivity(summary, page);
  if (summary.contains("verified")) print_errors(summary["verified"], page);
  page.pair("ranges", summary["ranges"].get<std::string>());
  page.pair("took", fmt::format("{:.1f} s", summary["seconds"].get<double>()));
  page.pair("next", fmt::format("hone bench {}", out));
}

int quantize(const FriendlyLine& line) {
  const Logger log = quiet_logger();
  for (const std::string& warning : line.warnings) log.warning("{}", warning);
  const double start = now_ms();
  const Request request(line);
  const QuantizedModel prepared = prepare(line, request, log);
  const FileQuantization done = write(line, request, prepared, log);
  Json summary = to_json(prepared, done, request, seconds_since(start));
  bool good = true;
  if (request.verifies) {
    const std::vector<TensorError> errors = verified(line, request, prepared, log);
    summary["verified"] = errors_json(errors);
    good = !fails(errors, request);
  }
  if (line.json) fmt::print("{}\n", summary.dump(2, ' ', false, Json::error_handler_t::replace));
  else print(summary, line.file);
  if (!good)
    log.error(
        "{}: the tensor {} is worse than the threshold of {} allows; keep its layer in floating point with "
        "--exclude-nodes, or let --budget choose",
        request.out, summary["verified"][0]["tensor"].get<std::string>(), *request.threshold);
  return good ? 0 : 1;
}

}  // namespace

const FriendlyCommand& describe_quantize() { return command(); }

int run_quantize(Words words) { return run_friendly(command(), words, {}, quantize); }

}  // namespace hone
