// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/run_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "options/flag.h"
#include "tools/common/api.h"
#include "tools/companion/polygraphy_flags.h"

namespace hone {
namespace {

/// Of TensorRT's builder, without a counterpart here.
constexpr std::array<CompanionFlag, 22> kWithoutEffect{
    {{"--workspace", Takes::one, "<size>"},
     {"--pool-limit", Takes::some, "<name:size...>", "", "--memory-pool-limit"},
     {"--tactic-sources", Takes::any, "<name...>"},
     {"--preview-features", Takes::any, "<name...>"},
     {"--hardware-compatibility-level", Takes::one, "<level>"},
     {"--max-aux-streams", Takes::one, "<count>"},
     {"--quantization-flags", Takes::any, "<name...>"},
     {"--weight-streaming-budget", Takes::one, "<size>"},
     {"--runtime-platform", Takes::one, "<name>"},
     {"--tiling-optimization-level", Takes::one, "<level>"},
     {"--onnx-flags", Takes::some, "<name...>"},
     {"--load-runtime", Takes::one, "<file>"},
     {"--dla-workspace-allocation-strategy", Takes::one, "<how>"},
     {"--use-dla"},
     {"--allow-gpu-fallback"},
     {"--exclude-lean-runtime"},
     {"--disable-compilation-cache"},
     {"--weight-streaming"},
     {"--direct-io"},
     {"--trt-safety-restricted"},
     {"--strongly-typed"},
     {"--plugin-instancenorm"}}};

std::vector<CompanionFlag> joined(std::initializer_list<std::vector<CompanionFlag>> lists) {
  std::vector<CompanionFlag> all;
  for (const std::vector<CompanionFlag>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::vector<CompanionFlag> runner_flags() {
  return {
      {"--cpu", Takes::nothing, "", "run Hone's engine on the processor"},
      {"--cuda", Takes::nothing, "", "run Hone's engine on the GPU"},
      {"--trt", Takes::nothing, "", "run Hone's engine on the best device there is"},
      {"--onnxrt", Takes::nothing, "", "run ONNX Runtime, opened where it is installed"},
      {"--tf", Takes::nothing, "", "refused: TensorFlow is no runner here"},
      {"--pluginref", Takes::nothing, "", "refused: --ref is the second opinion here"},
      {"--ref", Takes::nothing, "", "run Hone's operators by their plain meaning: the golden values"},
      {"--plan", Takes::one, "<plan>", "run this plan, too"},
      {"--device", Takes::one, "<name>", "where --plan runs: cpu, cpu/4, cuda:0"},
      {"--onnxrt-lib", Takes::one, "<file>", "ONNX Runtime's library"},
      {"--providers", Takes::some, "<name...>", "ONNX Runtime's; it is run on the processor", "--execution-providers"},
      {"--graph-optimization-level", Takes::one, "<level>",
       "ONNX Runtime's: ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED, ORT_ENABLE_ALL"},
      {"--warm-up", Takes::one, "<count>", "inferences before those that count"},
      {"--time", Takes::nothing, "", "tell how long inferences took"},
      {"--sequential-runners", Takes::nothing, "", "accepted: runners are held together, iterations go one by one"},
      {"--use-subprocess", Takes::nothing, "", "accepted, without effect"},
      {"--stamp", Takes::nothing, "", "put the time into runners' names, as Polygraphy does"}};
}

std::vector<CompanionFlag> judging_flags() {
  return {
      {"--compare", Takes::some, "<metric...>",
       "simple, indices, l2, cosine_similarity, psnr, snr, distance_metrics, quality_metrics", "--compare-func"},
      {"--atol", Takes::some, "<[name:]number...>", "absolute tolerance", "--absolute-tolerance --abs-tol"},
      {"--rtol", Takes::some, "<[name:]number...>", "relative tolerance", "--relative-tolerance --rel-tol"},
      {"--check-error-stat", Takes::some, "<[name:]stat...>", "elemwise, max, mean, median, quantile"},
      {"--error-quantile", Takes::some, "<[name:]part...>", "of --check-error-stat quantile"},
      {"--index-tolerance", Takes::some, "<[name:]count...>", "of --compare indices"},
      {"--l2-threshold", Takes::some, "<[name:]number...>", "of --compare l2", "--l2-tolerance"},
      {"--cosine-similarity-threshold", Takes::some, "<[name:]number...>", "of --compare cosine_similarity"},
      {"--psnr-threshold", Takes::some, "<[name:]dB...>", "of --compare psnr", "--psnr-tolerance"},
      {"--snr-threshold", Takes::some, "<[name:]dB...>", "of --compare snr", "--snr-tolerance"},
      {"--lpips-threshold", Takes::some, "<[name:]number...>", "of --compare perceptual_metrics, which there is not",
       "--lpips-tolerance"},
      {"--infinities-compare-equal", Takes::nothing, "", "infinities of one sign are equal"},
      {"--no-shape-check", Takes::nothing, "", "compare tensors of other shapes with as many elements",
       "--no-strict-shape-checking"},
      {"--fail-fast", Takes::nothing, "", "stop at the first output that fails"},
      {"--check-average", Takes::nothing, "", "judge the mean over iterations"},
      {"--validate", Takes::nothing, "", "outputs hold no infinities and NaNs"},
      {"--pairs", Takes::one, "<which>", "which runs are compared: first (default), neighbour, all"},
      {"--allow-unmatched", Takes::nothing, "", "outputs that one run lacks do not fail"},
      {"--allow-prefix", Takes::nothing, "", "runs of other lengths are compared as far as they go"},
      {"--postprocess", Takes::some, "<[name:]top-K[,axis=A]...>", "compare places of the largest values",
       "--postprocess-func"},
      {"--postprocess-func-script", Takes::one, "<file[:function]>", "refused: a script in Python"},
      {"--compare-func-script", Takes::one, "<file[:function]>", "refused: a script in Python"},
      {"--show-heatmaps", Takes::nothing, "", "accepted: --save-heatmaps writes pictures that a browser shows"},
      {"--save-error-metrics-plot", Takes::one, "<folder>", "SVG pictures of errors over the size of what is expected"},
      {"--show-error-metrics-plot", Takes::nothing, "", "accepted: --save-error-metrics-plot writes pictures"},
      {"--save-heatmaps", Takes::one, "<folder>", "SVG pictures of the errors"},
      {"--save-accuracy-results", Takes::one, "<file>", "what hone check accuracy judges anew"},
      {"--load-outputs", Takes::some, "<file...>", "compare with kept results", "--load-results"},
      {"--save-outputs", Takes::one, "<file>", "JSON, .npz, .safetensors, or a folder with a file an iteration",
       "--save-results"},
      {"--gen-script", Takes::one, "<file>", "write a program that does the same (.py or .cpp; -: print it), and stop",
       "--gen"},
      {"--tap", Takes::some, "<tensor...>", "compare tensors inside the engine as it runs, nothing unfused; '*': all"},
      {"--isolate", Takes::nothing, "", "with --tap: feed each layer with exact values"}};
}

ByName numbers_by_name(const Arguments& arguments, std::string_view flag, ByName standard) {
  if (!arguments.has(flag)) return standard;
  for (const auto& [name, text] : parse_named_words(arguments.values(flag))) {
    const std::optional<double> number = parse_real(text);
    if (!number) throw UsageError(fmt::format("{} takes numbers, not '{}'", flag, text));
    standard[name] = *number;
  }
  return standard;
}

std::string one_of(std::string_view flag, const std::string& word, std::initializer_list<std::string_view> words) {
  const std::vector<std::string_view> known(words);
  if (std::ranges::find(known, word) == known.end())
    throw UsageError(fmt::format("{} {}: there is no such word", flag, word),
                     fmt::format("did you mean {}?", nearest(word, known)));
  return word;
}

std::vector<std::string> metrics_of(const Arguments& arguments) {
  std::vector<std::string> metrics;
  for (const std::string& word : arguments.values("--compare")) {
    if (word == "perceptual_metrics")
      throw StatusError(ExitStatus::no_backend,
                        "--compare perceptual_metrics needs a neural network that hone does not have",
                        "psnr, snr and cosine_similarity are there");
    one_of("--compare", word,
           {"simple", "indices", "l2", "cosine_similarity", "psnr", "snr", "distance_metrics", "quality_metrics"});
    if (word == "distance_metrics") metrics.insert(metrics.end(), {"l2", "cosine_similarity"});
    else if (word == "quality_metrics") metrics.insert(metrics.end(), {"psnr", "snr"});
    else metrics.push_back(word);
  }
  return metrics.empty() ? std::vector<std::string>{"simple"} : metrics;
}

/// What an engine of few bits can be held to where nobody says it.
void choose_tolerances(const Arguments& arguments, const std::vector<std::string>& precisions, CompareRequest& request,
                       const Narrator& narrator) {
  constexpr std::array<std::pair<std::string_view, double>, 4> kTolerances{
      {{"int8", 1e-1}, {"fp8", 1e-1}, {"bf16", 1e-2}, {"fp16", 1e-3}}};
  if (arguments.has("--atol") || arguments.has("--rtol")) return;
  for (const auto& [precision, tolerance] : kTolerances) {
    if (std::ranges::find(precisions, precision) == precisions.end()) continue;
    request.atol[""] = request.rtol[""] = tolerance;
    narrator.info("Tolerances are {:g}: an engine may compute in {}. --atol and --rtol say otherwise.", tolerance,
                  precision);
    return;
  }
}

std::string colon_joined(const std::vector<std::string>& words) { return join(words, ","); }

}  // namespace

std::vector<CompanionFlag> model_flags() {
  return {
      {"--onnx-outputs", Takes::some, "<tensor...>",
       "mark these tensors as outputs; patterns; '*' or 'mark all': every one", "--trt-outputs"},
      {"--onnx-exclude-outputs", Takes::some, "<tensor...>", "leave these outputs out", "--trt-exclude-outputs"},
      {"--onnx-outputs-by-type", Takes::some, "<operator...>", "mark what these operators compute",
       "--trt-outputs-by-type"},
      {"--external-data-dir", Takes::one, "<folder>", "where the model's external data lie",
       "--ext --load-external-data"},
      {"--fp-to-fp16", Takes::nothing, "", "bring the model to FP16 first; what has no meaning in it stays in FP32"},
      {"--model-type", Takes::one, "<type>", "onnx or engine, where the name does not say it"},
      {"--shape-inference", Takes::nothing, "", "accepted: shapes are always inferred",
       "--no-onnxruntime-shape-inference --do-shape-inference"},
      {"--save-onnx", Takes::one, "<file>", "write the model with the outputs that were marked"},
      {"--save-external-data", Takes::maybe, "<file>", "of the model that is written: weights go into a file beside it",
       "--external-data-path"},
      {"--external-data-size-threshold", Takes::one, "<bytes>", "smaller weights stay in the model (1024)"}};
}

std::vector<CompanionFlag> data_flags() {
  return {{"--input-shapes", Takes::some, "<name:[sizes]...>", "shapes that run", "--inputs -s"},
          {"--val-range", Takes::some, "<[name:][low,high]...>", "of values that are drawn", "--float-min --int-min"},
          {"--seed", Takes::one, "<number>", "of values that are drawn (default 1)"},
          {"--iterations", Takes::one, "<count>", "how many inferences, each on values of its own", "--iters"},
          {"--load-inputs", Takes::some, "<file...>", "JSON, .npz, .npy, .safetensors, name:file.raw, a folder",
           "--load-input-data"},
          {"--save-inputs", Takes::one, "<file>", "what went in, in the same forms", "--save-input-data"},
          {"--save-input-blob", Takes::maybe, "<folder>",
           "what went in as raw bytes: a folder an iteration, a file an input"},
          {"--data-loader-script", Takes::one, "<file[:function]>",
           "a function in Python (load_data) that yields a dict of arrays an iteration"},
          {"--data-loader-cmd", Takes::one, "<program>", "prints the path of an .npz file a line, one an iteration"}};
}

std::vector<CompanionFlag> engine_flags() {
  std::vector<CompanionFlag> flags{
      {"--trt-min-shapes", Takes::some, "<name:[sizes]...>", "smallest shapes of a profile"},
      {"--trt-opt-shapes", Takes::some, "<name:[sizes]...>", "shapes that are tuned for"},
      {"--trt-max-shapes", Takes::some, "<name:[sizes]...>", "largest shapes"},
      {"--optimization-profile", Takes::one, "<index>", "which profile runs"},
      {"--fp16", Takes::nothing, "", "allow FP16"},
      {"--bf16", Takes::nothing, "", "allow BF16"},
      {"--fp8", Takes::nothing, "", "FP8 as the model says"},
      {"--int8", Takes::nothing, "", "allow INT8"},
      {"--tf32", Takes::nothing, "", "accepted: TF32 is on where there is any"},
      {"--precision-constraints", Takes::one, "<how>", "prefer, obey or none"},
      {"--layer-precisions", Takes::some, "<layer:type...>", "types of single layers"},
      {"--sparse-weights", Takes::nothing, "", "look for 2:4 sparsity"},
      {"--version-compatible", Takes::nothing, "", "a plan that can choose its tactics anew"},
      {"--calibration-cache", Takes::one, "<file>", "scales for --int8"},
      {"--load-timing-cache", Takes::one, "<file>", "times that were taken before"},
      {"--save-timing-cache", Takes::one, "<file>", "keep the times that are taken"},
      {"--error-on-timing-cache-miss", Takes::nothing, "", "measure nothing: fail where a time is missing"},
      {"--save-tactics", Takes::one, "<file>", "keep which tactics were chosen", "--save-tactic-replay"},
      {"--load-tactics", Takes::one, "<file>", "choose these tactics", "--load-tactic-replay"},
      {"--refittable", Takes::nothing, "", "the plan takes other weights"},
      {"--strip-plan", Takes::nothing, "", "the plan's file holds no weights"},
      {"--profiling-verbosity", Takes::one, "<how>", "none, layer_names_only, detailed"},
      {"--builder-optimization-level", Takes::one, "<0-5>", "how much is tuned"},
      {"--plugins", Takes::some, "<library...>", "libraries of operators"},
      {"--save-engine", Takes::one, "<plan>", "write the plan", "--output-engine"},
      {"--allocation-strategy", Takes::one, "<how>", "accepted, without effect on one inference"}};
  for (CompanionFlag flag : kWithoutEffect) {
    flag.help = "accepted, without effect";
    flags.push_back(flag);
  }
  return flags;
}

const CompanionCommand& comparison_command() {
  static const CompanionCommand kCommand{
      "run",
      "MODEL.onnx | PLAN",
      "Runs a model by several runners on the same inputs and compares what they compute: every runner with the first. "
      "Exit 0: they agree; 1: they do "
      "not; 2: the command line is wrong or asks for nothing; 3: a file is missing; 4: a runner is.\nWithout a runner: "
      "one inference, whose outputs are shown.",
      with_accepted(joined({runner_flags(), model_flags(), data_flags(), engine_flags(), judging_flags()}),
                    {AcceptedFlags::data, AcceptedFlags::model, AcceptedFlags::network, AcceptedFlags::builder,
                     AcceptedFlags::tensorflow}),
      1,
      1,
      true};
  return kCommand;
}

bool asks_for_comparison(std::span<const std::string> words) {
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    // trtexec has them too, always with an '=' behind.
    const bool tolerance = word == "--atol" || word == "--rtol";
    if (!name.starts_with("--") || (find_flag(name) != nullptr && !tolerance) || name == "--json" || name == "--help" ||
        name == "--device")
      continue;
    for (const CompanionFlag& flag : comparison_command().flags)
      if (flag.name == name || (name.size() > 4 && flag.name.starts_with(name)) ||
          fmt::format(" {} ", flag.others).find(" " + name + " ") != std::string::npos)
        return true;
  }
  return false;
}

OutputMarks output_marks(const Arguments& arguments) {
  return {arguments.values("--onnx-outputs"), arguments.values("--onnx-exclude-outputs"),
          arguments.values("--onnx-outputs-by-type")};
}

InputRequest input_request(const Arguments& arguments) {
  InputRequest request;
  request.shapes = parse_shape_words("--input-shapes", arguments.values("--input-shapes"));
  for (const auto& [name, dims] : request.shapes)
    if (std::ranges::find(dims, -1) != dims.end())
      throw UsageError(fmt::format("--input-shapes gives {} a size that is no number", name),
                       "sizes that run are numbers");
  request.ranges = parse_range_words(arguments.values("--val-range"));
  const int64_t seed = arguments.integer("--seed", 1);
  if (seed < 0 || seed > 0xffffffffLL) throw UsageError("--seed takes a number of 32 bits");
  request.seed = static_cast<uint32_t>(seed);
  request.iterations = arguments.integer("--iterations", 1);
  if (request.iterations < 1) throw UsageError("--iterations takes 1 or more");
  return request;
}

std::string best_device() {
  for (size_t i = 0; i < hone_device_kinds(); ++i)
    if (std::string_view(hone_device_kind(i)) == "cuda") {
      hone_device* device = nullptr;
      if (hone_device_create("cuda:0", nullptr, &device) == HONE_OK) {
        hone_device_destroy(device);
        return "cuda:0";
      }
    }
  return "cpu";
}

EngineRequest engine_request(const Arguments& arguments, const Narrator& narrator) {
  EngineRequest request;
  std::vector<std::string>& flags = request.flags;
  flags = arguments.trtexec_flags();
  for (const char* type : {"fp16", "bf16", "fp8", "int8"})
    if (arguments.has(fmt::format("--{}", type))) {
      flags.push_back(fmt::format("--{}", type));
      request.precision = type;
    }
  const auto hand_on = [&](std::string_view flag, std::string_view as) {
    if (arguments.has(flag)) flags.push_back(fmt::format("{}={}", as, colon_joined(arguments.values(flag))));
  };
  hand_on("--precision-constraints", "--precisionConstraints");
  hand_on("--layer-precisions", "--layerPrecisions");
  if (arguments.has("--layer-precisions") && !arguments.has("--precision-constraints"))
    flags.emplace_back("--precisionConstraints=obey");
  hand_on("--calibration-cache", "--calib");
  hand_on("--builder-optimization-level", "--builderOptimizationLevel");
  if (const std::string how = arguments.value("--profiling-verbosity"); !how.empty())
    flags.push_back("--profilingVerbosity=" + how);
  if (arguments.has("--sparse-weights")) flags.emplace_back("--sparsity=enable");
  if (arguments.has("--version-compatible")) flags.emplace_back("--versionCompatible");
  if (arguments.has("--refittable")) flags.emplace_back("--refit");
  if (arguments.has("--strip-plan")) flags.emplace_back("--stripWeights");
  if (arguments.has("--error-on-timing-cache-miss") || arguments.has("--load-tactics"))
    flags.emplace_back("--errorOnTimingCacheMiss");
  for (const std::string& library : arguments.values("--plugins")) flags.push_back("--staticPlugins=" + library);
  request.load_cache = arguments.value("--load-timing-cache");
  request.save_cache = arguments.value("--save-timing-cache");
  request.save_tactics = arguments.value("--save-tactics");
  request.load_tactics = arguments.value("--load-tactics");
  request.save_engine = arguments.value("--save-engine");
  request.profile = static_cast<int>(arguments.integer("--optimization-profile", 0));
  const auto mins = arguments.all("--trt-min-shapes"), opts = arguments.all("--trt-opt-shapes"),
             maxs = arguments.all("--trt-max-shapes");
  for (size_t i = 0; i < std::max({mins.size(), opts.size(), maxs.size()}); ++i) {
    const auto side = [&](const std::vector<std::vector<std::string>>& all, std::string_view flag) {
      return i < all.size() ? parse_shape_words(flag, all[i]) : std::map<std::string, Dims>();
    };
    ShapeTriple triple{side(mins, "--trt-min-shapes"), side(opts, "--trt-opt-shapes"), side(maxs, "--trt-max-shapes")};
    if (triple.opt.empty()) triple.opt = triple.max.empty() ? triple.min : triple.max;
    request.profiles.push_back(std::move(triple));
  }
  for (const CompanionFlag& flag : kWithoutEffect)
    if (arguments.has(flag.name)) narrator.warning("{} is accepted and has no effect on Hone's engines", flag.name);
  return request;
}

OnnxRuntimeRequest onnxruntime_request(const Arguments& arguments) {
  OnnxRuntimeRequest request{arguments.value("--onnxrt-lib"), arguments.values("--providers"), 99};
  const std::string level = arguments.value("--graph-optimization-level");
  if (level == "ORT_DISABLE_ALL") request.optimization = 0;
  else if (level == "ORT_ENABLE_BASIC") request.optimization = 1;
  else if (level == "ORT_ENABLE_EXTENDED") request.optimization = 2;
  else if (!level.empty() && level != "ORT_ENABLE_ALL")
    throw UsageError(fmt::format("--graph-optimization-level {}: there is no such level", level),
                     "ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED or ORT_ENABLE_ALL");
  return request;
}

CompareRequest comparison_request_of_flags(const Arguments& arguments) {
  CompareRequest compare;
  compare.metrics = metrics_of(arguments);
  compare.atol = numbers_by_name(arguments, "--atol", compare.atol);
  compare.rtol = numbers_by_name(arguments, "--rtol", compare.rtol);
  compare.quantile = numbers_by_name(arguments, "--error-quantile", compare.quantile);
  compare.index_tolerance = numbers_by_name(arguments, "--index-tolerance", compare.index_tolerance);
  compare.l2 = numbers_by_name(arguments, "--l2-threshold", compare.l2);
  compare.cosine = numbers_by_name(arguments, "--cosine-similarity-threshold", compare.cosine);
  compare.psnr = numbers_by_name(arguments, "--psnr-threshold", compare.psnr);
  compare.snr = numbers_by_name(arguments, "--snr-threshold", compare.snr);
  if (arguments.has("--check-error-stat"))
    for (const auto& [name, stat] : parse_named_words(arguments.values("--check-error-stat")))
      compare.stat[name] = one_of("--check-error-stat", stat, {"elemwise", "max", "mean", "median", "quantile"});
  compare.shape_check = !arguments.has("--no-shape-check");
  compare.infinities_equal = arguments.has("--infinities-compare-equal");
  return compare;
}

ComparisonRequest comparison_request(const Arguments& arguments, const std::vector<std::string>& precisions,
                                     const Narrator& narrator) {
  ComparisonRequest request;
  CompareRequest& compare = request.compare;
  compare = comparison_request_of_flags(arguments);
  choose_tolerances(arguments, precisions, compare, narrator);
  request.pairs = one_of("--pairs", arguments.value("--pairs", "first"), {"first", "neighbour", "all"});
  request.fail_fast = arguments.has("--fail-fast");
  request.average = arguments.has("--check-average");
  request.allow_unmatched = arguments.has("--allow-unmatched");
  request.heat_maps = arguments.value("--save-heatmaps");
  request.error_plots = arguments.value("--save-error-metrics-plot");
  if (request.average && request.fail_fast) throw UsageError("--check-average and --fail-fast exclude each other");
  const bool by_element =
      std::ranges::any_of(compare.stat, [](const auto& entry) { return entry.second == "elemwise"; });
  if (request.average && std::ranges::find(compare.metrics, "simple") != compare.metrics.end() && by_element)
    throw UsageError("--check-average has no mean of single elements",
                     "add --check-error-stat mean, max, median or quantile");
  if (request.average && std::ranges::find(compare.metrics, "indices") != compare.metrics.end())
    throw UsageError("--check-average has no mean of places", "leave --compare indices out");
  return request;
}

std::vector<TopPlaces> postprocess_request(const Arguments& arguments) {
  std::vector<TopPlaces> places;
  for (const std::string& word : arguments.values("--postprocess")) {
    const size_t at = word.find("top-");
    if (at == std::string::npos)
      throw UsageError(fmt::format("--postprocess {}: only top-K is known", word),
                       "for example top-3 or y:top-5,axis=1");
    const std::vector<std::string_view> parts = split(std::string_view(word).substr(at + 4), ',');
    const std::optional<int64_t> count = parse_integer(parts[0]);
    std::optional<int64_t> axis = -1;
    if (parts.size() > 1 && parts[1].starts_with("axis=")) axis = parse_integer(parts[1].substr(5));
    if (!count || *count < 1 || !axis)
      throw UsageError(fmt::format("--postprocess {} cannot be understood", word),
                       "for example top-3 or y:top-5,axis=1");
    places.push_back({at == 0 ? "" : word.substr(0, at - 1), *count, *axis});
  }
  return places;
}

ModelFace face_of(const Arguments& arguments, const std::string& path, const Narrator& narrator) {
  ModelFace face = read_face(path, arguments.value("--external-data-dir"));
  if (arguments.has("--fp-to-fp16")) to_fp16(face, arguments.has("--keep-io-types"), narrator.engine_log());
  mark_outputs(face, output_marks(arguments));
  return face;
}

}  // namespace hone
