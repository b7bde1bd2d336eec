// SPDX-License-Identifier: Apache-2.0

#include "tuner/few_rows.h"

#include <algorithm>
#include <unordered_map>

#include "ir/op.h"

namespace hone {
namespace {

constexpr int64_t kFewEntries = 4, kFewElements = 1 << 20;  // what is evaluated as it is

bool has_entries(const Value& value, size_t axis, const Dim& count) {
  const Shape& shape = value.type.shape;
  return value.type.ranked && shape.rank() > axis && (axis == 0 || shape[0] == Dim(1)) && shape[axis] == count;
}

/// Of an operand of the same rank, where all that the operator does is to its elements; a smaller one is repeated over entries.
std::optional<bool> elements_apart(const Node& node, size_t operand, size_t axis) {
  const Shape &given = node.input(operand)->type.shape, &result = node.output()->type.shape;
  if (given.rank() == result.rank()) return axis == 0 || given[axis] != Dim(1);
  return axis > 0 && given.rank() + axis < result.rank() ? std::optional(false) : std::nullopt;
}

/// Whether the node reads of an operand the entry that it makes a result of (or all of it, the same for all entries). Nothing where it
/// may mix entries.
std::optional<bool> apart(const Node& node, size_t operand, size_t axis) {
  if (node.op->is_pointwise()) return elements_apart(node, operand, axis);
  const Traits& traits = node.op->traits;
  if (axis > 0) return traits.rows_apart == nullptr ? std::nullopt : traits.rows_apart(node, operand);
  if (traits.entries_apart != nullptr && traits.entries_apart(node, operand)) return true;
  return std::nullopt;
}

/// Makes a region's copy with fewer entries, node by node.
class Shortened {
 public:
  Shortened(const Graph& region, size_t axis, Dim count, int64_t kept)
      : whole_(region), axis_(axis), count_(std::move(count)), kept_(kept) {}

  std::optional<Graph> graph() {
    for (const Node* node : whole_.nodes())
      for (size_t i = 0; i < node->inputs.size(); ++i)
        if (node->input(i) != nullptr && !read(*node, i)) return std::nullopt;
    for (const Value* input : whole_.inputs()) map_[input] = few_.add_input(input->name, type_of(*input));
    for (const Node* node : whole_.nodes()) add(*node);
    std::vector<Value*> outputs;
    for (const Value* output : whole_.outputs()) outputs.push_back(map_.at(output));
    few_.set_outputs(std::move(outputs));
    return std::move(few_);
  }

  /// Whether each input has an entry for each of the region's; asked behind graph().
  bool all_apart() const {
    return std::ranges::all_of(whole_.inputs(), [this](const Value* input) {
      const auto found = apart_.find(input);
      return found != apart_.end() && found->second;
    });
  }

 private:
  /// False where the node mixes entries, or two nodes read a value in different ways. Constants are taken whole, so none may have an entry
  /// for each; weights have none.
  bool read(const Node& node, size_t operand) {
    const Value& value = *node.input(operand);
    const std::optional<bool> own = apart(node, operand, axis_);
    if (!node.bodies.empty()) return false;
    if (value.is_constant()) return axis_ > 0 ? own == false : !(own && has_entries(value, 0, count_));
    if (!own || (*own && !has_entries(value, axis_, count_))) return false;
    const bool inside = value.producer != nullptr;
    return inside ? *own : apart_.try_emplace(&value, *own).first->second == *own;
  }

  TensorType type_of(const Value& input) const {
    TensorType type = input.type;
    if (const auto found = apart_.find(&input); found == apart_.end() || !found->second) return type;
    type.shape[axis_] = Dim(kept_);
    return type;
  }

  void add(const Node& node) {
    std::vector<Value*> inputs;
    for (const Value* input : node.inputs) {
      Value* made = input == nullptr ? nullptr : map_[input];
      if (input != nullptr && made == nullptr) made = map_[input] = few_.add_constant(*input->constant);
      inputs.push_back(made);
    }
    Node* made = few_.add(*node.op, std::move(inputs), node.attrs, node.name, node.outputs.size());
    for (size_t i = 0; i < node.outputs.size(); ++i) map_[node.outputs[i]] = made->outputs[i];
  }

  const Graph& whole_;
  size_t axis_;
  Dim count_;
  int64_t kept_;
  Graph few_;
  std::unordered_map<const Value*, bool> apart_;  // of the region's inputs
  std::unordered_map<const Value*, Value*> map_;
};

std::optional<FewEntries> with_two(const Graph& region, size_t axis) {
  if (region.inputs().empty() || region.outputs().empty() || region.outputs()[0]->type.shape.rank() <= axis)
    return std::nullopt;
  const int64_t count = region.outputs()[0]->type.shape[axis].value();
  int64_t elements = 0;
  const auto fits = [&](const Value* value) {
    const TensorType& type = value->type;
    if (!type.ranked || is_object(type.dtype) || type.shape.rank() == 0) return false;
    elements += type.shape.elements().value();
    return axis > 0 || has_entries(*value, axis, Dim(count));
  };
  const auto made = [&](const Value* value) {
    return has_entries(*value, axis, Dim(count)) && (axis == 0 || value->type.shape.rank() > 2);
  };
  if (count <= kFewEntries || !std::ranges::all_of(region.inputs(), fits) ||
      !std::ranges::all_of(region.outputs(), fits) || elements < kFewElements)
    return std::nullopt;
  for (const Node* node : region.nodes())
    if (node->inputs.empty() || (axis > 0 && !std::ranges::all_of(node->outputs, made))) return std::nullopt;
  std::optional<Graph> few = Shortened(region, axis, Dim(count), 2).graph();
  if (!few) return std::nullopt;
  return FewEntries{.region = std::move(*few), .axis = axis, .count = count};
}

}  // namespace

std::optional<FewEntries> with_two_entries(const Graph& region) { return with_two(region, 0); }

std::optional<FewEntries> with_two_rows(const Graph& region) { return with_two(region, 1); }

std::optional<Graph> one_entry_of(const Graph& region, const Dim& count) {
  const auto has_them = [&](const Value* value) { return has_entries(*value, 0, count); };
  if (region.inputs().empty() || !std::ranges::all_of(region.inputs(), has_them) ||
      !std::ranges::all_of(region.outputs(), has_them))
    return std::nullopt;
  Shortened shortened(region, 0, count, 1);
  std::optional<Graph> one = shortened.graph();
  return shortened.all_apart() ? std::move(one) : std::nullopt;
}

}  // namespace hone
