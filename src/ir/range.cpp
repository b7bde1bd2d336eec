// SPDX-License-Identifier: Apache-2.0
//
// Each consumer says what it accepts of an operand; operators that hand integers on are looked through.
#include "ir/range.h"

#include <algorithm>

#include "ir/op.h"

namespace hone {
namespace {

constexpr int kMaxDepth = 8;  // of operators looked through: chains between an input and its consumer are short

/// The sizes of the data's axes that a gather or scatter indexes.
std::vector<Dim> indexed_axes(const Node& node, const Shape& data) {
  if (!node.op_name().ends_with("ND")) return {data[normalize_axis(node.attrs.integer_or("axis", 0), data.rank())]};
  const Shape& indices = node.input(1)->type.shape;
  const Dim depth = indices.rank() > 0 ? indices[indices.rank() - 1] : Dim(0);
  const size_t first = static_cast<size_t>(node.attrs.integer_or("batch_dims", 0));
  std::vector<Dim> sizes;
  for (size_t axis = first;
       depth.is_constant() && axis < std::min(data.rank(), first + static_cast<size_t>(depth.value())); ++axis)
    sizes.push_back(data[axis]);
  return sizes;
}

int64_t known_size(const Dim& size) { return size.is_constant() ? std::max<int64_t>(size.value(), 1) : 1; }

std::optional<IntegerRange> indices_into(const Node& node) {
  const Shape& data = node.input(0)->type.shape;
  if (data.rank() == 0) return std::nullopt;
  std::optional<IntegerRange> range;
  for (const Dim& size : indexed_axes(node, data)) {
    const int64_t high = known_size(size) - 1;
    range = IntegerRange{0, range ? std::min(range->high, high) : high};
  }
  return range;
}

/// Lengths and counts along an axis: at least 1, at most its size.
std::optional<IntegerRange> lengths_along(const Shape& data, int64_t axis) {
  if (data.rank() == 0) return std::nullopt;
  return IntegerRange{1, known_size(data[normalize_axis(axis, data.rank())])};
}

std::optional<IntegerRange> accepted_by(const Node& node, size_t operand) {
  const std::string_view op = node.op_name();
  if (operand == 1 && (op.starts_with("Gather") || op.starts_with("Scatter"))) return indices_into(node);
  if (operand == 1 && op == "ReverseSequence")
    return lengths_along(node.input(0)->type.shape, node.attrs.integer_or("time_axis", 0));
  if (operand == 1 && op == "TopK") return lengths_along(node.input(0)->type.shape, node.attrs.integer_or("axis", -1));
  if (operand == 2 && op == "RoiAlign") return IntegerRange{0, known_size(node.input(0)->type.shape[0]) - 1};
  if (operand == 4 && (op == "LSTM" || op == "GRU" || op == "RNN")) return lengths_along(node.input(0)->type.shape, 0);
  if (operand == 0 && op == "OneHot") {
    const Value* depth = node.input(1);
    return IntegerRange{0, depth->is_constant() && depth->constant->size() == 1
                               ? std::max<int64_t>(depth->constant->integers()[0], 1) - 1
                               : 0};
  }
  return std::nullopt;
}

bool hands_on(const Node& node, size_t operand) {
  static constexpr std::string_view kOperators[] = {"Cast",    "Reshape",  "View",   "Unsqueeze", "Squeeze",
                                                    "Flatten", "Identity", "Expand", "Transpose", "Slice",
                                                    "Concat",  "Split",    "Tile"};
  const std::string_view op = node.op_name();
  return std::ranges::find(kOperators, op) != std::end(kOperators) && (operand == 0 || op == "Concat");
}

/// Wide integers that are computed with as floats or tested as truth values are masks.
bool is_mask(const Node& node, const Value* value) {
  const bool wide = value->type.dtype == DType::i32 || value->type.dtype == DType::i64;
  return wide && node.op_name() == "Cast" && !is_integer(node.output()->type.dtype);
}

void narrow(std::optional<IntegerRange>& range, const std::optional<IntegerRange>& other) {
  if (!other) return;
  range = range ? IntegerRange{std::max(range->low, other->low), std::min(range->high, other->high)} : *other;
}

std::optional<IntegerRange> accepted(const Value* value, int depth) {
  std::optional<IntegerRange> range;
  if (depth > kMaxDepth) return range;
  for (const Use& use : value->uses) {
    narrow(range, accepted_by(*use.node, use.index));
    if (is_mask(*use.node, value)) narrow(range, IntegerRange{0, 1});
    if (!hands_on(*use.node, use.index)) continue;
    for (const Value* output : use.node->outputs)
      if (output != nullptr) narrow(range, accepted(output, depth + 1));
  }
  return range;
}

}  // namespace

std::optional<IntegerRange> accepted_range(const Value* value) {
  if (!is_integer(value->type.dtype)) return std::nullopt;
  std::optional<IntegerRange> range = accepted(value, 0);
  if (range) range->low = std::min(range->low, range->high);
  return range;
}

}  // namespace hone
