// SPDX-License-Identifier: Apache-2.0
//
// Implied flags.
#include "options/defaults.h"

#include "options/io_formats.h"

#include <cmath>
#include <cstdlib>

#include "base/error.h"

namespace hone {
namespace {

bool has_layer_types(const ToolOptions& tool) {
  return !tool.layer_precisions.empty() || !tool.layer_output_types.empty();
}

/// Types come from the model alone, so flags that allow others are switched off.
void imply_strong_types(Options& options, std::vector<std::string>& warnings) {
  BuildOptions& build = options.build;
  const auto off = [&](bool& mode, std::string_view name) {
    if (mode)
      warnings.push_back(
          fmt::format("Invalid usage, setting {} mode is not possible with --stronglyTyped; it is switched off", name));
    mode = false;
  };
  off(build.fp16, "fp16");
  off(build.bf16, "bf16");
  off(build.int8, "int8");
  off(options.tool.fp8, "fp8");
  off(options.tool.int4, "int4");
  if (!build.calibration_file.empty() || !options.tool.calibration_data.empty())
    warnings.push_back("--calib and --calibData have no effect with --stronglyTyped: scales come from the model");
  if (has_layer_types(options.tool))
    warnings.push_back(
        "--layerPrecisions and --layerOutputTypes have no effect with --stronglyTyped: types come from the model");
}

bool is_allowed(std::string_view types, const Options& options) {
  const auto has = [&](std::string_view type) { return types.find(type) != std::string_view::npos; };
  return (options.build.int8 || !has("int8")) && (options.tool.fp8 || !has("fp8"));
}

/// With prefer what no flag allows is left out; with obey the model's check refuses it.
void imply_layer_types(Options& options, std::vector<std::string>& warnings) {
  const ToolOptions& tool = options.tool;
  BuildOptions& build = options.build;
  const bool constrained = tool.precision_constraints != "none", obeyed = tool.precision_constraints == "obey";
  if (has_layer_types(tool) && !constrained)
    warnings.push_back(
        "--layerPrecisions and --layerOutputTypes have no effect without --precisionConstraints=obey or prefer");
  if (constrained && !has_layer_types(tool))
    warnings.push_back("--precisionConstraints has no effect without --layerPrecisions or --layerOutputTypes");
  if (!constrained || tool.strongly_typed) return;
  build.layer_types.insert(build.layer_types.end(), tool.layer_precisions.begin(), tool.layer_precisions.end());
  if (obeyed) build.required_types = tool.layer_precisions;
  for (const auto& entry : tool.layer_output_types)
    if (obeyed || is_allowed(entry.second, options)) build.result_types.push_back(entry);
}

void imply_precision(Options& options, std::vector<std::string>& warnings) {
  BuildOptions& build = options.build;
  if (build.best) build.fp16 = build.bf16 = build.int8 = true;
  if (options.tool.strongly_typed) imply_strong_types(options, warnings);
  if (build.accuracy_budget >= 0 && !build.best) warnings.push_back("--accuracyBudget has no effect without --best");
  imply_layer_types(options, warnings);
}

void imply_spellings(Options& options, const Given& given) {
  ToolOptions& tool = options.tool;
  if (!tool.old_nvtx_mode.empty() && !given("--profilingVerbosity"))
    options.build.profiling_verbosity = tool.old_nvtx_mode == "default"   ? "layer_names_only"
                                        : tool.old_nvtx_mode == "verbose" ? "detailed"
                                                                          : tool.old_nvtx_mode;
  if (tool.old_streams && !given("--infStreams")) options.perf.streams = *tool.old_streams;
  if (tool.legacy_workspace_mib && !tool.pools.workspace) tool.pools.workspace = *tool.legacy_workspace_mib;
  if (tool.pools.workspace) options.build.workspace_bytes = std::llround(*tool.pools.workspace * (1 << 20));
  if (tool.heuristic && tool.optimization_level < 0) options.build.optimization_level = 2;
  if (tool.strip_all_weights) options.build.refit = options.build.strip_weights = true;
  if (tool.onnx.starts_with("~/"))
    if (const char* home = std::getenv("HOME")) tool.onnx = home + tool.onnx.substr(1);
}

/// What acts on a refittable engine alone.
void warn_without_refit(const Options& options, std::vector<std::string>& warnings) {
  if (options.build.refit) return;
  const std::pair<bool, std::string_view> flags[] = {{options.report.dump_refit, "--dumpRefit"},
                                                     {!options.tool.refit_from.empty(), "--refitFromOnnx"},
                                                     {options.tool.time_refit, "--timeRefit"}};
  for (const auto& [given, name] : flags)
    if (given) warnings.push_back(fmt::format("{} has no effect without --refit", name));
}

}  // namespace

void apply_implied_flags(Options& options, const Given& given, std::vector<std::string>& warnings) {
  ToolOptions& tool = options.tool;
  imply_precision(options, warnings);
  imply_spellings(options, given);
  warn_without_refit(options, warnings);
  options.build.input_formats = bound_formats(tool.input_formats, "--inputIOFormats", warnings);
  options.build.output_formats = bound_formats(tool.output_formats, "--outputIOFormats", warnings);
  if (tool.no_builder_cache) options.build.use_timing_cache = false;
  if (tool.dla_standalone) tool.skip_inference = true;
  if (tool.runtime != "full" && !tool.version_compatible) {
    tool.version_compatible = true;
    warnings.push_back(fmt::format("--useRuntime={} implies --versionCompatible", tool.runtime));
  }
  if (tool.version_compatible) options.build.portable = true;
  if (options.perf.duration_s == -1)
    warnings.push_back("--duration=-1 runs until it is interrupted; nothing is reported at the end");
  if (tool.onnx.size() && tool.load_engine.size())
    warnings.push_back(
        fmt::format("--onnx={} is not read, because --loadEngine={} is given", tool.onnx, tool.load_engine));
}

}  // namespace hone
