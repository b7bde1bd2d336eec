// SPDX-License-Identifier: Apache-2.0
//
// Inference once more, with sizes that are known by now; where that tells no sizes of the results, with small integers too, which may
// be these sizes.
#include "ir/at_hand.h"

#include <algorithm>
#include <deque>

#include "base/limits.h"
#include "tensor/free_memory.h"

namespace hone {
namespace {

bool is_open(const Value* value) { return value != nullptr && (!value->type.ranked || !value->type.shape.is_static()); }

/// A node like this one with values of its own, inferred.
class Copy {
 public:
  Copy(const Node& node, std::span<const Tensor* const> inputs, bool with_contents)
      : node_{.op = node.op,
              .attrs = node.attrs,
              .inputs = {},
              .outputs = {},
              .name = node.name,
              .origin = {},
              .bodies = {}} {
    for (size_t i = 0; i < node.inputs.size(); ++i)
      node_.inputs.push_back(node.inputs[i] == nullptr ? nullptr : copy_of(*node.inputs[i], *inputs[i], with_contents));
    for (size_t i = 0; i < node.outputs.size(); ++i) node_.outputs.push_back(&values_.emplace_back());
    InferContext context(node_);
    if (node_.op->infer != nullptr) node_.op->infer(context);
    else if (node_.op->is_pointwise()) infer_pointwise(context);
  }

  const std::vector<Value*>& results() const { return node_.outputs; }

 private:
  Value* copy_of(const Value& value, const Tensor& tensor, bool with_contents) {
    Value& copy = values_.emplace_back();
    copy.type = is_open(&value) ? tensor.type() : value.type;
    copy.constant = value.constant;
    if (with_contents && is_integer(tensor.dtype()) && tensor.size() <= kMaxSymbolicElements) copy.constant = tensor;
    return &copy;
  }

  std::deque<Value> values_;
  Node node_;
};

/// The reference's own tables have up to eight bytes for each element of a result.
void require_memory_for(std::span<Value* const> results) {
  for (const Value* result : results) {
    const TensorType& type = result->type;
    if (is_open(result) || is_container(type.dtype)) continue;
    require_memory(type.dtype, type.shape.values(), std::max<size_t>(size_of(type.dtype), 8));
  }
}

}  // namespace

void check_at_hand(const Node& node, std::span<const Tensor* const> inputs) {
  const auto holds_items = [](const Value* value) { return value != nullptr && value->type.element != nullptr; };
  if (!node.bodies.empty() || std::ranges::any_of(node.inputs, holds_items)) return;
  bool open = std::ranges::any_of(node.outputs, is_open);
  if (!open) require_memory_for(node.outputs);
  if (std::ranges::any_of(node.inputs, is_open)) {
    const Copy copy(node, inputs, false);
    require_memory_for(copy.results());
    open = std::ranges::any_of(copy.results(), is_open);
  }
  if (open) require_memory_for(Copy(node, inputs, true).results());
}

}  // namespace hone
