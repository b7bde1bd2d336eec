// SPDX-License-Identifier: Apache-2.0
//
// A model read as far as it goes: where a node is wrong or unknown, the others are read all the same. What editing tools know of a model's
// types and constants comes from here, and what `hone check lint` finds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "ir/graph.h"
#include "onnx/proto.h"

namespace hone::onnx {

struct Problem {
  std::string node;     // empty: about an input or a weight
  std::string op_type;  // with the domain before it where there is one
  std::string message, hint;
  std::vector<std::string> operands;  // types, "?" where unknown
};

struct SurveyOptions {
  std::string directory;      // of external data
  bool reads_weights = true;  // false: weights whose data cannot be read are no problem
  OperatorList operators = {};
};

struct Survey {
  Graph graph;                                        // without outputs
  std::map<std::string, Value*, std::less<>> values;  // by ONNX's name; of the model's own graph
  std::vector<Problem> problems;
  std::vector<Problem> forbidden;    // of nodes that Hone reads: types that ONNX's definitions do not allow
  std::vector<std::string> skipped;  // nodes that read what a problem left unknown
  std::map<std::string, std::string> parameters;  // of symbols: what the model calls them; "": nothing
};

/// Throws Error only for what is wrong with the model as a whole: no ONNX, a cycle, two producers of one name.
Survey survey_onnx(const Blob& model, const SurveyOptions& options);

}  // namespace hone::onnx
