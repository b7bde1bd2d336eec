// SPDX-License-Identifier: Apache-2.0
//
// The reference beside an engine: it goes on node by node until it has the tensor that is asked for, and forgets what nobody will ask for.
// Weights stay in the model's file; a node's own are in memory while it is evaluated.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "onnx/importer.h"
#include "tools/companion/narrator.h"
#include "tools/compare/model_face.h"

namespace hone {

class ExactStream {
 public:
  /// The face and the inputs have to live as long.
  ExactStream(const ModelFace& face, const TensorList& inputs, const Narrator& narrator);

  /// Whether a node computes a tensor of the name.
  bool computes(const std::string& name) const { return computed_.contains(name); }
  /// How often each tensor will be asked for; before the first find().
  void expect(std::map<std::string, int> asked);
  /// Null where the model has none of that name.
  const Tensor* find(const std::string& name);
  /// One who asked has it.
  void release(const std::string& name);
  size_t most_alive() const { return most_; }

 private:
  void keep(const Value* value, Tensor tensor);
  void step();
  const Tensor* operand(const Value* input, std::vector<Tensor>& copies) const;

  const ModelFace& face_;
  const TensorList& inputs_;
  ImportedModel model_;
  std::map<std::string, int> asked_;
  std::vector<Node*> nodes_;
  std::set<std::string> computed_;
  size_t next_ = 0, most_ = 0;
  std::map<const Value*, int> uses_;
  std::map<const Value*, Tensor> values_;
  std::map<std::string, Tensor> named_;
};

}  // namespace hone
