// SPDX-License-Identifier: Apache-2.0
#include "quantize/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/op.h"
#include "ops/ops.h"

namespace hone {
namespace {

bool is_float_tensor(const Value* value) {
  return value != nullptr && value->type.dtype == DType::f32 && value->type.ranked;
}

bool is_activation(const Value* value) { return is_float_tensor(value) && !value->is_constant(); }

/// The axis of a product's weights along which the channels of the result lie.
int64_t channel_axis(const Node& node) {
  return node.is(ops::conv) || (node.is(ops::gemm) && node.attrs.integer("transB") != 0) ? 0 : 1;
}

bool is_product(const Node& node) { return node.is(ops::conv) || node.is(ops::gemm) || node.is(ops::mat_mul); }

/// Whether its sums run over whole pieces of channels, of one group; its weights are constant.
bool comes_in_pieces(const Node& node, int64_t piece) {
  const Dims& weights = node.input(1)->constant->dims();
  if (node.is(ops::conv) && node.attrs.integer("group") != 1) return false;
  return weights[static_cast<size_t>(1 - channel_axis(node))] % piece == 0;
}

/// Why a product cannot be quantised; empty when it can.
std::string obstacle(const Node& node, const PlacementRules& rules) {
  if (rules.keeps_floats && rules.keeps_floats(node)) return "it was asked to stay in floating point";
  const Value *x = node.input(0), *w = node.input(1);
  if (!is_float_tensor(x) || !is_float_tensor(w)) return fmt::format("its operands are {}", x->type.text());
  if (x->is_constant()) return "its first operand is a constant";
  if (!w->is_constant()) return "its weights are computed, not constant";
  if (!node.is(ops::conv) && w->type.shape.rank() != 2)
    return fmt::format("its weights have {} axes, not two", w->type.shape.rank());
  if (node.is(ops::gemm) && (node.attrs.integer("transA") != 0 || node.attrs.real("alpha") != 1 ||
                             (node.input(2) != nullptr && node.attrs.real("beta") != 1)))
    return "it transposes its first operand, or scales its result";
  if (rules.piece > 0 && !comes_in_pieces(node, rules.piece))
    return fmt::format("the device multiplies codes of one group alone, {} channels at a time", rules.piece);
  if (rules.has_scale && !rules.has_scale(*x)) return fmt::format("the scale of {} is not known", x->label());
  return {};
}

/// Nothing but elements of the operand, in one piece or several: one scale serves both sides. Where a window has no element
/// inside, or padding is not zero, that does not hold.
bool hands_on_elements(const Node& node) {
  if (node.is(ops::max_pool)) return node.outputs.size() == 1;
  if (node.is(ops::resize)) return node.attrs.text("mode") == "nearest";
  return node.op->traits.view || node.is(ops::transpose) || node.is(ops::concat) || node.is(ops::slice) ||
         node.is(ops::split) || node.is(ops::reshape) || node.is(ops::flatten) || node.is(ops::squeeze) ||
         node.is(ops::unsqueeze) || node.is(ops::depth_to_space) || node.is(ops::space_to_depth);
}

size_t handed_operands(const Node& node) { return node.is(ops::concat) ? node.inputs.size() : 1; }

bool is_average(const Node& node) {
  return node.is(ops::global_average_pool) || node.is(ops::average_pool) || node.is(ops::reduce_mean);
}

class Placer {
 public:
  Placer(const Graph& graph, const PlacementRules& rules) : graph_(graph), rules_(rules) {
    for (Node* node : graph.nodes()) {
      order_.emplace(node, nodes_.size());
      nodes_.push_back(node);
    }
  }

  Placement run() {
    for (Node* node : nodes_)
      if (is_product(*node)) place_product(node);
    while (!rules_.products_alone && extend()) {}
    return finish();
  }

 private:
  void place_product(Node* node) {
    std::string reason = obstacle(*node, rules_);
    const auto known = weights_.find(node->input(1));
    if (reason.empty() && known != weights_.end() && known->second.axis != channel_axis(*node))
      reason = "another node reads its weights along another axis";
    if (!reason.empty()) return placement_.left.push_back({node, reason});
    ++placement_.nodes;
    products_.insert(node);
    quantize({node, 0});
    PlacedWeights& weights = weights_[node->input(1)];
    weights.value = node->input(1);
    weights.axis = channel_axis(*node);
    weights.uses.push_back({node, 1});
  }

  bool is_quantized(const Use& use) const {
    const auto found = uses_.find(use.node->inputs[use.index]);
    return found != uses_.end() && std::ranges::find(found->second, use) != found->second.end();
  }
  bool is_quantized(const Value* value) const { return uses_.contains(value); }

  /// Whether anything changed.
  bool quantize(const Use& use) {
    Value* value = use.node->inputs[use.index];
    if (!is_activation(value) || is_quantized(use) || (rules_.has_scale && !rules_.has_scale(*value))) return false;
    uses_[value].push_back(use);
    groups_.try_emplace(value, value);
    return true;
  }

  bool keeps_floats(const Node& node) const { return rules_.keeps_floats && rules_.keeps_floats(node); }

  bool extend() {
    bool changed = false;
    joins_.clear();
    for (Node* node : nodes_) {
      if (keeps_floats(*node)) continue;
      if (node->is(ops::add)) changed |= extend_addition(node);
      else if (node->is(ops::mul)) changed |= extend_gate(node);
      else if (is_average(*node)) changed |= extend_average(node);
    }
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node)
      if (!keeps_floats(**node) && hands_on_elements(**node)) changed |= extend_above(*node);
    return changed;
  }

  /// Of a sum of two tensors one stays in the registers of the product that makes it, and the other is read.
  bool extend_addition(Node* node) {
    const Value *a = node->input(0), *b = node->input(1);
    if (!is_activation(a) || !is_activation(b) || a == b || a->type.shape != b->type.shape) return false;
    if (is_quantized({node, 0}) || is_quantized({node, 1})) return false;
    const bool a_joins = joins_product(a), b_joins = joins_product(b);
    if (!a_joins && !b_joins) return false;
    const bool reads_a = a_joins && b_joins ? order_of(a) < order_of(b) : b_joins;
    const Value* read = reads_a ? a : b;
    if (!(a_joins && b_joins) && !is_quantized(read)) return false;
    return quantize({node, reads_a ? size_t{0} : size_t{1}});
  }

  /// A factor for each channel, as squeeze-and-excitation makes it, times a tensor that is quantised for its average anyway.
  bool extend_gate(Node* node) {
    for (size_t i = 0; i < 2; ++i) {
      const Value *x = node->input(i), *gate = node->input(1 - i);
      if (!is_activation(x) || !is_activation(gate) || !is_quantized(x) || gate->type.shape == x->type.shape) continue;
      if (x->type.shape == node->output()->type.shape) return quantize({node, i});
    }
    return false;
  }

  bool extend_average(Node* node) {
    const Value* x = node->input(0);
    if (!is_activation(x) || x->type.shape.rank() != 4) return false;
    return (is_quantized(x) || joins_product(x)) && quantize({node, 0});
  }

  /// Bytes behind what moves elements: bytes before it.
  bool extend_above(Node* node) {
    Value* output = node->output();
    if (!is_quantized(output) || graph_.is_output(output) || !is_read_quantized_alone(node)) return false;
    bool comes_from_product = false, all_fit = true;
    for (size_t i = 0; i < handed_operands(*node); ++i) {
      const Value* x = node->input(i);
      all_fit &= is_activation(x) && (!rules_.has_scale || rules_.has_scale(*x));
      comes_from_product |= all_fit && (is_quantized(x) || joins_product(source(x)));
    }
    if (!all_fit || !comes_from_product) return false;
    bool changed = false;
    for (size_t i = 0; i < handed_operands(*node); ++i) {
      changed |= quantize({node, i});
      for (Value* each : node->outputs)
        if (is_quantized(each)) unite(node->input(i), each);
    }
    return changed;
  }

  bool is_read_quantized_alone(const Node* node) const {
    return std::ranges::all_of(node->outputs, [&](const Value* output) {
      return !graph_.is_output(output) && std::ranges::all_of(output->uses, [&](const Use& use) {
        return is_quantized(use) || use.node->is(ops::shape) || use.node->is(ops::size);
      });
    });
  }

  /// What a value is made of where elements are only moved.
  const Value* source(const Value* value) const {
    while (value->producer != nullptr && hands_on_elements(*value->producer) &&
           is_activation(value->producer->input(0)))
      value = value->producer->input(0);
    return value;
  }

  /// Whether a value is computed from the results of quantised products alone, element by element: in the product's own kernel.
  bool joins_product(const Value* value) {
    const Node* node = value->producer;
    if (node == nullptr) return false;
    if (products_.contains(node)) return true;
    const auto [found, is_new] = joins_.try_emplace(node, false);
    if (!is_new || !(node->op->is_pointwise() || node->is(ops::batch_normalization))) return found->second;
    bool joins = true;
    for (const Value* input : node->inputs)
      joins &= input == nullptr || input->is_constant() || is_quantized_residual(node, input) || joins_product(input);
    return joins_[node] = joins;
  }
  bool is_quantized_residual(const Node* node, const Value* input) const {
    return node->is(ops::add) && input->producer != nullptr && is_quantized(input);
  }

  size_t order_of(const Value* value) const { return order_.at(value->producer); }

  Value* root(Value* value) {
    while (groups_.at(value) != value) value = groups_.at(value);
    return value;
  }
  void unite(Value* a, Value* b) { groups_[root(a)] = root(b); }

  Placement finish() {
    std::map<Value*, size_t> numbers;
    const auto add = [&](Value* value) {
      const auto found = uses_.find(value);
      if (found == uses_.end()) return;
      const size_t group = numbers.try_emplace(root(value), numbers.size()).first->second;
      placement_.tensors.push_back({value, found->second, group});
    };
    for (Value* input : graph_.inputs()) add(input);
    std::set<const Value*> taken;
    for (Node* node : nodes_) {
      for (Value* input : node->inputs)
        if (weights_.contains(input) && taken.insert(input).second) placement_.weights.push_back(weights_[input]);
      for (Value* output : node->outputs) add(output);
    }
    return std::move(placement_);
  }

  const Graph& graph_;
  const PlacementRules& rules_;
  std::vector<Node*> nodes_;
  std::map<const Node*, size_t> order_;
  std::set<const Node*> products_;
  std::map<const Value*, std::vector<Use>> uses_;
  std::map<Value*, PlacedWeights> weights_;
  std::map<const Node*, bool> joins_;
  std::map<Value*, Value*> groups_;
  Placement placement_;
};

}  // namespace

Placement place_quantization(const Graph& graph, const PlacementRules& rules) { return Placer(graph, rules).run(); }

Placement place_weights(const Graph& graph, const PlacementRules& rules) {
  Placement placement;
  for (Node* node : graph.nodes()) {
    if (!is_product(*node)) continue;
    std::string reason = obstacle(*node, rules);
    if (reason.empty() && node->is(ops::conv)) reason = "it is a convolution, whose weights are read many times";
    const auto known = std::ranges::find(placement.weights, node->input(1), &PlacedWeights::value);
    const int64_t summed = 1 - channel_axis(*node);
    if (reason.empty() && known != placement.weights.end() && known->axis != summed)
      reason = "another node reads its weights along another axis";
    if (!reason.empty()) {
      placement.left.push_back({node, reason});
      continue;
    }
    ++placement.nodes;
    if (known != placement.weights.end()) known->uses.push_back({node, 1});
    else placement.weights.push_back({node->input(1), {{node, 1}}, summed});
  }
  return placement;
}

}  // namespace hone
