// SPDX-License-Identifier: Apache-2.0
//
// What a user of trtexec may ask for beyond builder, perf and report options: which files, which shapes, and the requests
// that are echoed and answered by the tool itself. Members that only stand in the echo say so through their flag's row.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "builder/options.h"
#include "options/compat.h"
#include "perf/options.h"
#include "report/options.h"

namespace hone {

using ShapeMap = std::map<std::string, Dims>;
using NamedTexts = std::vector<std::pair<std::string, std::string>>;  // in the order given

/// The shapes of one profile as typed; a missing map was not given at all.
struct ProfileShapes {
  std::optional<ShapeMap> min, opt, max;
};

/// One entry of --inputIOFormats: "fp16:chw+hwc8"; release 11 has no type.
struct IoFormatSpec {
  std::string type;
  std::vector<std::string> formats;
};

/// Limits in MiB as typed (tacticSharedMem in KiB); absent: "default".
struct MemoryPools {
  std::optional<double> workspace, dla_sram, dla_local_dram, dla_global_dram, tactic_shared;
};

/// Inputs and the outputs that they must give; opened by --refPair, or the only one without it.
struct ReferencePair {
  NamedTexts inputs, outputs;  // tensor name, file
};

/// How outputs are held against references.
struct AccuracyOptions {
  std::string algorithm = "l0";  // l0, l1, l2, lInf, cos
  double atol = 1e-5, rtol = 1e-5;
  double threshold = 0;  // a loss of this or more is a failure; 0: not given
};

/// The tuning loop over build routes, and one build along a route.
struct RouteOptions {
  std::string routes, route_file;  // the expression, or the file that holds it
  std::string search = "fast";     // fast, full, mixed
  std::string cache_file = "best_config.json";
  int time_out_s = -1;  // no new route after this time; -1: none
  bool save_all_engines = false, resume = false, dry_run = false, help = false;
  std::string help_knob;
  std::string route, result_file;  // of a child of the loop

  bool is_loop() const { return resume || !routes.empty() || !route_file.empty(); }
};

struct ToolOptions {
  Release release = Release::any;  // --compat

  // Model.
  std::string onnx, uff, caffe_weights, caffe_prototxt;
  std::vector<std::string> outputs, uff_inputs;

  // Files and phases.
  std::string save_engine, load_engine, refit_from;
  bool skip_inference = false;
  bool get_plan_version_only = false;

  // Build requests.
  std::map<int, ProfileShapes> profiles;  // by index of --profile; 0 without it
  ProfileShapes calibration_shapes;
  MemoryPools pools;
  std::optional<int> legacy_workspace_mib;
  int optimization_level = -1;  // as printed; -1: not given
  int max_aux_streams = -1;
  bool fp8 = false, int4 = false, strongly_typed = false;
  std::string precision_constraints = "none";
  NamedTexts layer_precisions, layer_output_types, layer_devices;
  std::string calibration_data, calibration_method = "entropy";
  bool calibration_asymmetric = false;  // codes with zero points
  std::string sparsity = "disable";
  bool strip_all_weights = false;
  bool monitor_memory = false, no_compilation_cache = false;
  bool windows = false;  // --runtimePlatform
  bool version_compatible = false, exclude_lean_runtime = false;
  std::string runtime = "full", lean_dll;
  std::map<std::string, std::string> tempfile_controls{{"in_memory", "allow"}, {"temporary", "allow"}};
  bool safe = false, dla_standalone = false, allow_gpu_fallback = false, direct_io = false, restricted = false;
  bool no_builder_cache = false, heuristic = false;
  NamedTexts tactic_sources, preview_features;  // name, "ON" or "OFF"
  std::vector<IoFormatSpec> input_formats, output_formats;
  std::string old_nvtx_mode;

  // System.
  std::string device = "0";
  std::vector<std::string> replicas;  // further devices, which compute beside it
  int dla_core = -1;
  std::vector<std::string> plugins, dynamic_plugins, plugins_to_serialize;
  bool ignore_parsed_plugin_libs = false, plugins_override = false;

  // Inference.
  ShapeMap shapes;
  NamedTexts shape_arguments;  // flag and value of all shape flags, as typed: errors point into them
  NamedTexts load_inputs;      // tensor name, file
  std::optional<int> batch, max_batch;
  std::optional<int> old_streams;
  int use_profile = 0;
  std::map<int, ReferencePair> reference_pairs;  // by index of --refPair; 0 without it
  NamedTexts reference_outputs;                  // --loadRefOutputs outside of pairs
  AccuracyOptions accuracy;
  std::string allocation_strategy = "static";
  bool allow_weight_streaming = false;
  std::string weight_streaming_budget;
  NamedTexts save_debug_tensors;           // tensor, file
  std::vector<std::string> debug_formats;  // of --saveAllDebugTensors
  bool separate_profile_run = false, time_deserialize = false, time_refit = false;
  float persistent_cache_ratio = 0;
  int calibration_profile = 0;
  bool plugin_instance_norm = false, hardware_compatible = false;
  RouteOptions tuning;
};

/// Everything that one command line says.
struct Options {
  ToolOptions tool;
  BuildOptions build;
  PerfOptions perf;
  ReportOptions report;
  std::vector<std::string> arguments;  // as given: what hone_options_create() takes
  NamedTexts own_flags;                // those of Hone's own that are given, with their values as typed
  std::vector<std::string> warnings;   // of old spellings and values without effect, in the order they arose
};

}  // namespace hone
