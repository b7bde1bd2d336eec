// SPDX-License-Identifier: Apache-2.0
//
// Small models for tests of edits. For tests only.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "edit/model.h"
#include "onnx/model_writer.h"

namespace hone::edit {

using W = onnx::ModelWriter;

inline std::string floats(size_t count, float value = 1) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}
inline std::string vector_of(const std::string& name, int64_t size = 2) { return W::value(name, 1, {W::dim(size)}); }

/// The model of these parts, read; its bytes live as long.
inline Model model_of(const W::GraphParts& parts, const std::vector<std::string>& functions = {}) {
  return read_model(W::model(W::graph(parts), functions), "");
}

inline std::vector<std::string> ops(const std::vector<Node>& nodes) {
  std::vector<std::string> names;
  for (const Node& node : nodes) names.push_back(node.op_type);
  return names;
}

/// What is written, read again.
inline Model again(const Model& model) { return read_model(Blob::copy(encode(model).text()), model.directory); }

}  // namespace hone::edit
