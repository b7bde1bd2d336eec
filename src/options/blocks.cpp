// SPDX-License-Identifier: Apache-2.0
//
// The five blocks, one function each, line by line as trtexec's releases print them: numbers with six significant digits,
// switches as Enabled or Disabled. What Hone adds to them follows from the table of flags.
#include "options/blocks.h"

#include <cctype>

#include "base/text.h"
#include "options/flag.h"

namespace hone {
namespace {

using Lines = std::vector<std::string>;

std::string_view on(bool value) { return value ? "Enabled" : "Disabled"; }

template <typename... Args>
void line(Lines& lines, fmt::format_string<Args...> format, Args&&... args) {
  lines.push_back(fmt::format(format, std::forward<Args>(args)...));
}

int verbosity_number(std::string_view name) { return name == "detailed" ? 2 : name == "none" ? 1 : 0; }

std::string pools(const MemoryPools& pools) {
  const auto size = [](const std::optional<double>& mib) {
    return mib ? fmt::format("{:g} MiB", *mib) : std::string("default");
  };
  return fmt::format("workspace: {}, dlaSRAM: {}, dlaLocalDRAM: {}, dlaGlobalDRAM: {}", size(pools.workspace),
                     size(pools.dla_sram), size(pools.dla_local_dram), size(pools.dla_global_dram));
}

std::string precision(const Options& options) {
  if (options.tool.strongly_typed) return "Strongly Typed";
  std::string text = "FP32";
  if (options.build.fp16) text += "+FP16";
  if (options.build.bf16) text += "+BF16";
  if (options.build.int8) text += "+INT8";
  if (options.tool.fp8) text += "+FP8";
  if (options.tool.int4) text += "+INT4";
  if (options.tool.precision_constraints != "none")
    text += fmt::format(" ({} precision constraints)", options.tool.precision_constraints);
  return text;
}

std::string named(const NamedTexts& entries, std::string_view separator) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : entries) parts.push_back(fmt::format("{}:{}", name, value));
  return join(parts, separator);
}

std::string states(const NamedTexts& entries, std::string_view none, auto&& spell) {
  if (entries.empty()) return std::string(none);
  std::string text;
  for (const auto& [name, state] : entries) text += fmt::format("{} [{}], ", spell(name), state);
  return text;
}

/// "profileSharing0806" is kPROFILE_SHARING_0806.
std::string constant_name(const std::string& name) {
  std::string text = "k";
  for (size_t i = 0; i < name.size(); ++i) {
    const auto kind = [](unsigned char c) { return std::isdigit(c) ? 2 : std::isupper(c) ? 1 : 0; };
    if (i > 0 && kind(name[i]) != 0 && kind(name[i]) != kind(name[i - 1])) text += '_';
    text += static_cast<char>(std::toupper(static_cast<unsigned char>(name[i])));
  }
  return text;
}

std::string tactic_sources(const NamedTexts& sources) {
  static const std::vector<std::pair<std::string, std::string>> kOrder = {
      {"CUBLAS", "cublas"},
      {"CUBLAS_LT", "cublasLt"},
      {"CUBLASLT", "cublasLt"},
      {"CUDNN", "cudnn"},
      {"EDGE_MASK_CONVOLUTIONS", "edge mask convolutions"},
      {"JIT_CONVOLUTIONS", "JIT convolutions"},
      {"ONEDNN", "onednn"}};
  NamedTexts ordered;
  for (const auto& [word, label] : kOrder)
    for (const auto& [name, state] : sources)
      if (name == word) ordered.emplace_back(label, state);
  return states(ordered, "Using default tactic sources", [](const std::string& name) { return name; });
}

void io_formats(Lines& lines, std::string_view direction, const std::vector<IoFormatSpec>& specs, Release release) {
  if (specs.empty()) line(lines, "{}s format: {}CHW", direction, release == Release::v11 ? "" : "fp32:");
  for (const IoFormatSpec& spec : specs) {
    std::string text;
    for (const std::string& format : spec.formats) text += format == "chw" ? format : "+" + format;
    line(lines, "{}: {}{}{}", direction, spec.type, spec.type.empty() ? "" : ":", text);
  }
}

void build_shapes(Lines& lines, const std::vector<ProfileOptions>& profiles, bool always_numbered) {
  bool any = false;
  for (size_t i = 0; i < profiles.size(); ++i)
    for (const auto& [tensor, range] : profiles[i]) {
      const std::string index = always_numbered || profiles.size() > 1 ? fmt::format(" (profile {})", i) : "";
      line(lines, "Input build shape{}: {}={}+{}+{}", index, tensor, join_dims(range.min), join_dims(range.opt),
           join_dims(range.max));
      any = true;
    }
  if (!any) line(lines, "Input build shapes: model");
}

void calibration_shapes(Lines& lines, const ProfileShapes& shapes) {
  if (!shapes.opt) {
    line(lines, "Input calibration shapes: model");
    return;
  }
  const auto dims = [&](const std::optional<ShapeMap>& member, const std::string& tensor) {
    const ShapeMap& map = member ? *member : *shapes.opt;
    const auto found = map.find(tensor);
    return found == map.end() ? std::string() : join_dims(found->second);
  };
  for (const auto& [tensor, opt] : *shapes.opt)
    line(lines, "Input calibration shape: {}={}+{}+{}", tensor, dims(shapes.min, tensor), join_dims(opt),
         dims(shapes.max, tensor));
}

/// "buildBudget: 5" for every flag of Hone's own that is given and belongs to the block.
void own_flags(Lines& lines, const Options& options, FlagGroup group) {
  for (const auto& [name, value] : options.own_flags)
    if (find_flag(name)->group == group) line(lines, "{}: {}", name.substr(2), value.empty() ? "Enabled" : value);
}

void model_block(Lines& lines, const Options& options) {
  const bool onnx = !options.tool.onnx.empty();
  line(lines, "=== Model Options ===");
  line(lines, "Format: {}", onnx ? "ONNX" : "*");
  line(lines, "Model: {}", options.tool.onnx);
  std::string outputs = "Output:";
  for (const std::string& name : options.tool.outputs) outputs += " " + name;
  lines.push_back(outputs);
}

/// The labels of the build block differ between releases; the default shows those of 8.6.
void build_block(Lines& lines, const Options& options) {
  const ToolOptions& tool = options.tool;
  const BuildOptions& build = options.build;
  const bool from10 = is_at_least(tool.release, Release::v10), from11 = is_at_least(tool.release, Release::v11);
  if (from10 && !tool.load_engine.empty()) {
    lines.emplace_back();
    return;
  }
  line(lines, "=== Build Options ===");
  if (!from10) line(lines, "Max batch: explicit batch");
  line(lines, "Memory Pools: {}{}", pools(tool.pools),
       from10 ? fmt::format(", tacticSharedMem: {}",
                            tool.pools.tactic_shared ? fmt::format("{:g} KiB", *tool.pools.tactic_shared) : "default")
              : "");
  if (!from10) line(lines, "minTiming: {}", build.min_timing);
  line(lines, "avgTiming: {}", build.timing_repeats);
  line(lines, "Precision: {}", precision(options));
  if (!from11) line(lines, "LayerPrecisions: {}", named(tool.layer_precisions, ","));
  line(lines, "Layer Device Types: {}", named(tool.layer_devices, ", "));
  if (from11) line(lines, "Decomposable Attentions: ");
  if (!from11)
    line(lines, "Calibration: {}", build.int8 && build.calibration_file.empty() ? "Dynamic" : build.calibration_file);
  line(lines, "Refit: {}", on(build.refit));
  if (from10) line(lines, "Strip weights: {}", on(build.strip_weights));
  line(lines, "Version Compatible: {}", on(tool.version_compatible));
  if (from10) line(lines, "ONNX Plugin InstanceNorm: {}", on(tool.plugin_instance_norm));
  if (from11)
    for (const char* flag : {"ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA", "REPORT_CAPABILITY_DLA", "ADJUST_FOR_DLA"})
      line(lines, "ONNX k{} flag: Disabled", flag);
  if (from11) line(lines, "ONNX kENABLE_PLUGIN_OVERRIDE flag: {}", on(tool.plugins_override));
  line(lines, "TensorRT runtime: {}", tool.runtime);
  line(lines, "Lean DLL Path: {}", tool.lean_dll);
  line(lines, "Tempfile Controls: {{ in_memory: {}, temporary: {} }}", tool.tempfile_controls.at("in_memory"),
       tool.tempfile_controls.at("temporary"));
  line(lines, "Exclude Lean Runtime: {}", on(tool.exclude_lean_runtime));
  line(lines, "Sparsity: {}", tool.sparsity == "force" ? "Forced" : tool.sparsity == "enable" ? "Enabled" : "Disabled");
  line(lines, "Safe mode: {}", on(tool.safe));
  line(lines, "Build DLA standalone loadable: {}", on(tool.dla_standalone));
  line(lines, "Allow GPU fallback for DLA: {}", on(tool.allow_gpu_fallback));
  line(lines, "DirectIO mode: {}", on(tool.direct_io));
  if (!from11) line(lines, "Restricted mode: {}", on(tool.restricted));
  line(lines, "Skip inference: {}", on(tool.skip_inference));
  line(lines, "Save engine: {}", tool.save_engine);
  line(lines, "Load engine: {}", tool.load_engine);
  line(lines, "Profiling verbosity: {}", verbosity_number(build.profiling_verbosity));
  line(lines, "Tactic sources: {}", tactic_sources(tool.tactic_sources));
  line(lines, "timingCacheMode: {}",
       !build.use_timing_cache           ? "disable"
       : build.timing_cache_file.empty() ? "local"
                                         : "global");
  line(lines, "timingCacheFile: {}", build.timing_cache_file);
  if (!from10) line(lines, "Heuristic: {}", on(tool.heuristic));
  if (from10) line(lines, "Enable Compilation Cache: {}", on(!tool.no_compilation_cache));
  if (from11) line(lines, "Enable Monitor Memory: {}", on(tool.monitor_memory));
  if (from11) line(lines, "CPU Only Mode: Disabled");
  if (from10) line(lines, "errorOnTimingCacheMiss: {}", on(build.error_on_timing_cache_miss));
  line(lines, "Preview Features: {}", states(tool.preview_features, "Use default preview flags.", constant_name));
  line(lines, "MaxAuxStreams: {}", tool.max_aux_streams);
  line(lines, "BuilderOptimizationLevel: {}", tool.optimization_level);
  if (from10) line(lines, "MaxTactics: {}", build.max_tactics);
  if (from10 && !from11) line(lines, "Calibration Profile Index: {}", tool.calibration_profile);
  if (from10) {
    line(lines, "Weight Streaming: {}", on(tool.allow_weight_streaming));
    line(lines, "Runtime Platform: {}", tool.windows ? "Windows AMD64" : "Same As Build");
    line(lines, "Debug Tensors: {}", join(build.debug_tensors, ","));
  }
  if (from11) {
    line(lines, "Distributive Independence: {}", on(build.deterministic));
    line(lines, "Mark Unfused Tensors As Debug Tensors: {}", on(build.debug_unfused));
  }
  io_formats(lines, "Input(s)", tool.input_formats, tool.release);
  io_formats(lines, "Output(s)", tool.output_formats, tool.release);
  build_shapes(lines, build.profiles, from10);
  if (!from11) calibration_shapes(lines, tool.calibration_shapes);
  own_flags(lines, options, FlagGroup::build);
}

void system_block(Lines& lines, const ToolOptions& tool) {
  std::string devices = tool.device;
  for (const std::string& name : tool.replicas) devices += "," + name;
  const auto libraries = [&](std::string label, const std::vector<std::string>& names) {
    for (const std::string& name : names) label += " " + name;
    lines.push_back(std::move(label));
  };
  line(lines, "=== System Options ===");
  line(lines, "Device: {}", devices);
  line(lines, "DLACore: {}", tool.dla_core < 0 ? "" : std::to_string(tool.dla_core));
  libraries(tool.release == Release::v11 ? "Loaded static plugins:" : "Plugins:", tool.plugins);
  libraries("setPluginsToSerialize:", tool.plugins_to_serialize);
  libraries("dynamicPlugins:", tool.dynamic_plugins);
  line(lines, "ignoreParsedPluginLibs: {:d}", tool.ignore_parsed_plugin_libs);
  lines.emplace_back();
}

/// "Disabled", "Automatic", "N bytes" or "X%"; all weights on the device when nothing is said.
std::string weight_budget(const std::string& typed) {
  if (typed.empty()) return "100.000000%";
  if (typed == "-2") return "Disabled";
  if (typed == "-1") return "Automatic";
  const double number = parse_real(typed.substr(0, typed.find_first_not_of("0123456789."))).value_or(0);
  if (typed.back() == '%') return fmt::format("{:.6f}%", number);
  const size_t unit = std::string_view("bkmg").find(static_cast<char>(std::tolower(typed.back())));
  const double scale = unit == std::string_view::npos ? 1 : static_cast<double>(int64_t{1} << (10 * unit));
  return fmt::format("{:.0f} bytes", number * scale);
}

void accuracy(Lines& lines, const AccuracyOptions& options) {
  const std::map<std::string, std::string> labels{
      {"l0", "L0"}, {"l1", "L1"}, {"l2", "L2"}, {"lInf", "LInf"}, {"cos", "CosineSimilarity"}};
  line(lines, "Accuracy Algorithm: {}", labels.at(options.algorithm));
  if (options.algorithm == "l0") {
    line(lines, "Absolute Tolerance (atol): {:g}", options.atol);
    line(lines, "Relative Tolerance (rtol): {:g}", options.rtol);
  }
  if (options.threshold > 0) line(lines, "Accuracy Threshold: {:g}", options.threshold);
}

void inference_block(Lines& lines, const Options& options) {
  const ToolOptions& tool = options.tool;
  const PerfOptions& perf = options.perf;
  line(lines, "=== Inference Options ===");
  line(lines, "Batch: Explicit");
  for (const auto& [tensor, dims] : tool.shapes)
    line(lines, "Input inference shape{}: {}={}", is_at_least(tool.release, Release::v10) ? " " : "", tensor,
         join_dims(dims));
  if (tool.shapes.empty()) line(lines, "Input inference shapes: model");
  line(lines, "Iterations: {}", perf.iterations);
  line(lines, "Duration: {:g}s (+ {:g}ms warm up)", perf.duration_s, perf.warm_up_ms);
  line(lines, "Sleep time: {:g}ms", perf.sleep_ms);
  line(lines, "Idle time: {:g}ms", perf.idle_ms);
  line(lines, "Inference Streams: {}", perf.streams);
  line(lines, "ExposeDMA: {}", on(perf.expose_dma));
  line(lines, "Data transfers: {}", on(perf.data_transfers));
  line(lines, "Spin-wait: {}", on(perf.spin_wait));
  line(lines, "Multithreading: {}", on(perf.threads));
  line(lines, "CUDA Graph: {}", on(perf.use_graph));
  if (tool.release != Release::v11) line(lines, "Separate profiling: {}", on(tool.separate_profile_run));
  line(lines, "Time Deserialize: {}", on(tool.time_deserialize));
  line(lines, "Time Refit: {}", on(tool.time_refit));
  line(lines, "NVTX verbosity: {}", verbosity_number(options.build.profiling_verbosity));
  line(lines, "Persistent Cache Ratio: {:g}", tool.persistent_cache_ratio);
  if (is_at_least(tool.release, Release::v10)) line(lines, "Optimization Profile Index: {}", tool.use_profile);
  if (is_at_least(tool.release, Release::v10))
    line(lines, "Weight Streaming Budget: {}", weight_budget(tool.weight_streaming_budget));
  if (tool.release == Release::v11) accuracy(lines, tool.accuracy);
  line(lines, "Inputs:");
  for (const auto& [tensor, file] : tool.load_inputs) line(lines, "{}<-{}", tensor, file);
  if (!is_at_least(tool.release, Release::v10)) return;
  if (!tool.reference_outputs.empty()) line(lines, "RefOutputs:");
  for (const auto& [tensor, file] : tool.reference_outputs) line(lines, "{}<-{}", tensor, file);
  line(lines, "Debug Tensor Save Destinations:");
  for (const auto& [tensor, file] : tool.save_debug_tensors) line(lines, "{}: {}", tensor, file);
  if (tool.release != Release::v11) return;
  line(lines, "Dump All Debug Tensor in Formats: ");
  for (const std::string& format : tool.debug_formats) lines.push_back(format);
}

void reporting_block(Lines& lines, const Options& options) {
  const ReportOptions& report = options.report;
  std::vector<std::string> percentiles;
  for (const float value : options.perf.percentiles) percentiles.push_back(fmt::format("{:g}", value));
  line(lines, "=== Reporting Options ===");
  line(lines, "Verbose: {}", on(report.verbose));
  line(lines, "Averages: {} inferences", options.perf.average_runs);
  line(lines, "Percentiles: {}", join(percentiles, ","));
  line(lines, "Dump refittable layers:{}", on(report.dump_refit));
  line(lines, "Dump output: {}", on(report.dump_output));
  line(lines, "Profile: {}", on(report.dump_profile));
  line(lines, "Export timing to JSON file: {}", report.export_times);
  line(lines, "Export output to JSON file: {}", report.export_output);
  line(lines, "Export profile to JSON file: {}", report.export_profile);
}

}  // namespace

std::vector<std::string> option_blocks(const Options& options) {
  Lines lines;
  model_block(lines, options);
  own_flags(lines, options, FlagGroup::model);
  build_block(lines, options);
  system_block(lines, options.tool);
  own_flags(lines, options, FlagGroup::system);
  inference_block(lines, options);
  own_flags(lines, options, FlagGroup::inference);
  reporting_block(lines, options);
  own_flags(lines, options, FlagGroup::reporting);
  lines.emplace_back();
  return lines;
}

}  // namespace hone
