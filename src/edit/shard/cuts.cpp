// SPDX-License-Identifier: Apache-2.0
#include "edit/shard/cuts.h"

#include <algorithm>
#include <unordered_set>

namespace hone::edit {
namespace {

const std::unordered_set<std::string_view>& elementwise_operators() {
  static const std::unordered_set<std::string_view> kNames{"Abs",
                                                           "Add",
                                                           "And",
                                                           "Cast",
                                                           "Ceil",
                                                           "Clip",
                                                           "Cos",
                                                           "Div",
                                                           "Elu",
                                                           "Equal",
                                                           "Erf",
                                                           "Exp",
                                                           "FastGelu",
                                                           "Floor",
                                                           "Gelu",
                                                           "Greater",
                                                           "GreaterOrEqual",
                                                           "HardSigmoid",
                                                           "HardSwish",
                                                           "Identity",
                                                           "LeakyRelu",
                                                           "Less",
                                                           "LessOrEqual",
                                                           "Log",
                                                           "Max",
                                                           "Min",
                                                           "Mish",
                                                           "Mul",
                                                           "Neg",
                                                           "Not",
                                                           "Or",
                                                           "Pow",
                                                           "QuickGelu",
                                                           "Reciprocal",
                                                           "Relu",
                                                           "Round",
                                                           "Selu",
                                                           "Sigmoid",
                                                           "Sign",
                                                           "Sin",
                                                           "Softplus",
                                                           "Softsign",
                                                           "Sqrt",
                                                           "Sub",
                                                           "Swish",
                                                           "Tanh",
                                                           "Where",
                                                           "Xor"};
  return kNames;
}

bool is_one(const Dim& dim) { return dim == Dim(1); }

Dim product_of(const Shape& shape, size_t begin, size_t end) {
  Dim product(1);
  for (size_t i = begin; i < end; ++i) product = product * shape[i];
  return product;
}

/// Axes [begin, end) of the one shape hold the elements of axes [begin, end) of the other.
struct Match {
  size_t from_begin, from_end, to_begin, to_end;
};

/// The groups of axes between which a Reshape moves no element; nothing where that cannot be seen.
std::optional<std::vector<Match>> matches(const Shape& from, const Shape& to) {
  std::vector<Match> result;
  size_t a = 0, b = 0;
  while (a < from.rank() || b < to.rank()) {
    Match match{a, a, b, b};
    bool found = false;
    for (size_t width = 1; width <= from.rank() - a + to.rank() - b && !found; ++width)
      for (size_t of_from = 0; of_from <= width && !found; ++of_from) {
        const size_t end_a = a + of_from, end_b = b + width - of_from;
        if (end_a > from.rank() || end_b > to.rank()) continue;
        if (product_of(from, a, end_a) != product_of(to, b, end_b)) continue;
        match.from_end = end_a;
        match.to_end = end_b;
        found = true;
      }
    if (!found) return std::nullopt;
    a = match.from_end;
    b = match.to_end;
    result.push_back(match);
  }
  return result;
}

}  // namespace

bool Cutter::refuse(std::string reason) {
  if (reason_.empty()) reason_ = std::move(reason);
  return false;
}

bool Cutter::divides(const std::string& tensor, const Cut& cut) {
  const Shape* shape = facts_.shape(tensor);
  if (shape == nullptr) return refuse(fmt::format("the sizes of {} are not known", tensor));
  if (cut.axis >= shape->rank()) return refuse(fmt::format("{} has {} axes", tensor, shape->rank()));
  const Dim& dim = (*shape)[cut.axis];
  const int64_t parts = cut.outer * division_.ranks;
  if (!dim.is_constant()) return refuse(fmt::format("the size {} of {} is open", dim.text(), tensor));
  if (dim.value() % parts != 0)
    return refuse(fmt::format("{} of {} cannot be divided by {}", dim.value() / cut.outer, tensor, division_.ranks));
  return true;
}

bool Cutter::want_operand(size_t position, size_t operand, const Cut& cut) {
  const std::string& tensor = facts_.node(position).inputs[operand];
  if (facts_.is_constant(tensor)) {
    if (!divides(tensor, cut)) return false;
    division_.constants.emplace(Operand{position, operand}, cut);
    return true;
  }
  const Division before = division_;
  const std::set<std::string> touched_before = touched_;
  if (want(tensor, cut)) return true;
  if (facts_.is_computed(tensor) || cut.outer != 1 || !divides(tensor, cut)) return false;
  // It costs little to have all of it on every rank: masks, positions.
  division_ = before;
  touched_ = touched_before;
  reason_.clear();
  division_.shares.emplace(Operand{position, operand}, cut);
  return true;
}

bool Cutter::want(const std::string& tensor, const Cut& cut) {
  if (const auto known = division_.tensors.find(tensor); known != division_.tensors.end())
    return known->second == cut || refuse(fmt::format("{} would be cut in two ways", tensor));
  if (!divides(tensor, cut)) return false;
  const auto producer = facts_.index().producer.find(tensor);
  if (producer == facts_.index().producer.end()) return refuse(fmt::format("{} is an input", tensor));
  division_.tensors.emplace(tensor, cut);
  touched_.insert(tensor);
  return through(producer->second, tensor, cut);
}

bool Cutter::through(size_t position, const std::string& result, const Cut& cut) {
  const Node& node = facts_.node(position);
  const std::string& op = node.op_type;
  const Shape& shape = *facts_.shape(result);
  if (elementwise_operators().contains(op)) return elementwise(position, result, cut);
  if (op == "MatMul" || op == "Gemm") return product(position, result, cut);
  if (op == "Reshape" || op == "Flatten") return reshape(position, result, cut);
  if (op == "Expand") return expand(position, result, cut);
  if (op == "Split") return split(position, cut);
  if (op == "Unsqueeze" || op == "Squeeze") return axes_between(position, result, cut, op == "Squeeze");
  if (op == "Gather") return gather(position, cut);
  if (op == "Concat") return concat(position, cut);
  if (op == "Transpose") {
    const auto perm = facts_.attributes(node, "perm");
    const size_t from = perm ? static_cast<size_t>(perm->at(cut.axis)) : shape.rank() - 1 - cut.axis;
    return want_operand(position, 0, {from, cut.outer});
  }
  if (op == "Softmax" || op == "LogSoftmax") {
    const size_t along = normalize_axis(facts_.attribute(node, "axis", -1), shape.rank());
    if (along + 1 != shape.rank() || along == cut.axis)
      return refuse(fmt::format("{} needs whole rows", facts_.label(position)));
    return want_operand(position, 0, cut);
  }
  if (op == "Slice") {
    const auto axes = node.inputs.size() > 3 ? facts_.integers(node.inputs[3]) : facts_.attributes(node, "axes");
    const bool other = axes && std::ranges::none_of(
                                   *axes, [&](int64_t axis) { return normalize_axis(axis, shape.rank()) == cut.axis; });
    return other ? want_operand(position, 0, cut)
                 : refuse(fmt::format("{} cuts the same axis", facts_.label(position)));
  }
  return refuse(fmt::format("{} ({}) needs all of it", facts_.label(position), op));
}

bool Cutter::elementwise(size_t position, const std::string& result, const Cut& cut) {
  const Node& node = facts_.node(position);
  const size_t rank = facts_.shape(result)->rank();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].empty()) continue;
    const Shape* shape = facts_.shape(node.inputs[i]);
    if (shape == nullptr) return refuse(fmt::format("the sizes of {} are not known", node.inputs[i]));
    if (cut.axis + shape->rank() < rank) continue;
    const size_t axis = cut.axis + shape->rank() - rank;
    if (is_one((*shape)[axis])) continue;
    if (!want_operand(position, i, {axis, cut.outer})) return false;
  }
  return true;
}

bool Cutter::product(size_t position, const std::string& result, const Cut& cut) {
  const Node& node = facts_.node(position);
  const size_t rank = facts_.shape(result)->rank();
  const bool gemm = node.op_type == "Gemm";
  const Shape* other = facts_.shape(node.inputs.at(1));
  if (other == nullptr || facts_.shape(node.inputs[0]) == nullptr)
    return refuse("the sizes of a product are not known");
  if (facts_.weight(node.inputs[1])) {
    if (cut.axis + 1 != rank || other->rank() != 2)
      return refuse(fmt::format("{} would be cut along its rows", facts_.label(position)));
    if (division_.rows.contains(position)) return refuse(fmt::format("{} ends another pair", facts_.label(position)));
    const size_t axis = gemm && facts_.attribute(node, "transB", 0) != 0 ? 0 : 1;
    if (!want_operand(position, 1, {axis, cut.outer})) return false;
    if (gemm && node.inputs.size() > 2 && !node.inputs[2].empty()) {
      const Shape* bias = facts_.shape(node.inputs[2]);
      if (bias == nullptr || bias->rank() == 0)
        return refuse(fmt::format("the bias of {} is a scalar", facts_.label(position)));
      if (!is_one((*bias)[bias->rank() - 1]) && !want_operand(position, 2, {bias->rank() - 1, cut.outer})) return false;
    }
    division_.columns.insert(position);
    return true;
  }
  if (gemm || cut.axis + 2 >= rank) return refuse(fmt::format("{} is no product with weights", facts_.label(position)));
  for (size_t i = 0; i < 2; ++i) {
    const Shape& shape = *facts_.shape(node.inputs[i]);
    if (cut.axis + shape.rank() < rank) continue;
    const size_t axis = cut.axis + shape.rank() - rank;
    if (!is_one(shape[axis]) && !want_operand(position, i, {axis, cut.outer})) return false;
  }
  return true;
}

/// Sizes of `to` with the cut axis divided, where the operand has those of `from` as well: what is open is said by place, once by -1.
std::optional<std::vector<int64_t>> Cutter::sizes_of_share(const Shape& from, const Shape& to, const Cut& cut) const {
  std::vector<int64_t> sizes;
  bool open = false;
  for (size_t i = 0; i < to.rank(); ++i) {
    if (i == cut.axis) sizes.push_back(to[i].value() / division_.ranks);
    else if (to[i].is_constant()) sizes.push_back(to[i].value());
    else if (i < from.rank() && from[i] == to[i]) sizes.push_back(0);
    else if (!std::exchange(open, true)) sizes.push_back(-1);
    else return std::nullopt;
  }
  return sizes;
}

bool Cutter::reshape(size_t position, const std::string& result, const Cut& cut) {
  const Node& node = facts_.node(position);
  const Shape* from = facts_.shape(node.inputs.at(0));
  const Shape& to = *facts_.shape(result);
  if (from == nullptr) return refuse(fmt::format("the sizes of {} are not known", node.inputs[0]));
  const std::string refusal = fmt::format("{} mixes what would be cut", facts_.label(position));
  const auto groups = matches(*from, to);
  if (!groups) return refuse(refusal);
  const auto group = std::ranges::find_if(
      *groups, [&](const Match& match) { return match.to_begin <= cut.axis && cut.axis < match.to_end; });
  if (group == groups->end()) return refuse(refusal);
  const Dim outer = product_of(to, group->to_begin, cut.axis) * Dim(cut.outer);
  if (!outer.is_constant()) return refuse(refusal);
  // The axis before which so many parts have been counted is the one that is cut.
  int64_t before = 1;
  for (size_t axis = group->from_begin; axis < group->from_end; ++axis) {
    if (!(*from)[axis].is_constant()) return refuse(refusal);
    const int64_t size = (*from)[axis].value();
    if (before * size <= outer.value()) {
      before *= size;
      continue;
    }
    if (outer.value() % before != 0) return refuse(refusal);
    if (node.op_type == "Reshape") {
      auto sizes = sizes_of_share(*from, to, cut);
      if (!sizes) return refuse(fmt::format("{} has several open sizes", facts_.label(position)));
      division_.sizes[{position, 1}] = std::move(*sizes);
    }
    return want_operand(position, 0, {axis, outer.value() / before});
  }
  return refuse(refusal);
}

bool Cutter::expand(size_t position, const std::string& result, const Cut& cut) {
  const Node& node = facts_.node(position);
  const Shape* from = facts_.shape(node.inputs.at(0));
  const Shape& to = *facts_.shape(result);
  if (from == nullptr) return refuse(fmt::format("the sizes of {} are not known", node.inputs[0]));
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < to.rank(); ++i) {
    const bool same = i + from->rank() >= to.rank() && (*from)[i + from->rank() - to.rank()] == to[i];
    if (i == cut.axis) sizes.push_back(to[i].value() / division_.ranks);
    else if (same) sizes.push_back(1);
    else if (to[i].is_constant()) sizes.push_back(to[i].value());
    else return refuse(fmt::format("{} has open sizes", facts_.label(position)));
  }
  division_.sizes[{position, 1}] = std::move(sizes);
  if (cut.axis + from->rank() < to.rank()) return true;
  const size_t axis = cut.axis + from->rank() - to.rank();
  return is_one((*from)[axis]) || want_operand(position, 0, {axis, cut.outer});
}

bool Cutter::split(size_t position, const Cut& cut) {
  const Node& node = facts_.node(position);
  const Shape* from = facts_.shape(node.inputs.at(0));
  if (from == nullptr) return refuse(fmt::format("the sizes of {} are not known", node.inputs[0]));
  const size_t axis = normalize_axis(facts_.attribute(node, "axis", 0), from->rank());
  for (const std::string& other : node.outputs) {
    const Shape* shape = facts_.shape(other);
    if (shape == nullptr || (axis == cut.axis && *shape != *facts_.shape(node.outputs[0])))
      return refuse(fmt::format("{} makes parts of several sizes", facts_.label(position)));
    division_.tensors.emplace(other, cut);
    touched_.insert(other);
  }
  if (axis != cut.axis) return want_operand(position, 0, cut);
  if (node.attribute("split") != nullptr)
    return refuse(fmt::format("{} says sizes in an attribute", facts_.label(position)));
  const auto parts = static_cast<int64_t>(node.outputs.size());
  if (node.inputs.size() > 1 && !node.inputs[1].empty())
    division_.sizes[{position, 1}].assign(node.outputs.size(),
                                          (*facts_.shape(node.outputs[0]))[axis].value() / division_.ranks);
  return want_operand(position, 0, {axis, cut.outer * parts});
}

/// Unsqueeze and Squeeze: axes of size 1 come or go.
bool Cutter::axes_between(size_t position, const std::string& result, const Cut& cut, bool removed) {
  const Node& node = facts_.node(position);
  const Shape* from = facts_.shape(node.inputs.at(0));
  auto axes = node.inputs.size() > 1 ? facts_.integers(node.inputs[1]) : facts_.attributes(node, "axes");
  if (from == nullptr || !axes) return refuse(fmt::format("the axes of {} are not known", facts_.label(position)));
  const size_t longer = removed ? from->rank() : facts_.shape(result)->rank();
  std::vector<size_t> kept;  // of the longer shape
  for (size_t axis = 0; axis < longer; ++axis)
    if (std::ranges::none_of(*axes, [&](int64_t gone) { return normalize_axis(gone, longer) == axis; }))
      kept.push_back(axis);
  if (removed) return want_operand(position, 0, {kept.at(cut.axis), cut.outer});
  const auto found = std::ranges::find(kept, cut.axis);
  if (found == kept.end()) return refuse(fmt::format("{} has nothing to cut", facts_.label(position)));
  return want_operand(position, 0, {static_cast<size_t>(found - kept.begin()), cut.outer});
}

bool Cutter::gather(size_t position, const Cut& cut) {
  const Node& node = facts_.node(position);
  const Shape *from = facts_.shape(node.inputs.at(0)), *indices = facts_.shape(node.inputs.at(1));
  if (from == nullptr || indices == nullptr)
    return refuse(fmt::format("the sizes of {} are not known", facts_.label(position)));
  const size_t axis = normalize_axis(facts_.attribute(node, "axis", 0), from->rank());
  if (cut.axis < axis) return want_operand(position, 0, cut);
  if (cut.axis < axis + indices->rank())
    return refuse(fmt::format("{} picks along the same axis", facts_.label(position)));
  return want_operand(position, 0, {cut.axis - indices->rank() + 1, cut.outer});
}

/// Inputs of the model that a share is put behind are caches: every rank has its own share of them.
bool Cutter::concat(size_t position, const Cut& cut) {
  const Node& node = facts_.node(position);
  const Shape* shape = facts_.shape(node.outputs[0]);
  if (normalize_axis(facts_.attribute(node, "axis", 0), shape->rank()) == cut.axis)
    return refuse(fmt::format("{} joins along the same axis", facts_.label(position)));
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const std::string& tensor = node.inputs[i];
    if (!facts_.index().inputs.contains(tensor)) {
      if (!want_operand(position, i, cut)) return false;
      continue;
    }
    if (!divides(tensor, cut)) return false;
    const auto [known, added] = division_.tensors.emplace(tensor, cut);
    if (known->second != cut) return refuse(fmt::format("{} would be cut in two ways", tensor));
    if (added) touched_.insert(tensor);
  }
  return true;
}

}  // namespace hone::edit
