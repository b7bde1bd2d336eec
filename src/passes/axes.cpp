// SPDX-License-Identifier: Apache-2.0
//
// Axis arithmetic; see axes.h.
#include "passes/axes.h"

#include <algorithm>

namespace hone {
namespace {

bool is_one(const Dim& dim) { return dim == Dim(1); }

/// The input axes of a size other than 1 in the order the permutation gives them.
Permutation moving_axes(const Shape& input, const Permutation& permutation) {
  Permutation moving;
  for (const int64_t axis : permutation)
    if (!is_one(input[static_cast<size_t>(axis)])) moving.push_back(axis);
  return moving;
}

}  // namespace

Permutation permutation_of(const Node* transpose) {
  if (transpose->attrs.has("perm")) return transpose->attrs.integers("perm");
  Permutation reversed(transpose->output()->type.shape.rank());
  for (size_t i = 0; i < reversed.size(); ++i) reversed[i] = static_cast<int64_t>(reversed.size() - 1 - i);
  return reversed;
}

bool is_identity(const Permutation& permutation) { return std::is_sorted(permutation.begin(), permutation.end()); }

Permutation compose(const Permutation& inner, const Permutation& outer) {
  Permutation result(outer.size());
  for (size_t i = 0; i < outer.size(); ++i) result[i] = inner[static_cast<size_t>(outer[i])];
  return result;
}

Permutation inverse(const Permutation& permutation) {
  Permutation result(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) result[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return result;
}

Shape permuted(const Shape& shape, const Permutation& permutation) {
  std::vector<Dim> dims;
  for (const int64_t axis : permutation) dims.push_back(shape[static_cast<size_t>(axis)]);
  return Shape(std::move(dims));
}

bool keeps_order(const Shape& input, const Permutation& permutation) {
  const Permutation moving = moving_axes(input, permutation);
  return std::is_sorted(moving.begin(), moving.end());
}

bool same_order(const Shape& input, const Permutation& a, const Permutation& b) {
  return moving_axes(input, a) == moving_axes(input, b);
}

std::optional<std::vector<AxisRange>> groups(const Shape& fine, const Shape& coarse) {
  const auto is_zero = [](const Dim& d) { return d == Dim(0); };
  if (std::any_of(fine.begin(), fine.end(), is_zero) || std::any_of(coarse.begin(), coarse.end(), is_zero))
    return std::nullopt;
  std::vector<AxisRange> result;
  size_t next = 0;
  for (const Dim& wanted : coarse) {
    AxisRange range{next, next};
    Dim product(1);
    if (is_one(wanted) && next < fine.rank() && is_one(fine[next])) ++next;
    while (product != wanted) {
      if (next == fine.rank()) return std::nullopt;
      product = product * fine[next++];
    }
    range.end = next;
    result.push_back(range);
  }
  for (; next < fine.rank(); ++next) {
    if (!is_one(fine[next]) || result.empty()) return std::nullopt;
    result.back().end = next + 1;
  }
  return result;
}

}  // namespace hone
