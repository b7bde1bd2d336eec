// SPDX-License-Identifier: Apache-2.0
//
// Scope: which Value an ONNX name means where. The scope of a body reaches its enclosing graph's values by capturing them:
// constants are shared, anything else becomes one more input of the body. A branch that is inlined shares its graph.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace hone::onnx {

/// What a name stands for that could not be read: a result of a node that was refused, or of one that was not judged; an input or a
/// constant of the model.
enum class Unread : uint8_t { none, result, tensor };

class Scope {
 public:
  /// `outer` is the scope around a body; null for the model's graph and for functions, which see nothing outside.
  explicit Scope(Graph& graph, Scope* outer = nullptr) : graph_(graph), outer_(outer) {}

  Graph& graph() const { return graph_; }
  /// Nothing: the name is not defined. Null: an optional input of a function that the call does not give.
  std::optional<Value*> find(std::string_view name);
  /// Whether this scope itself gives the name a meaning.
  bool defines(std::string_view name) const { return names_.contains(name); }
  /// Throws Error when the name is taken. The name must live as long as the scope.
  void define(std::string_view name, Value* value);
  /// The name is taken, and find() finds null behind it.
  void define_unread(std::string_view name, Unread why);
  Unread unread(std::string_view name) const;
  /// Adds an input that stands for a value of the enclosing graph.
  Value* capture(Value* outside);
  /// Values of the enclosing graph, in the order of the inputs that stand for them.
  const std::vector<Value*>& captured() const { return captured_; }

 private:
  Graph& graph_;
  Scope* outer_;
  std::unordered_map<std::string_view, Value*> names_;
  std::unordered_map<std::string_view, Unread> unread_;
  std::unordered_map<const Value*, Value*> inside_;
  std::vector<Value*> captured_;
};

}  // namespace hone::onnx
