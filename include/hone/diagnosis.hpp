// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a model, beside hone.hpp:
//
//   const hone::Diagnosis diagnosis = hone::Diagnosis::of_file("model.onnx");
//   for (const hone::Diagnostic& entry : diagnosis.entries()) std::puts(entry.text.c_str());
//   for (const std::vector<size_t>& run : diagnosis.runs()) ...   // supported nodes that follow each other
#pragma once

#include "hone/hone.hpp"

namespace hone {

/// hone_diagnostic with texts of its own.
struct Diagnostic {
  hone_severity severity = HONE_LOG_ERROR;
  hone_problem problem = HONE_PROBLEM_GRAPH;
  int64_t node = -1;
  std::string name, op, domain, text, hint;
};

/// hone_diagnosed_node with texts of its own.
struct DiagnosedNode {
  std::string name, op, domain;
  bool supported = false;
};

class Diagnosis : public detail::Object<hone_diagnosis> {
 public:
  static Diagnosis of_file(const std::string& onnx_path) {
    return Diagnosis(hone_diagnosis_create_from_file, onnx_path.c_str());
  }
  /// External data lie in `folder`.
  static Diagnosis of_memory(std::span<const std::byte> bytes, const std::string& folder = {}) {
    return Diagnosis(hone_diagnosis_create_from_memory, static_cast<const void*>(bytes.data()), bytes.size(),
                     folder.empty() ? nullptr : folder.c_str());
  }
  static Diagnosis of_network(const hone_network* network) {
    return Diagnosis(hone_diagnosis_create_from_network, network);
  }
  std::vector<Diagnostic> entries() const {
    std::vector<Diagnostic> result;
    for (size_t i = 0; i < hone_diagnosis_entries(get()); ++i) {
      auto raw = detail::sized<hone_diagnostic>();
      check(hone_diagnosis_entry(get(), i, &raw));
      result.push_back({raw.severity, raw.problem, raw.node, raw.name, raw.op, raw.domain, raw.text, raw.hint});
    }
    return result;
  }
  std::vector<DiagnosedNode> nodes() const {
    std::vector<DiagnosedNode> result;
    for (size_t i = 0; i < hone_diagnosis_nodes(get()); ++i) {
      auto raw = detail::sized<hone_diagnosed_node>();
      check(hone_diagnosis_node(get(), i, &raw));
      result.push_back({raw.name, raw.op, raw.domain, raw.supported != 0});
    }
    return result;
  }
  /// Indices of nodes.
  std::vector<std::vector<size_t>> runs() const {
    std::vector<std::vector<size_t>> result;
    for (size_t i = 0; i < hone_diagnosis_runs(get()); ++i) {
      const size_t* nodes = nullptr;
      size_t count = 0;
      check(hone_diagnosis_run(get(), i, &nodes, &count));
      result.emplace_back(nodes, nodes + count);
    }
    return result;
  }

 private:
  using Object::Object;
};

}  // namespace hone
