// SPDX-License-Identifier: Apache-2.0
//
// Derivatives of operators, for the Gradient operator: given the gradient of a node's results, a rule adds the nodes that
// compute those of its operands. Pointwise operators need no rule: their formula is derived symbolically.
#pragma once

#include <string_view>
#include <vector>

#include "ir/op.h"

namespace hone {

/// One node on the way back, as its rule sees it.
class Backward {
 public:
  /// `gradients`: one for each result, null where none is needed. `wanted`: one for each operand.
  Backward(ImportContext& context, const Node& node, std::vector<Value*> gradients, std::vector<bool> wanted)
      : context_(context),
        node_(node),
        gradients_(std::move(gradients)),
        wanted_(std::move(wanted)),
        given_(wanted_.size(), nullptr) {}

  const Node& node() const { return node_; }
  const Attrs& attrs() const { return node_.attrs; }
  Value* x(size_t i = 0) const { return node_.input(i); }
  Value* y(size_t i = 0) const { return node_.outputs[i]; }
  /// The gradient of a result; zeros where nothing depends on it.
  Value* gradient(size_t i = 0);
  bool wants(size_t i) const { return i < wanted_.size() && wanted_[i]; }
  /// The gradient of operand `i`, of its shape. What comes from several uses of a value is added by the caller.
  void give(size_t i, Value* gradient) { given_[i] = gradient; }
  const std::vector<Value*>& given() const { return given_; }

  // ---- Nodes ----
  Value* add(std::string_view op, std::vector<Value*> inputs, Attrs attrs = {});
  Value* integers(std::vector<int64_t> values);
  Value* number(const Value* like, double value);  ///< a scalar of the same element type
  Value* shape_of(Value* value);
  Value* filled_like(Value* value, double number);
  Value* reshaped_like(Value* value, Value* like) { return add("Reshape", {value, shape_of(like)}); }
  /// Sums over the axes along which `like` was broadcast.
  Value* summed_to(Value* value, Value* like);

 private:
  ImportContext& context_;
  const Node& node_;
  std::vector<Value*> gradients_;
  std::vector<bool> wanted_;
  std::vector<Value*> given_;
};

using DerivativeRule = void (*)(Backward&);
/// Null: the operator has no derivative here.
DerivativeRule derivative_of(const OpDef& op);
/// The rule of every pointwise operator.
void derive_formula(Backward& node);

}  // namespace hone
