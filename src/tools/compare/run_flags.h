// SPDX-License-Identifier: Apache-2.0
//
// The flags of `hone run` as a comparison, and what they ask for. The engine's flags serve `convert` and `debug`, too.
#pragma once

#include <string>
#include <vector>

#include "tools/companion/arguments.h"
#include "tools/companion/narrator.h"
#include "tools/compare/comparison.h"
#include "tools/compare/inputs.h"
#include "tools/compare/runner.h"

namespace hone {

const CompanionCommand& comparison_command();
/// How engines are built: precisions, profiles, caches, tactics; and those of a model's file.
std::vector<CompanionFlag> engine_flags();
std::vector<CompanionFlag> model_flags();
std::vector<CompanionFlag> data_flags();

/// Whether the words ask for a comparison, rather than for one inference: a flag that only the former has.
bool asks_for_comparison(std::span<const std::string> words);

/// Words that older versions took in another form: "--onnx-outputs mark all" and the like are understood where they are read.
OutputMarks output_marks(const Arguments& arguments);
InputRequest input_request(const Arguments& arguments);
/// Warns of flags that have no effect here.
EngineRequest engine_request(const Arguments& arguments, const Narrator& narrator);
OnnxRuntimeRequest onnxruntime_request(const Arguments& arguments);
/// Metrics, tolerances and thresholds alone.
CompareRequest comparison_request_of_flags(const Arguments& arguments);
ComparisonRequest comparison_request(const Arguments& arguments, const std::vector<std::string>& precisions,
                                     const Narrator& narrator);
/// "y:top-5,axis=1" words of --postprocess.
struct TopPlaces {
  std::string output;  // "": of all
  int64_t count = 1, axis = -1;
};
std::vector<TopPlaces> postprocess_request(const Arguments& arguments);
/// What it was given with --onnx-outputs and the like, read and marked.
ModelFace face_of(const Arguments& arguments, const std::string& path, const Narrator& narrator);
/// A GPU where there is one, else the processor.
std::string best_device();

}  // namespace hone
