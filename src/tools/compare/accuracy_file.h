// SPDX-License-Identifier: Apache-2.0
//
// What a comparison found, kept to be judged again: Polygraphy's form of accuracy results. Beside it stands what it lacks: the curve of
// tolerances that would just pass, from which element-wise verdicts follow, too.
#pragma once

#include <string>
#include <vector>

#include "tensor/json.h"
#include "tools/compare/comparison.h"

namespace hone {

/// All of one metric.
struct KeptComparison {
  std::string metric, aggregation;  // "per_sample" or "average"
  std::vector<RunPair> pairs;
};

std::string accuracy_text(const std::vector<std::string>& metrics, const std::vector<RunPair>& pairs, bool average);
/// Throws StatusError (no_file) for what is no such file. Numbers that the file does not hold are NaN.
std::vector<KeptComparison> read_accuracy(const std::string& path);
/// Whether the JSON holds accuracy results.
bool is_accuracy(const Json& json);
/// Python's JSON has numbers that are none: Infinity, NaN. They become texts.
Json parse_python_json(std::string text, const std::string& path);

}  // namespace hone
