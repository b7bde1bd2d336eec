// SPDX-License-Identifier: Apache-2.0
//
// What a user may ask of a build. A plain struct: the rows of options/table.cpp fill it, build() reads it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tensor/scale.h"
#include "tensor/tensor.h"

namespace hone {

struct ShapeRange {
  Dims min, opt, max;
};
/// Shapes of one optimisation profile, by input name.
using ProfileOptions = std::map<std::string, ShapeRange>;

struct IoFormat {
  std::optional<DType> dtype = DType::f32;  // none: the model's
  Layout layout = Layout::linear;
};

struct BuildOptions {
  std::vector<ProfileOptions> profiles;  // empty: one profile, dynamic sizes become 1
  bool fp16 = false, bf16 = false, int8 = false, tf32 = true;
  bool sparse_weights = false;  // zeros among weights of 2:4 structure need not be multiplied
  bool best = false;  // of the types that these allow, those that turn out fastest; build() itself takes them all
  double accuracy_budget = -1;  // of `best`: how far from FP32 results may be, relatively; -1: any distance
  TensorScales scales;  // for int8: what tensors in f32 are quantised with; those that are not named stay as they are
  TensorScales
      other_scales;  // of what formats and result_types ask for in 8 bits, where neither the model nor `scales` has one
  Codes codes = Codes::symmetric;
  std::string calibration_file;  // one of TensorRT's to read scales from; empty: none
  std::vector<std::pair<std::string, std::string>>
      layer_types;  // a node of the model, or a pattern with a '*', and "fp32", "fp16", …; "fp32" keeps it out of what the flags above allow
  std::vector<std::pair<std::string, std::string>>
      required_types;  // the same: what no kernel computes in "fp16" or "bf16" is rounded to it and lies in memory so
  std::vector<std::pair<std::string, std::string>>
      result_types;  // of a layer's results: "fp16" for all, "fp16+fp32" for each; "int8" and "fp8" by the tensor's scale
  int optimization_level = 3;  // 0: the least estimate, no timing; 1-2: heuristics; 3: time all; 4-5: more candidates
  int timing_repeats = 8;      // runs averaged per tactic
  int min_timing = 1;
  int max_tactics = -1;                                  // candidates timed per region; -1: automatic
  int64_t workspace_bytes = -1;                          // cap on scratch memory of one tactic; -1: none
  std::string profiling_verbosity = "layer_names_only";  // or "detailed", "none"
  std::string timing_cache_file;                         // empty: a cache for this build alone
  bool use_timing_cache = true;
  bool error_on_timing_cache_miss = false;
  std::vector<std::string> disabled_sources;  // "onednn", "cpu"
  std::vector<std::string> disabled_passes;
  std::vector<IoFormat> input_formats,
      output_formats;     // one for each tensor or one for all; empty: linear, the model's types
  bool portable = false;  // the plan can choose tactics anew where it does not fit; doubles its size
  bool deterministic = false;
  double budget_seconds = -1;              // of timing; then the rest is chosen by rule; -1: none
  std::function<bool()> stop;              // asked before each layer is timed; true does the same as a spent budget
  std::vector<std::string> debug_tensors;  // stay readable until the inference ends; nothing is fused over them
  bool debug_unfused = false;              // so do all tensors between layers
  bool refit = false;                      // the plan keeps what it takes to be made of other weights
  bool strip_weights = false;  // files of the plan hold no weights; without `refit` they take these back only
  std::vector<std::string> folded_by_import;  // the model's nodes that import needed no node for; kept in the plan
  std::vector<std::string> targets;           // architectures that the plan's own kernels serve besides the device's
  int workers = 0;                            // threads tuned for; 0: the device's default
};

}  // namespace hone
