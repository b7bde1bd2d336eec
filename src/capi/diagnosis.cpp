// SPDX-License-Identifier: Apache-2.0
//
// The C interface's diagnoses of models.
#include "onnx/diagnosis/diagnosis.h"

#include "capi/build_handles.h"
#include "capi/guard.h"
#include "capi/network.h"
#include "capi/operators/operators.h"

using hone::capi::guarded;
using hone::capi::require;
using hone::capi::require_index;

struct hone_diagnosis : hone::capi::Handle<hone::capi::Kind::diagnosis> {
  hone_diagnosis(hone::Diagnosis made) : found(std::move(made)) {}
  hone::Diagnosis found;
};

namespace {

hone_severity severity_of(hone::Severity severity) {
  switch (severity) {
    case hone::Severity::internal_error:
    case hone::Severity::error: return HONE_LOG_ERROR;
    case hone::Severity::warning: return HONE_LOG_WARNING;
    case hone::Severity::info:
    case hone::Severity::verbose: break;
  }
  return HONE_LOG_INFO;
}

size_t count_of(const hone_diagnosis* diagnosis, size_t (*count)(const hone::Diagnosis&)) {
  size_t result = 0;
  guarded([&] {
    require(diagnosis, "diagnosis");
    result = count(diagnosis->found);
  });
  return result;
}

}  // namespace

hone_status hone_diagnosis_create_from_file(const char* onnx_path, hone_diagnosis** diagnosis) {
  return guarded([&] {
    require(onnx_path, "onnx_path");
    require(diagnosis, "diagnosis");
    *diagnosis = new hone_diagnosis(hone::diagnose_onnx(onnx_path, hone::capi::program_operators()));
  });
}

hone_status hone_diagnosis_create_from_memory(const void* bytes, size_t size, const char* folder,
                                              hone_diagnosis** diagnosis) {
  return guarded([&] {
    require(bytes, "bytes");
    require(diagnosis, "diagnosis");
    const hone::Blob copy = hone::Blob::copy(std::span(static_cast<const std::byte*>(bytes), size));
    *diagnosis = new hone_diagnosis(
        hone::diagnose_onnx_bytes(copy, folder == nullptr ? "" : folder, hone::capi::program_operators()));
  });
}

hone_status hone_diagnosis_create_from_network(const hone_network* network, hone_diagnosis** diagnosis) {
  return guarded([&] {
    require(network, "network");
    require(diagnosis, "diagnosis");
    *diagnosis = new hone_diagnosis(hone::diagnose_onnx_bytes(hone::Blob::copy(hone::capi::file_of(*network)), {},
                                                              hone::capi::program_operators()));
  });
}

size_t hone_diagnosis_entries(const hone_diagnosis* diagnosis) {
  return count_of(diagnosis, [](const hone::Diagnosis& found) { return found.entries.size(); });
}

hone_status hone_diagnosis_entry(const hone_diagnosis* diagnosis, size_t index, hone_diagnostic* entry) {
  return guarded([&] {
    require(diagnosis, "diagnosis");
    require_index(index, diagnosis->found.entries.size(), "entry");
    const hone::Diagnostic& found = diagnosis->found.entries[index];
    hone::capi::fill(entry, "entry",
                     hone_diagnostic{.severity = severity_of(found.severity),
                                     .problem = static_cast<hone_problem>(found.problem),
                                     .node = found.node,
                                     .name = found.name.c_str(),
                                     .op = found.operator_type.c_str(),
                                     .domain = found.domain.c_str(),
                                     .text = found.text.c_str(),
                                     .hint = found.hint.c_str()});
  });
}

size_t hone_diagnosis_nodes(const hone_diagnosis* diagnosis) {
  return count_of(diagnosis, [](const hone::Diagnosis& found) { return found.nodes.size(); });
}

hone_status hone_diagnosis_node(const hone_diagnosis* diagnosis, size_t index, hone_diagnosed_node* node) {
  return guarded([&] {
    require(diagnosis, "diagnosis");
    require_index(index, diagnosis->found.nodes.size(), "node");
    const hone::Diagnosis::Node& found = diagnosis->found.nodes[index];
    hone::capi::fill(node, "node",
                     hone_diagnosed_node{.name = found.name.c_str(),
                                         .op = found.operator_type.c_str(),
                                         .domain = found.domain.c_str(),
                                         .supported = found.supported});
  });
}

size_t hone_diagnosis_runs(const hone_diagnosis* diagnosis) {
  return count_of(diagnosis, [](const hone::Diagnosis& found) { return found.runs.size(); });
}

hone_status hone_diagnosis_run(const hone_diagnosis* diagnosis, size_t index, const size_t** nodes, size_t* count) {
  return guarded([&] {
    require(diagnosis, "diagnosis");
    require(nodes, "nodes");
    require(count, "count");
    require_index(index, diagnosis->found.runs.size(), "run");
    *nodes = diagnosis->found.runs[index].data();
    *count = diagnosis->found.runs[index].size();
  });
}

void hone_diagnosis_destroy(hone_diagnosis* diagnosis) { hone::capi::destroy(diagnosis, "diagnosis"); }
