// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on axes: permutations, and how the sizes of a View group together.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace hone {

using Permutation = std::vector<int64_t>;  // output axis i is input axis p[i]

/// A Transpose node's permutation, also when it is the default.
Permutation permutation_of(const Node* transpose);
bool is_identity(const Permutation& permutation);
/// Transpose by `inner`, then by `outer`, as one permutation.
Permutation compose(const Permutation& inner, const Permutation& outer);
Permutation inverse(const Permutation& permutation);
Shape permuted(const Shape& shape, const Permutation& permutation);
/// Whether the permutation leaves the order of all axes of a size other than 1 as it is (the bytes do not move).
bool keeps_order(const Shape& input, const Permutation& permutation);
/// Whether transposing `input` by both permutations orders the axes of a size other than 1 alike.
bool same_order(const Shape& input, const Permutation& a, const Permutation& b);

struct AxisRange {
  size_t begin, end;
};
/// For each size of `coarse`, the run of sizes of `fine` whose product it is; nothing when they do not group that way.
std::optional<std::vector<AxisRange>> groups(const Shape& fine, const Shape& coarse);

}  // namespace hone
