// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a model, all of it: the importer goes on behind a node that it refuses. What such a node would have made stands in
// as an input of the type that the file gives for it; nodes that read a result of unknown type are not judged by more than their
// operator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/log.h"
#include "ir/graph.h"

namespace hone {

/// Of what kind an entry of a diagnosis is.
enum class ProblemKind : uint8_t {
  file,              // it is no ONNX model, or damaged
  graph,             // a tensor that nothing makes, two of one name, a cycle, a body that does not fit its node
  unknown_operator,  // neither Hone, nor the program, nor a function of the model has it
  version,           // the operator, or the model, is of a version that is not read
  operand,           // of a node: missing, or of a shape that does not fit
  attribute,         // of a node: missing, unknown, or of a value that is not supported
  type,              // an element type that is not supported where it stands
  weight,            // a constant whose data cannot be read
  not_judged,        // the node reads what a refused node makes, or what could not be read
  name               // two nodes of one name
};

struct Diagnostic {
  Severity severity = Severity::error;
  ProblemKind problem = ProblemKind::graph;
  int64_t node = -1;  // of the model's own nodes in the file's order; -1: it is about none
  std::string name;   // of the node: of that in a body or a function where it is one
  std::string operator_type, domain;
  std::string text, hint;
  std::vector<std::string> operands = {};  // of a node: types, "?" where they are not known
};

struct Diagnosis {
  struct Node {
    std::string name, operator_type, domain;
    bool supported = false;
  };
  std::vector<Node> nodes;  // the model's own, in the file's order
  std::vector<Diagnostic> entries;
  /// Supported nodes that follow each other where producers come first.
  std::vector<std::vector<size_t>> runs;
};

/// Throws Error for a file that cannot be opened; what is wrong inside is in the result.
Diagnosis diagnose_onnx(const std::string& path, const OperatorList& operators = {});
Diagnosis diagnose_onnx_bytes(const Blob& bytes, const std::string& directory = {}, const OperatorList& operators = {});

}  // namespace hone
