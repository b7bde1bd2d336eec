// SPDX-License-Identifier: Apache-2.0
//
// Setters with words, grammars and limits of their own.
#include "options/values.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace hone::setters {
namespace {

void require_precision(const Argument& argument, std::string_view word) {
  if (!dtype_of_word(word))
    throw Error(fmt::format("Invalid DataType {}", word),
                fmt::format("{} takes name:fp32, name:fp16, name:bf16, name:int32 or name:int8", argument.flag));
}

}  // namespace

void put_shape_of(ProfileShapes& shapes, const Argument& argument) {
  std::optional<ShapeMap>& target = argument.flag.starts_with("--min")   ? shapes.min
                                    : argument.flag.starts_with("--opt") ? shapes.opt
                                                                         : shapes.max;
  if (target)
    throw Error(fmt::format("{} is given twice for one profile", argument.flag),
                "give each of --minShapes, --optShapes and --maxShapes once per --profile");
  target = read_shapes(argument);
}

void put_profile_shape(Options& options, const Argument& argument) { put_shape_of(options.tool.profiles[0], argument); }
void put_calibration_shape(Options& options, const Argument& argument) {
  put_shape_of(options.tool.calibration_shapes, argument);
}

void put_optimization_level(Options& options, const Argument& argument) {
  options.tool.optimization_level = read_integer(argument);
  options.build.optimization_level = std::clamp(options.tool.optimization_level, 0, 5);
}

void put_pools(Options& options, const Argument& argument) {
  options.tool.pools = read_pools(argument, options.tool.release);
}
/// Read before all others, see parse.cpp.
void put_compat(Options& options, const Argument& argument) { options.tool.release = read_release(argument.value); }

void put_verbosity(Options& options, const Argument& argument) {
  Argument renamed = argument;
  renamed.value = argument.value == "default"   ? "layer_names_only"
                  : argument.value == "verbose" ? "detailed"
                                                : argument.value;
  if (renamed.value != argument.value)
    options.warnings.push_back(
        fmt::format("--profilingVerbosity={} has been deprecated, use --profilingVerbosity={} instead.", argument.value,
                    renamed.value));
  options.build.profiling_verbosity =
      read_word(renamed, "profilingVerbosity", {"layer_names_only", "detailed", "none"});
}

void put_nvtx_mode(Options& options, const Argument& argument) {
  options.tool.old_nvtx_mode =
      read_word(argument, "nvtxMode", {"default", "verbose", "none", "layer_names_only", "detailed"});
}

void put_tactic_sources(Options& options, const Argument& argument) {
  options.tool.tactic_sources =
      read_signed(argument, "Tactic source",
                  {"CUBLAS", "CUBLAS_LT", "CUBLASLT", "CUDNN", "EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS", "ONEDNN"});
  // On the CPU the vendor's libraries are one source: oneDNN. JIT kernels are Hone's own.
  std::vector<std::string>& disabled = options.build.disabled_sources;
  for (const auto& [name, state] : options.tool.tactic_sources) {
    if (state == "ON") continue;
    if (name == "CUDNN" || name == "CUBLAS" || name == "ONEDNN") disabled.push_back("onednn");
    if (name == "CUDNN") disabled.push_back("cudnn");
    if (name.starts_with("CUBLAS")) disabled.push_back("cublaslt");
    if (name == "JIT_CONVOLUTIONS") disabled.insert(disabled.end(), {"cpu", "host"});
  }
}

void put_preview(Options& options, const Argument& argument) {
  options.tool.preview_features =
      read_signed(argument, "Preview features",
                  {"fasterDynamicShapes0805", "disableExternalTacticSourcesForCore0805", "profileSharing0806",
                   "aliasedPluginIO1003", "runtimeActivationResize", "multiDeviceRuntime"});
}

void put_precision_constraints(Options& options, const Argument& argument) {
  options.tool.precision_constraints = read_word(argument, "precision constraints", {"none", "obey", "prefer"});
}

void put_layer_precisions(Options& options, const Argument& argument) {
  options.tool.layer_precisions = read_named(argument);
  for (const auto& [layer, type] : options.tool.layer_precisions) require_precision(argument, type);
}

/// A line is "layer:type"; names may hold colons. '#' begins a line that is not read.
void put_precision_file(Options& options, const Argument& argument) {
  const std::string text = read_file(argument.value);
  size_t number = 0;
  for (const std::string_view whole : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(whole);
    if (line.empty() || line.front() == '#') continue;
    const size_t colon = line.rfind(':');
    if (colon == std::string_view::npos)
      throw Error(fmt::format("{} line {} is no layer with a type: {}", argument.value, number, line),
                  "write layer:fp32, a line each");
    const std::string type(trim(line.substr(colon + 1)));
    with_note([&] { return fmt::format("reading line {} of {}", number, argument.value); },
              [&] { require_precision(argument, type); });
    options.build.layer_types.emplace_back(trim(line.substr(0, colon)), type);
  }
}

void put_layer_output_types(Options& options, const Argument& argument) {
  options.tool.layer_output_types = read_named(argument);
  for (const auto& [layer, types] : options.tool.layer_output_types)
    for (const std::string_view type : split(types, '+')) require_precision(argument, type);
}

void put_layer_devices(Options& options, const Argument& argument) {
  options.tool.layer_devices = read_named(argument);
  for (const auto& [layer, device] : options.tool.layer_devices)
    if (device != "GPU" && device != "DLA" && device != "CPU")
      throw Error(fmt::format("Invalid Device Type {}", device), "write name:GPU, name:CPU or name:DLA");
}

void put_accuracy_budget(Options& options, const Argument& argument) {
  options.build.accuracy_budget = read_real(argument);
  if (options.build.accuracy_budget < 0)
    throw Error(fmt::format("--accuracyBudget takes a relative error of 0 or more, not '{}'", argument.value),
                "for example --accuracyBudget=0.01");
}

void put_sparsity(Options& options, const Argument& argument) {
  options.tool.sparsity = read_word(argument, "sparsity mode", {"disable", "enable", "force"});
  options.build.sparse_weights = options.tool.sparsity != "disable";
}

void put_runtime(Options& options, const Argument& argument) {
  options.tool.runtime = read_word(argument, "useRuntime", {"full", "lean", "dispatch"});
}

void put_runtime_platform(Options& options, const Argument& argument) {
  if (argument.value != "SameAsBuild" && argument.value != "WindowsAMD64")
    throw Error(fmt::format("Unknown runtime platform: {}. Valid options: SameAsBuild, WindowsAMD64.", argument.value),
                "plans run on every platform");
  if (argument.value != "SameAsBuild") options.tool.skip_inference = options.tool.windows = true;
}

void put_tempfile_controls(Options& options, const Argument& argument) {
  for (const auto& [key, action] : read_named(argument)) {
    if (!options.tool.tempfile_controls.contains(key))
      throw Error(fmt::format("Unknown --tempfileControls key {}", key), "keys are in_memory and temporary");
    if (action != "allow" && action != "deny")
      throw Error("--tempfileControls value should be `deny` or `allow`",
                  fmt::format("for example --tempfileControls={}:allow", key));
    options.tool.tempfile_controls[key] = action;
  }
}

/// "0,1", "cpu@0,cpu@1": names behind each other. What stands behind "cpu@8-11," and begins with a digit is one of its cores.
void put_device(Options& options, const Argument& argument) {
  std::vector<std::string> names;
  for (const std::string_view piece : split(argument.value, ',')) {
    const bool of_cores = !names.empty() && names.back().find('@') != std::string::npos && !piece.empty() &&
                          std::isdigit(static_cast<unsigned char>(piece[0])) != 0;
    if (of_cores) {
      names.back() += "," + std::string(piece);
      continue;
    }
    Argument one = argument;
    one.value = std::string(piece);
    if (!piece.starts_with("cpu") && !piece.starts_with("cuda")) (void)read_integer(one);
    names.emplace_back(piece);
  }
  options.tool.device = names.front();
  options.tool.replicas.assign(names.begin() + 1, names.end());
}

void put_targets(Options& options, const Argument& argument) {
  options.build.targets.clear();
  for (const std::string_view name : split(argument.value, ',')) {
    std::string_view number = trim(name);
    number.remove_prefix(number.starts_with("sm_") ? 3 : number.starts_with("sm") ? 2 : 0);
    const std::optional<int64_t> version = parse_integer(number);
    if (number.data() == trim(name).data() || !version || *version < 50 || *version > 999)
      throw Error(fmt::format("--targets takes architectures of GPUs, not '{}'", name), "for example sm80,sm90,sm100");
    options.build.targets.push_back(fmt::format("sm_{}", *version));
  }
}

void put_explain(Options& options, const Argument& argument) {
  options.report.explain = true;
  options.report.explain_layer = argument.value;
}

void check_integer(Options&, const Argument& argument) { (void)read_integer(argument); }
void put_hardware_level(Options& options, const Argument& argument) {
  if (argument.value != "none" && argument.value != "ampere+" && argument.value != "sameComputeCapability")
    throw Error(
        fmt::format("Unknown hardwareCompatibilityLevel: {}. Valid options: none, ampere+, sameComputeCapability.",
                    argument.value),
        "leave it out");
  if (argument.value != "none") options.build.portable = options.tool.hardware_compatible = true;
}
void put_tuning_search(Options& options, const Argument& argument) {
  options.tool.tuning.search = read_word(argument, "tuning search algorithm", {"fast", "full", "mixed"});
}

void require_safe(Options& options, const Argument& argument) {
  if (options.tool.safe) return;
  if (argument.flag == "--remoteAutoTuningConfig")
    throw Error("Remote auto tuning is not supported in non-safety mode",
                "leave the flag out; tactics are timed on this machine");
  throw Error(fmt::format("{} requires --safe to be enabled.", argument.flag),
              "leave the flag out; the CPU is used without it too");
}

void require_dla(Options& options, const Argument& argument) {
  if (options.tool.dla_core < 0)
    throw Error(fmt::format("{} is not supported without DLA cores.", argument.flag), "leave the flag out");
}

}  // namespace hone::setters
