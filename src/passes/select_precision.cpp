// SPDX-License-Identifier: Apache-2.0
//
// Reduced precision: what multiplies large tensors works in f16 or bf16, and what only passes values on follows. Statistics
// and sums stay f32 inside the kernels. Casts stand where a node needs f32: at the edges of the graph, and around what would
// lose its meaning (exponentials of large numbers, positions, sums of squares). Constants are converted once, here.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "ops/ops.h"
#include "ops/support.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

bool is_wide(const Value* value) { return value != nullptr && value->type.dtype == DType::f32; }

/// Operands that carry data; the others are parameters of the operator (scales of a Resize).
bool is_data(const Node& node, size_t operand) {
  return is_wide(node.input(operand)) && operand < node.op->traits.keeps_type_from;
}

bool gains(const Node& node) { return node.op->few_bits() == FewBits::gains; }

class Narrowing {
 public:
  Narrowing(Graph& graph, const PassContext& context)
      : graph_(graph),
        small_(context.precision),
        only_convolutions_(context.only_convolutions),
        keeps_f32_(context.keeps_f32) {}

  void run() {
    const std::vector<Value*> outputs = graph_.outputs();
    std::vector<DType> types;
    for (const Value* output : outputs) types.push_back(output->type.dtype);
    for (Node* node : graph_.nodes()) {
      if (wants_small(*node)) narrow_node(node);
      else widen_node(node);
    }
    std::vector<Value*> results;
    for (size_t i = 0; i < outputs.size(); ++i)
      results.push_back(outputs[i]->type.dtype == types[i] ? outputs[i] : widened_output(outputs[i]));
    graph_.set_outputs(std::move(results));
  }

 private:
  bool is_small(const Value* value) const { return value != nullptr && value->type.dtype == small_; }

  bool wants_small(const Node& node) const {
    if (node.op->traits.has_bodies || !is_wide_result(node) || (keeps_f32_ && keeps_f32_(node))) return false;
    if (only_convolutions_) return wants_small_beside_convolutions(node);
    if (gains(node) || repeats_for_gain(node)) return true;
    if (node.is(ops::gather) && node.input(0)->is_constant() && is_wide(node.input(0)))
      return true;  // a table of embeddings
    if (node.op->few_bits() == FewBits::stays) return false;
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](const Value* value) { return is_small(value) && !value->is_constant(); });
  }

  /// A convolution that computes, and what hands its result on without anything wide joining in: elsewhere casts would cost
  /// more than the small type saves.
  bool wants_small_beside_convolutions(const Node& node) const {
    if (node.is(ops::conv) || node.is(ops::conv_transpose))
      return has_plain_form(node) && (is_small(node.input(0)) || !is_depthwise(node));
    if (node.is(ops::resize) && node.attrs.text("mode") != "nearest") return false;
    if (node.op->few_bits() != FewBits::passes) return false;
    const auto joins_wide = [&](const Value* value) { return is_wide(value) && !value->is_constant(); };
    const auto is_narrow = [&](const Value* value) { return is_small(value) && !value->is_constant(); };
    return std::any_of(node.inputs.begin(), node.inputs.end(), is_narrow) &&
           std::none_of(node.inputs.begin(), node.inputs.end(), joins_wide);
  }
  static bool is_depthwise(const Node& node) {
    return node.is(ops::conv) && Dim(node.attrs.integer("group")) == node.input(0)->type.shape[1] &&
           node.attrs.integer("group") > 1;
  }
  /// Constant weights, padding that does not depend on sizes, at most three spatial axes.
  static bool has_plain_form(const Node& node) {
    const bool constant = node.input(1)->is_constant() && (node.input(2) == nullptr || node.input(2)->is_constant());
    const bool explicit_pads = !node.attrs.has("auto_pad") || node.attrs.text("auto_pad") == "NOTSET";
    const bool derived = !node.attrs.has("output_shape") || node.attrs.integers("output_shape").empty();
    return constant && explicit_pads && derived && node.input(0)->type.shape.rank() <= 5;
  }

  /// A constant that is repeated for matmuls alone (a mask for every image) is rounded before it grows.
  bool repeats_for_gain(const Node& node) const {
    const bool repeats = node.is(ops::expand) || node.is(ops::tile) || node.op->traits.view;
    return repeats && node.input(0)->is_constant() && is_wide(node.input(0)) && read_by_gaining(node.output());
  }
  /// Directly or under other shapes.
  bool read_by_gaining(const Value* value) const {
    return !graph_.is_output(value) && std::all_of(value->uses.begin(), value->uses.end(), [&](const Use& use) {
      return gains(*use.node) || (use.node->op->traits.view && read_by_gaining(use.node->output()));
    });
  }

  /// The first result was f32, or would be now that an operand is narrow.
  bool is_wide_result(const Node& node) const { return is_wide(node.output()) || is_small(node.output()); }

  void narrow_node(Node* node) {
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (is_data(*node, i)) graph_.set_input(node, i, narrowed(node->inputs[i], node));
    std::vector<const Value*> wide;
    std::copy_if(node->outputs.begin(), node->outputs.end(), std::back_inserter(wide), is_wide);
    graph_.infer(node);
    std::copy_if(wide.begin(), wide.end(), std::inserter(made_small_, made_small_.end()),
                 [this](const Value* output) { return is_small(output); });
  }

  void widen_node(Node* node) {
    bool changed = false;
    if (node->is(ops::cast)) return;  // reads every type
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (made_small_.contains(node->inputs[i])) {
        graph_.set_input(node, i, widened(node->inputs[i], node));
        changed = true;
      }
    if (changed) graph_.infer(node);
  }

  Value* narrowed(Value* value, Node* before) {
    Value*& made = narrowed_[value];
    // What was widened by a cast is there in the small type.
    if (made == nullptr && value->producer != nullptr && value->producer->is(ops::cast) &&
        is_small(value->producer->input(0)))
      made = value->producer->input(0);
    if (made == nullptr)
      made = value->is_constant() ? graph_.add_constant(converted(*value->constant), value->name)
                                  : cast(value, small_, before);
    return made;
  }

  Value* widened(Value* value, Node* before) {
    Value*& made = widened_[value];
    if (made == nullptr) made = cast(value, DType::f32, before);
    return made;
  }

  Value* cast(Value* value, DType to, Node* before) {
    return graph_
        .insert(before, ops::cast, {value}, {{"to", std::string(name_of(to))}},
                fmt::format("{} to {}", value->label(), name_of(to)))
        ->output();
  }

  Value* widened_output(Value* output) {
    const std::string name = output->name;
    Value* result =
        graph_.add(ops::cast, {output}, {{"to", std::string(name_of(DType::f32))}}, fmt::format("{} to f32", name))
            ->output();
    output->name = graph_.unique_name(name + "_computed");
    result->name = name;
    return result;
  }

  /// The largest finite number stands for those beyond it, such as masks write them: infinities would make NaN of them.
  Tensor converted(const Tensor& tensor) const {
    std::vector<float> values(static_cast<size_t>(tensor.size()));
    const float limit = small_ == DType::f16 ? 65504.0f : 3.3895314e38f;
    const std::span<const float> source = tensor.data<float>();
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = std::isfinite(source[i]) ? std::clamp(source[i], -limit, limit) : source[i];
    return write_floats(small_, tensor.dims(), values);
  }

  Graph& graph_;
  const DType small_;
  const bool only_convolutions_;
  const std::function<bool(const Node&)>& keeps_f32_;
  std::map<const Value*, Value*> narrowed_, widened_;
  std::set<const Value*> made_small_;  // results that were f32 before; a model's own f16 stays what it is
};

}  // namespace

void select_precision(Graph& graph, const PassContext& context) {
  if (context.precision != DType::f32) Narrowing(graph, context).run();
}

}  // namespace hone::passes
