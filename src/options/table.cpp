// SPDX-License-Identifier: Apache-2.0
//
// The one table of trtexec's flags: the union of all releases from 7.0 to 11.1, and Hone's own. A row says what a flag is
// called, takes and means, and where its value goes; a row with `instead` is recognised and answered with that sentence.
#include <algorithm>
#include <array>

#include "options/setters.h"
#include "options/values.h"

namespace hone {
namespace {

using namespace setters;  // NOLINT: the rows are made of them
using enum FlagGroup;
using T = ToolOptions;
using B = BuildOptions;
using P = PerfOptions;
using R = ReportOptions;

constexpr std::string_view kRetired = "the format is retired; convert the model to ONNX and use --onnx";
constexpr std::string_view kNoDla = "there is no DLA; everything runs on the selected device";
constexpr std::string_view kNoCalibration = "calibration runs at the shapes of its samples";
constexpr std::string_view kNoLibraries =
    "plans hold no machine code; the library has to be named again where the plan is loaded";
constexpr std::string_view kNoSafety = "there is no safety runtime; the flag has no effect";
constexpr std::string_view kIsDefault = "this is how it works anyway";
constexpr std::string_view kOneStream = "the steps of one inference run one after the other, each on all workers";

constexpr Flag own(Flag flag) {
  flag.own = true;
  return flag;
}

constexpr Flag kTable[] = {
    // Model.
    {"--onnx", "", "<file>", model, "the ONNX model to build an engine from", put<&T::onnx>},
    {"--uff", "", "<file>", model, "a UFF model (retired format)", put<&T::uff>},
    {"--model", "", "<file>", model, "Caffe weights (retired format)", put<&T::caffe_weights>},
    {"--deploy", "", "<file>", model, "a Caffe prototxt (retired format)", put<&T::caffe_prototxt>},
    {"--output",
     "",
     "<name>[,<name>]",
     model,
     "outputs of a UFF or Caffe model; not used with ONNX",
     put<&T::outputs>,
     {},
     true},
    {"--uffInput", "", "<name>,X,Y,Z", model, "input of a UFF model (retired format)", put_uff_input, kRetired, true},
    {"--uffNHWC", "", "", model, "UFF inputs are channels-last (retired format)", nullptr, kRetired},

    // Build: shapes and formats.
    {"--minShapes", "", "<shapes>", build, "smallest input shapes of the profile, name:1x3x224x224[,...]",
     put_profile_shape},
    {"--optShapes", "", "<shapes>", build, "input shapes that kernels are tuned for; also what is measured by default",
     put_profile_shape},
    {"--maxShapes", "", "<shapes>", build, "largest input shapes of the profile; they size the activation memory",
     put_profile_shape},
    {"--profile", "", "<N>", build, "opens profile N; the shape flags right behind it belong to it", nullptr, {}, true},
    {"--minShapesCalib", "", "<shapes>", build, "smallest shapes for calibration", put_calibration_shape,
     kNoCalibration},
    {"--optShapesCalib", "", "<shapes>", build, "shapes for calibration", put_calibration_shape, kNoCalibration},
    {"--maxShapesCalib", "", "<shapes>", build, "largest shapes for calibration", put_calibration_shape,
     kNoCalibration},
    {"--calibProfile", "", "<N>", build, "profile whose shapes the calibration uses", put<&T::calibration_profile>,
     kNoCalibration},
    {"--inputIOFormats", "", "<spec>", build,
     "type and layout of each input, fp32:chw[+hwc][,...]; one entry serves all", put_formats<&T::input_formats>},
    {"--outputIOFormats", "", "<spec>", build, "type and layout of each output, as --inputIOFormats",
     put_formats<&T::output_formats>},
    {"--directIO", "", "", build, "no layout changes at the network's boundary", put<&T::direct_io>,
     "layout changes at the boundary are made where the kernels need them"},
    {"--explicitBatch", "", "", build, "batch is an ordinary dimension (always so)", nullptr,
     "it has been deprecated and has no effect; batch is always explicit"},
    {"--maxBatch", "", "<N>", build, "largest implicit batch; not used with ONNX", put<&T::max_batch>},

    // Build: memory, timing, effort.
    {"--memPoolSize", "", "<pools>", build,
     "limit per memory pool, workspace:1024MiB[,...]; units B, K, M (default), G", put_pools},
    {"--workspace", "", "<MiB>", build, "old spelling of --memPoolSize=workspace:<MiB>", put<&T::legacy_workspace_mib>,
     "--workspace flag has been deprecated by --memPoolSize flag."},
    {"--minTiming", "", "<N>", build, "fewest timing runs per tactic", put<&B::min_timing>},
    {"--avgTiming", "", "<N>", build, "timing runs averaged per tactic", put<&B::timing_repeats>},
    {"--builderOptimizationLevel", "", "<0-5>", build,
     "effort of the build: 0 takes what works, 3 times every kernel, 5 times more variants", put_optimization_level},
    own({"--buildBudget", "", "<s>", build, "seconds of timing; what is left by then is chosen by rule",
         put<&B::budget_seconds>}),
    {"--maxTactics", "", "<N>", build, "most tactics timed per layer; -1 chooses", put<&B::max_tactics>},
    {"--heuristic", "", "", build, "choose tactics by rule instead of timing", put<&T::heuristic>,
     "--heuristic flag has been deprecated; it acts as --builderOptimizationLevel=2"},
    {"--tilingOptimizationLevel", "", "<0-3>", build, "effort spent on tiling across layers", check_integer,
     "layers are not tiled across each other"},
    {"--l2LimitForTiling", "", "<bytes>", build, "cache budget of that tiling", check_integer,
     "layers are not tiled across each other"},
    {"--maxAuxStreams", "", "<N>", build, "auxiliary streams for independent branches", put<&T::max_aux_streams>,
     kOneStream},
    {"--noBuilderCache", "", "", build, "neither use nor keep measured times", put<&T::no_builder_cache>},
    {"--timingCacheFile", "", "<file>", build, "file of measured times: read before the build, merged after it",
     put<&B::timing_cache_file>},
    {"--errorOnTimingCacheMiss", "", "", build, "fail when a time is not in the cache",
     put<&B::error_on_timing_cache_miss>},
    {"--noCompilationCache", "", "", build, "keep compiled kernels out of the timing cache",
     put<&T::no_compilation_cache>, "the timing cache holds times only"},
    {"--monitorMemory", "", "", build, "report memory behind every phase", put<&T::monitor_memory>},
    {"--profilingVerbosity", "", "<mode>", build,
     "what the engine keeps about its layers: layer_names_only, detailed or none", put_verbosity},
    {"--nvtxMode", "", "<mode>", build, "old spelling of --profilingVerbosity", put_nvtx_mode,
     "--nvtxMode flag has been deprecated by --profilingVerbosity flag."},
    {"--tacticSources", "", "<+/-names>", build,
     "kernel libraries to use or leave out; CUDNN and CUBLAS stand for oneDNN on the CPU", put_tactic_sources},
    {"--preview", "", "<+/-features>", build, "preview features", put_preview, "the features are known by name only"},

    // Build: precision.
    {"--fp16", "", "", build, "allow half-precision kernels", put<&B::fp16>},
    {"--bf16", "", "", build, "allow bfloat16 kernels", put<&B::bf16>},
    {"--int8", "", "", build, "allow INT8 kernels; a network in f32 is quantised (--calib, --calibData)",
     put<&B::int8>},
    {"--fp8", "", "", build, "allow FP8: tensors that the model has in float8 stay so; no others are rounded to it",
     put<&T::fp8>},
    {"--int4", "", "", build,
     "allow INT4: weights that the model has in 4 bits stay so; others are not rounded, which `hone quantize --mode "
     "int4` "
     "does",
     put<&T::int4>},
    {"--best", "", "", build, "allow every precision there is", put<&B::best>},
    own({"--accuracyBudget", "", "<x>", build, "of --best: the largest relative error of the outputs against FP32",
         put_accuracy_budget}),
    {"--noTF32", "", "", build, "no TF32 in f32 matmuls", clear<&B::tf32>},
    {"--stronglyTyped", "", "", build, "types come from the model alone", put<&T::strongly_typed>},
    {"--precisionConstraints", "", "<mode>", build,
     "whether the layer flags are ignored (none), compulsory (obey) or wished for (prefer)", put_precision_constraints},
    {"--layerPrecisions", "", "<spec>", build,
     "precision per layer, name:fp16[,...]; one '*' in a name stands for any text. With obey operands and results are "
     "rounded to it where no kernel computes in it",
     put_layer_precisions},
    own({"--precisionFile", "", "<file>", build, "types of layers that bind, a line each: layer:fp32",
         put_precision_file}),
    {"--layerOutputTypes", "", "<spec>", build,
     "output types per layer, name:fp16+fp32[,...]; int8 and fp8 by the tensor's scale", put_layer_output_types},
    {"--calib", "", "<file>", build, "INT8 calibration cache: read, or with --calibData written",
     put<&B::calibration_file>},
    own({"--calibData", "", "<file>", build, "samples to calibrate INT8 on: an .npz archive or a folder of them",
         put<&T::calibration_data>}),
    own({"--calibMethod", "", "<m>", build, "what is clipped: entropy, minmax, percentile[=99.99] or mse",
         put<&T::calibration_method>}),
    own({"--calibAsymmetric", "", "", build, "calibrate INT8 to unsigned codes with zero points: finer steps",
         put<&T::calibration_asymmetric>}),
    {"--explicitPrecision", "", "", build, "historic", nullptr, "it has been deprecated and has no effect"},
    {"--sparsity", "", "<mode>", build,
     "2:4 structure of weights: disable, enable (kernels may leave its zeros out; not with --refit) or force (weights "
     "are pruned to it)",
     put_sparsity},
    {"--distributiveIndependence", "", "", build, "results do not depend on how work is split", put<&B::deterministic>},
    {"--decomposableAttentions", "", "<names>", build, "attentions that may be split into simple operators", nullptr,
     "the builder measures both forms and takes the faster"},

    // Build: weights.
    {"--refit", "", "", build, "keep what it takes to replace the weights", put<&B::refit>},
    {"--stripWeights", "", "", build, "plan file without weights; it takes its own back, with --refit any others",
     put<&B::strip_weights>},
    {"--stripAllWeights", "", "", build, "--refit and --stripWeights", put<&T::strip_all_weights>},
    {"--weightless", "", "", build, "old spelling of --stripWeights", put<&B::strip_weights>,
     "--weightless flag has been deprecated by --stripWeights flag."},
    {"--refitFromOnnx", "", "<file>", build, "with --refit: replace the weights by those of this model",
     put<&T::refit_from>},
    {"--allowWeightStreaming", "", "", build, "weights may stay on the host", put<&T::allow_weight_streaming>,
     "all weights are kept where they are used"},

    // Build: compatibility.
    {"--versionCompatible", "--vc", "", build,
     "a plan that other releases and machines can tune again; about twice as large", put<&T::version_compatible>},
    {"--pluginInstanceNorm", "--pi", "", build, "InstanceNormalization as a plugin", put<&T::plugin_instance_norm>,
     "InstanceNormalization is built in"},
    {"--nativeInstanceNorm", "--ni", "", build, "InstanceNormalization built in", nullptr, kIsDefault},
    {"--enablePluginOverride", "", "", build, "operators of plugin libraries take the place of Hone's own",
     put<&T::plugins_override>},
    {"--useRuntime", "", "<name>", build, "full, lean or dispatch", put_runtime},
    {"--leanDLLPath", "", "<file>", build, "lean runtime library", put<&T::lean_dll>,
     "the runtime is part of the program"},
    {"--excludeLeanRuntime", "", "", build, "plan without lean runtime", put<&T::exclude_lean_runtime>,
     "plans never contain a runtime"},
    {"--hardwareCompatibilityLevel", "", "<mode>", build,
     "none, ampere+ or sameComputeCapability; all but none: a plan that other machines can tune again",
     put_hardware_level},
    own({"--targets", "", "<archs>", build,
         "further GPUs, as sm80,sm90,sm100, that the kernels of a plan built on a GPU serve", put_targets}),
    {"--runtimePlatform", "", "<name>", build, "SameAsBuild or WindowsAMD64", put_runtime_platform},
    {"--tempdir", "", "<dir>", build, "folder for temporary files", nullptr, "no temporary files are written"},
    {"--tempfileControls", "", "<spec>", build, "in_memory:allow|deny,temporary:allow|deny", put_tempfile_controls},
    {"--cpuOnly", "", "", build, "safe build on a host without GPU", require_safe, kNoSafety},
    {"--remoteAutoTuningConfig", "", "<url>", build, "time tactics on another machine", require_safe, kNoSafety},

    // Build: files and debug tensors.
    {"--saveEngine", "", "<file>", build, "write the plan", put<&T::save_engine>},
    {"--loadEngine", "", "<file>", build, "read a plan instead of building", put<&T::load_engine>},
    {"--asyncFileReader", "", "", build, "read the plan asynchronously", nullptr, "plans are mapped into memory"},
    {"--getPlanVersionOnly", "", "", build, "with --loadEngine: print which version wrote the plan, and stop",
     put<&T::get_plan_version_only>},
    {"--skipInference", "", "", build, "stop after the build", put<&T::skip_inference>},
    {"--buildOnly", "", "", build, "old spelling of --skipInference", put<&T::skip_inference>,
     "--buildOnly flag has been deprecated by --skipInference flag."},
    {"--markDebug", "", "<tensors>", build, "tensors that stay observable: nothing is fused over them",
     put_debug_tensors},
    {"--markUnfusedTensorsAsDebugTensors", "", "", build, "every tensor that survives fusion is a debug tensor",
     put<&B::debug_unfused>},

    // Build: safety and DLA.
    {"--safe", "", "", build, "safety-certified engine", put<&T::safe>},
    {"--consistency", "", "", build, "check a safe engine", nullptr, "every plan is verified when it is loaded"},
    {"--restricted", "", "", build, "check the safety scope", put<&T::restricted>, kNoSafety},
    {"--dumpKernelText", "", "", build, "write the text of kernels", require_safe, kNoSafety},
    {"--safetyPlugins", "", "<lib[names]>", build, "safety plugin libraries", nullptr, kNoSafety, true},
    {"--buildDLAStandalone", "", "", build, "loadable for DLA alone", put<&T::dla_standalone>, kNoDla},
    {"--allowGPUFallback", "", "", build, "layers that DLA cannot run go to the device", put<&T::allow_gpu_fallback>},
    {"--layerDeviceTypes", "", "<spec>", build, "device per layer, name:GPU[,...]", put_layer_devices,
     "all layers run on the selected device"},
    {"--uint8AsymmetricQuantizationDLA", "", "", build, "UINT8 zero points for DLA", require_dla, kNoDla},
    {"--reportCapabilityDLA", "", "", build, "check every node for DLA", require_dla, kNoDla},
    {"--adjustForDLA", "", "", build, "rewrite layers for DLA", nullptr, kNoDla},

    // System.
    {"--compat", "", "<release>", system,
     "follow release 8.6, 10 or 11 where they disagree; without it 8.6, and the flags of all", put_compat},
    {"--device", "", "<N>", system,
     "device to use; 0 is the CPU where there is no GPU; several (0,1) run the engine beside each other", put_device},
    {"--useDLACore", "", "<N>", system, "DLA core to use", put<&T::dla_core>, kNoDla},
    {"--staticPlugins",
     "",
     "<lib>",
     system,
     "library of operators (operators.h, hone_library_operators)",
     put<&T::plugins>,
     {},
     true},
    {"--plugins", "", "<lib>", system, "old spelling of --staticPlugins", put<&T::plugins>,
     "--plugins flag has been deprecated, use --staticPlugins flag instead.", true},
    {"--dynamicPlugins", "", "<lib>", system, "the same as --staticPlugins", put<&T::dynamic_plugins>, {}, true},
    {"--setPluginsToSerialize", "", "<lib>", system,
     "the same; name, version and hash of what a plan uses are in it anyway", put<&T::plugins_to_serialize>,
     kNoLibraries, true},
    {"--ignoreParsedPluginLibs", "", "", system, "do not store plugin libraries", put<&T::ignore_parsed_plugin_libs>,
     "plans hold no libraries anyway"},

    // Inference.
    {"--batch", "", "<N>", inference, "implicit batch; not used with ONNX", put<&T::batch>},
    {"--shapes", "", "<shapes>", inference, "input shapes to run with, name:4x3x224x224[,...]", put<&T::shapes>},
    {"--loadInputs", "", "<files>", inference,
     "input values, name:file[,...]: raw, .npy, or .npz by the input's name; other inputs get random values",
     put<&T::load_inputs>},
    {"--iterations", "", "<N>", inference, "at least N measured iterations", put<&P::iterations>},
    {"--warmUp", "", "<ms>", inference, "at least this long before measuring", put<&P::warm_up_ms>},
    {"--duration", "", "<s>", inference, "measure at least this long; -1 never ends", put<&P::duration_s>},
    {"--sleepTime", "", "<ms>", inference, "wait before the first inference", put<&P::sleep_ms>},
    {"--idleTime", "", "<ms>", inference, "wait after every iteration", put<&P::idle_ms>},
    {"--infStreams", "", "<N>", inference,
     "inferences in flight, each with its own memory; on a CPU also with its share of the cores, in a thread of its "
     "own",
     put<&P::streams>},
    {"--streams", "", "<N>", inference, "old spelling of --infStreams", put<&T::old_streams>,
     "--streams flag has been deprecated, use --infStreams flag instead."},
    {"--exposeDMA", "", "", inference, "no overlap of transfers and compute", put<&P::expose_dma>},
    {"--noDataTransfers", "", "", inference, "no copies of inputs and outputs per inference",
     clear<&P::data_transfers>},
    {"--includeDataTransfers", "", "", inference, "copy inputs and outputs per inference", put<&P::data_transfers>},
    {"--useManagedMemory", "", "", inference, "unified memory for inputs and outputs", nullptr,
     "inputs and outputs have memory of their own; --noDataTransfers binds host memory directly"},
    {"--useSpinWait", "", "", inference, "wait by spinning", put<&P::spin_wait>},
    {"--noSpinWait", "", "", inference, "wait without spinning", clear<&P::spin_wait>},
    {"--threads", "", "", inference, "one host thread per inference stream", put<&P::threads>},
    {"--useCudaGraph", "", "", inference, "replay a recorded list of launches", put<&P::use_graph>},
    {"--noCudaGraph", "", "", inference, "no recorded launches", clear<&P::use_graph>},
    {"--separateProfileRun", "", "", inference, "measure first, profile in a second run",
     put<&T::separate_profile_run>},
    {"--timeDeserialize", "", "", inference, "measure how long loading the plan takes, and stop",
     put<&T::time_deserialize>},
    {"--timeRefit", "", "", inference, "with --refit: measure refitting", put<&T::time_refit>},
    {"--persistentCacheRatio", "", "<0-1>", inference, "share of the cache that persists",
     put<&T::persistent_cache_ratio>},
    {"--useProfile", "", "<N>", inference, "profile to run with", put<&T::use_profile>},
    {"--allocationStrategy", "", "<mode>", inference, "what activation memory is sized for: static, profile or runtime",
     put_allocation},
    {"--weightStreamingBudget", "", "<budget>", inference, "device memory for weights", put_weight_budget,
     "all weights are kept where they are used"},
    {"--saveDebugTensors", "", "<files>", inference, "write debug tensors to raw files, name:file[,...]",
     put<&T::save_debug_tensors>},
    {"--saveAllDebugTensors", "", "<formats>", inference,
     "write every debug tensor: summary (tensor_summary.json), numpy, string, raw", put_debug_formats},
    {"--loadRefOutputs", "", "<files>", inference,
     "raw reference values per output, name:file[,...]; outputs are held against them", put<&T::reference_outputs>},
    {"--refPair",
     "",
     "<N>",
     inference,
     "opens pair N; --loadInputs and --loadRefOutputs right behind it belong to it",
     nullptr,
     {},
     true},
    {"--accuracyAlgorithm", "", "<name>", inference,
     "loss: l0 (share of elements out of tolerance), l1, l2, lInf or cos", put_accuracy_algorithm},
    {"--atol", "", "<x>", inference, "absolute tolerance of l0", put_tolerance},
    {"--rtol", "", "<x>", inference, "relative tolerance of l0", put_tolerance},
    {"--accuracyThreshold", "", "<x>", inference, "a loss of this or more is a failure", put_tolerance},

    // Tuning.
    {"--tuneBuildRoutes", "", "<expr>", tuning,
     "build and measure along several routes, \"-knob=[value|value] ...\", and keep the best engine", put_routes},
    {"--tuneBuildRouteFile", "", "<file>", tuning, "the same from a file, a knob per line", put_routes},
    {"--tuningSearch", "", "<mode>", tuning,
     "fast: one change at a time; full: every combination; mixed: fast, then full over the knobs that helped",
     put_tuning_search},
    {"--tuningCacheFile", "", "<file>", tuning, "results of the routes as JSON lines (best_config.json)", put_routes},
    {"--tuningTimeOut", "", "<s>", tuning, "no new route after this time", put_routes},
    {"--saveAllEngines", "", "", tuning, "keep the engine of every route, as <engine>.iter<N>", put_routes},
    {"--dryRun", "", "", tuning, "print the routes only", put_routes},
    {"--continue", "", "", tuning, "go on with the routes that --tuningCacheFile has no results of", put_routes},
    {"--helpBuildRoute", "", "[<knob>]", tuning, "print the knobs of routes as JSON, and stop", put_routes},
    {"--setBuildRoute", "", "<route>", tuning, "build along this route, \"-knob=value ...\"", put_routes},
    {"--tuningResultFile", "", "<file>", tuning, "write the mean time and the accuracy of the run as JSON", put_routes},

    // Reporting.
    {"--verbose", "", "", reporting, "print everything there is to say", put<&R::verbose>},
    {"--avgRuns", "", "<N>", reporting, "queries per line of trace averages", put<&P::average_runs>},
    {"--percentile", "", "<P>[,<P>]", reporting, "percentiles of the summary", put<&P::percentiles>},
    {"--dumpRefit", "", "", reporting, "with --refit: list replaceable weights", put<&R::dump_refit>},
    {"--dumpOutput", "", "", reporting, "print the outputs of the last inference", put<&R::dump_output>},
    {"--dumpRawBindingsToFile", "", "", reporting, "write inputs and outputs to raw files here",
     put<&R::dump_raw_bindings>},
    {"--dumpProfile", "", "", reporting, "print the time of every layer", put<&R::dump_profile>},
    {"--dumpLayerInfo", "", "", reporting, "print what the engine's layers are", put<&R::dump_layer_info>},
    {"--dumpOptimizationProfile", "", "", reporting, "print the shape ranges of the engine",
     put<&R::dump_optimization_profile>},
    {"--exportTimes", "", "<file>", reporting, "write the times of all queries as JSON", put<&R::export_times>},
    {"--exportOutput", "", "<file>", reporting, "write the outputs of the last inference as JSON",
     put<&R::export_output>},
    {"--exportProfile", "", "<file>", reporting, "write the time of every layer as JSON", put<&R::export_profile>},
    {"--exportLayerInfo", "", "<file>", reporting, "write what the engine's layers are as JSON",
     put<&R::export_layer_info>},
    own({"--exportMachine", "", "<file>", reporting,
         "write the machine's state before and after the run, and how steady it was, as JSON",
         put<&R::export_machine>}),
    own({"--trace", "", "<file>", reporting,
         "write queries, copies, layers and workers as a time line for Perfetto (JSON); runs of their own",
         put<&R::trace>}),
    own({"--perfMap", "", "", reporting, "name generated code after its layer for Linux's perf, in /tmp/perf-PID.map",
         put<&R::perf_map>}),
    own({"--jitDump", "", "<folder>", reporting,
         "write generated code to jit-PID.dump in this folder, for perf record -k 1 and perf inject --jit",
         put<&R::jit_dump>}),
    own({"--explain", "", "[<layer>]", reporting,
         "print every candidate of every layer (or of one), its time or why it was refused", put_explain}),

    {"--help", "-h", "", help, "print this text", nullptr},
};

constexpr LookAlike kLookAlikes[] = {
    {"--layerPrecision", "did you mean --layerPrecisions?"},
    {"--noDataTransfer", "did you mean --noDataTransfers?"},
    {"--serialized", "it belongs to a builder of safe engines; a plan is written with --saveEngine"},
    {"--std", "it belongs to a builder of safe engines; trtexec builds standard engines anyway"},
    {"--trt", "it belongs to polygraphy; trtexec runs a plan with --loadEngine"},
    {"-v", "did you mean --verbose?"},
};

}  // namespace

std::span<const Flag> flag_table() { return kTable; }
std::span<const LookAlike> look_alikes() { return kLookAlikes; }

const Flag* find_flag(std::string_view name) {
  const auto row = std::ranges::find_if(
      kTable, [&](const Flag& flag) { return flag.name == name || (!flag.alias.empty() && flag.alias == name); });
  return row == std::end(kTable) ? nullptr : row;
}

}  // namespace hone
