// SPDX-License-Identifier: Apache-2.0
//
// Parts of a model as models of their own: some of its nodes, with what flows into them as inputs and what others read of them as
// outputs. Types of tensors between nodes come from an inference or from the file.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "onnx/model_file.h"
#include "tensor/tensor.h"

namespace hone {

struct PieceType {
  DType dtype = DType::f32;
  Dims dims;  // -1: not fixed
};

class ModelPieces {
 public:
  /// Throws Error where the bytes are no ONNX model.
  explicit ModelPieces(Blob bytes);

  size_t nodes() const { return file_.nodes.size(); }
  const onnx::FileNode& node(size_t index) const { return file_.nodes[index]; }
  /// "Conv_3" for nodes without a name.
  std::string node_name(size_t index) const;
  /// Nodes that read what the node gives, and those that give what it reads; bodies of If, Loop and Scan count.
  const std::set<size_t>& readers(size_t index) const { return readers_[index]; }
  const std::set<size_t>& givers(size_t index) const { return givers_[index]; }

  /// What flows into the nodes and is no weight, and what of theirs is read by others or an output of the model.
  std::vector<std::string> inputs_of(const std::set<size_t>& nodes) const;
  std::vector<std::string> outputs_of(const std::set<size_t>& nodes) const;
  /// Inputs that are none of the model's have the types of `types`, or of the file. Throws Error naming one without either.
  std::string encode(const std::set<size_t>& nodes, const std::map<std::string, PieceType>& types) const;

 private:
  void find_neighbours();

  Blob bytes_;
  onnx::ModelFile file_;
  std::vector<std::vector<std::string>> reads_;  // names that a node or a body of it reads
  std::vector<std::set<size_t>> readers_, givers_;
  std::map<std::string, size_t> producer_;
  std::set<std::string> weights_;
};

}  // namespace hone
