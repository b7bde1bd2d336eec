// SPDX-License-Identifier: Apache-2.0
//
// From an ONNX model to a Graph. The importer is generic: what an operator means is in its OpDef's OnnxRules. Model-local
// functions are inlined; bodies of If, Loop and Scan become Graphs whose outer values are explicit (see README.md).
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/log.h"
#include "ir/graph.h"

namespace hone {

struct OnnxSummary {
  int64_t ir_version = 0;
  int opset = 0;  // of the default domain
  std::string producer_name, producer_version, domain, doc_string;
  int64_t model_version = 0;
};

/// A node of the model as it stands in the file, functions inlined.
struct OnnxNode {
  std::string name;           // as nodes of the graph carry it in `origin`
  std::string operator_type;  // "Conv", "com.microsoft.Gelu"
  bool in_body = false;       // of an If, Loop or Scan: part of that node
};

struct ImportedModel {
  Graph graph;
  OnnxSummary summary;
  std::vector<OnnxNode> nodes;
  std::vector<std::string> live;    // names of the model's nodes that its outputs depend on
  std::vector<std::string> folded;  // those of them that need no node in the graph
  /// Initialisers that nodes of the model read and no node of the graph does: the import computed with them.
  std::vector<std::string> consumed;
};

/// Protobuf aligns nothing. `aligned`: weights that lie across the alignment of their type are copied. `in_file`: large ones stay where
/// they are, for one who copies them before a node reads them (bodies of If, Loop and Scan read constants of their own).
enum class WeightPlaces : uint8_t { aligned, in_file };

/// Throws Error, naming the node, for a model that is damaged, invalid or uses what neither Hone nor `operators` have.
/// Weights stay in the mapped file.
ImportedModel import_onnx(const std::string& path, const Logger& log, const OperatorList& operators = {});
/// The same from memory. External data are looked up below `directory`; without one they are refused.
ImportedModel import_onnx_bytes(const Blob& bytes, const Logger& log, const std::string& directory = {},
                                const OperatorList& operators = {}, WeightPlaces places = WeightPlaces::aligned);

}  // namespace hone
