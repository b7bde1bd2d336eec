// SPDX-License-Identifier: Apache-2.0
//
// Flags that exclude or need each other, by theme; the first combination that cannot be ends the parsing.
#include "options/defaults.h"

#include "base/error.h"

namespace hone {
namespace {

void refuse(bool wrong, std::string_view message, std::string_view hint) {
  if (wrong) throw Error(std::string(message), std::string(hint));
}

void check_model(const ToolOptions& tool) {
  refuse(!tool.load_engine.empty() && !tool.save_engine.empty(), "Incompatible load and save engine options selected",
         "give --loadEngine or --saveEngine; a plan is copied with cp");
  refuse(tool.batch || tool.max_batch,
         "The --batch and --maxBatch flags should not be used when the input model is ONNX or when dynamic shapes are "
         "provided. Please use --optShapes and --shapes to set input shapes instead.",
         "for a batch of 4 images: --shapes=input:4x3x224x224");
  refuse(!tool.outputs.empty() && !tool.onnx.empty(),
         "The --output flag should not be used with an ONNX model: its outputs stand in the file",
         "leave --output out");
  refuse(tool.get_plan_version_only && tool.load_engine.empty(), "--getPlanVersionOnly needs a plan",
         "give the plan with --loadEngine=<file>");
}

void check_precision(const Options& options) {
  const ToolOptions& tool = options.tool;
  refuse(tool.fp8 && options.build.int8, "Invalid usage, fp8 and int8 aren't allowed at the same time",
         "leave one of --fp8 and --int8 out");
  refuse(options.build.best && tool.strongly_typed,
         "--best and --stronglyTyped cannot be both set. --best enables implicit precisions, while --stronglyTyped "
         "enforces explicit precisions.",
         "leave one of them out");
  const ProfileShapes& calibration = tool.calibration_shapes;
  const int given = calibration.min.has_value() + calibration.opt.has_value() + calibration.max.has_value();
  refuse(given != 0 && given != 3 && !(given == 1 && calibration.opt),
         "Must specify only --optShapesCalib or all of --minShapesCalib, --optShapesCalib, --maxShapesCalib",
         "give --optShapesCalib alone");
  const int profiles = std::max(1, static_cast<int>(tool.profiles.size()));
  refuse(tool.calibration_profile < 0 || tool.calibration_profile >= profiles,
         "--calibProfile shouldn't greater than the size of optimization profile.", "profiles are counted from 0");
}

void check_runtime(const ToolOptions& tool) {
  refuse(tool.runtime != "full" && tool.load_engine.empty(), "Building a TensorRT engine requires --useRuntime=full.",
         "leave --useRuntime out, or give a plan with --loadEngine");
  refuse(tool.runtime != "full" && tool.time_refit, "--timeRefit requires --useRuntime=full.", "leave one of them out");
  refuse(tool.runtime != "full" &&
             !(tool.plugins.empty() && tool.dynamic_plugins.empty() && tool.plugins_to_serialize.empty()),
         "Plugins require --useRuntime=full.", "leave --useRuntime out: the full runtime is there");
  refuse(tool.plugin_instance_norm && (tool.version_compatible || tool.hardware_compatible),
         "Plugin InstanceNorm cannot be used with version compatible or hardware compatible plans",
         "leave --pluginInstanceNorm out; it has no effect");
  refuse(!tool.weight_streaming_budget.empty() && !tool.allow_weight_streaming,
         "The weight streaming budget can only be set with --allowWeightStreaming", "add --allowWeightStreaming");
  refuse(tool.dla_standalone && tool.allow_gpu_fallback,
         "GPU fallback (--allowGPUFallback) not allowed for DLA standalone mode", "leave one of them out");
  refuse(tool.safe, "Safety is not supported because safety runtime library is not part of Hone",
         "leave --safe out; the normal engine is built then");
}

bool complete(const ReferencePair& pair) { return !pair.inputs.empty() && !pair.outputs.empty(); }

void check_accuracy(const ToolOptions& tool, const Given& given) {
  const bool asked = !tool.reference_outputs.empty() || !tool.reference_pairs.empty();
  refuse(!tool.reference_outputs.empty() && tool.load_inputs.empty(),
         "--loadRefOutputs requires --loadInputs to be specified.",
         "the references belong to certain inputs: give them with --loadInputs=<name>:<file>");
  refuse(tool.reference_pairs.size() == 1, "--refPair must be given at least twice",
         "for a single pair --loadInputs and --loadRefOutputs are enough");
  for (const auto& [index, pair] : tool.reference_pairs)
    refuse(!complete(pair), fmt::format("--refPair={} is not complete", index),
           "put both --loadInputs and --loadRefOutputs right behind it");
  refuse(asked && tool.accuracy.threshold <= 0,
         "--accuracyThreshold (with a positive value) is required with --loadRefOutputs and --refPair",
         "for example --accuracyThreshold=0.01");
  refuse(asked && tool.skip_inference,
         "--loadRefOutputs/--refPair cannot be used with --skipInference: nothing runs that could be compared",
         "leave --skipInference out");
  for (const char* flag : {"--atol", "--rtol"})
    refuse(given(flag) && tool.accuracy.algorithm != "l0",
           fmt::format("{} is only valid for L0 accuracy algorithm.", flag),
           "leave it out, or leave --accuracyAlgorithm out");
}

void check_routes(const ToolOptions& tool) {
  const RouteOptions& tuning = tool.tuning;
  refuse(!tuning.routes.empty() && !tuning.route_file.empty(),
         "Cannot specify both --tuneBuildRoutes and --tuneBuildRouteFile.", "leave one of them out");
  refuse(tuning.save_all_engines && tool.save_engine.empty(), "--saveAllEngines requires --saveEngine to be specified.",
         "add --saveEngine=<file>");
  refuse(tuning.dry_run && tuning.search == "mixed", "--dryRun cannot be used with --tuningSearch=mixed",
         "its second half depends on what the first measures; leave one of them out");
  refuse(tuning.dry_run && !tuning.is_loop(), "--dryRun needs routes", "give them with --tuneBuildRoutes");
  refuse(tuning.is_loop() && (tool.onnx.empty() || tool.skip_inference),
         "--tuneBuildRoutes builds and measures: it takes a model and no --skipInference",
         "give the model with --onnx=<file>");
}

}  // namespace

void refuse_combinations(const Options& options, const Given& given) {
  check_model(options.tool);
  check_precision(options);
  check_runtime(options.tool);
  check_accuracy(options.tool, given);
  check_routes(options.tool);
  refuse(options.perf.average_runs < 1, "--avgRuns must be at least 1", "the default is 10");
  refuse(options.perf.streams < 1, "--infStreams must be at least 1", "the default is 1");
}

}  // namespace hone
