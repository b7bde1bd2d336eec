// SPDX-License-Identifier: Apache-2.0
//
// What the importer and the reference say about small wrong models. For tests.
#pragma once

#include <string>
#include <vector>

#include "onnx/importer.h"
#include "onnx/model_writer.h"

namespace hone::onnx {

/// A float tensor of rank 1.
inline std::string vector_value(const std::string& name, int64_t size = 2) {
  return ModelWriter::value(name, 1, {ModelWriter::dim(size)});
}

/// The message of the Error that `body` throws; empty when it ends well, with "INTERNAL" before it for a defect of Hone.
template <typename Body>
std::string refusal_by(const Body& body) {
  try {
    body();
    return {};
  } catch (const InternalError& error) {
    return fmt::format("INTERNAL {}", error.what());
  } catch (const Error& error) {
    return error.what();
  }
}

/// What the importer says; empty when it takes the model.
inline std::string refusal(const Blob& bytes, const std::string& directory = {}) {
  return refusal_by([&] { import_onnx_bytes(bytes, silent_logger(), directory); });
}

/// The same, and what the reference says when it runs the model on random inputs.
inline std::string refusal_when_run(const Blob& bytes) {
  return refusal_by([&] {
    const Graph graph = import_onnx_bytes(bytes, silent_logger()).graph.specialize({{"N", 2}});
    evaluate(graph, random_inputs(graph, 1));
  });
}

inline std::string refusal_of_nodes(const std::vector<std::string>& nodes,
                                    const std::vector<std::string>& functions = {}) {
  return refusal(ModelWriter::model(
      ModelWriter::graph({.nodes = nodes, .inputs = {vector_value("x")}, .outputs = {vector_value("y")}}), functions));
}

}  // namespace hone::onnx
