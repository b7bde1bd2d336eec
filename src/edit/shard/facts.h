// SPDX-License-Identifier: Apache-2.0
//
// What dividing a model asks of it: shapes of tensors, constants, and which weight stands behind an operand.
#pragma once

#include <optional>
#include <unordered_set>

#include "edit/infer.h"
#include "edit/names.h"

namespace hone::edit {

class Facts {
 public:
  explicit Facts(const Model& model);

  const Graph& graph() const { return graph_; }
  const Node& node(size_t position) const { return graph_.nodes[position]; }
  const Index& index() const { return index_; }
  /// Null where inference does not know it, or has no rank.
  const Shape* shape(const std::string& tensor) const;
  /// A tensor that is known without running anything, large weights apart.
  const Tensor* constant(const std::string& tensor) const;
  /// The numbers of a constant of integers.
  std::optional<std::vector<int64_t>> integers(const std::string& tensor) const;
  /// An integer attribute, or the fallback.
  int64_t attribute(const Node& node, std::string_view name, int64_t fallback) const;
  double real(const Node& node, std::string_view name, double fallback) const;
  std::optional<std::vector<int64_t>> attributes(const Node& node, std::string_view name) const;

  struct Source {
    const Weight* weight = nullptr;
    bool transposed = false;  // between them stands a Transpose of two axes
  };
  /// The weight that an operand is, behind what only names it anew.
  std::optional<Source> weight(const std::string& tensor) const;
  bool is_constant(const std::string& tensor) const { return weight(tensor) || constant(tensor) != nullptr; }
  /// Whether a product with weights has gone into the tensor.
  bool is_computed(const std::string& tensor) const { return computed_.contains(tensor); }
  std::string label(size_t position) const { return label_of(node(position), position); }

 private:
  const Graph& graph_;
  Index index_;
  onnx::Survey survey_;
  std::unordered_set<std::string> computed_;
};

}  // namespace hone::edit
