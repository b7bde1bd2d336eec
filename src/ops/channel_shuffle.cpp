// SPDX-License-Identifier: Apache-2.0

#include "ops/channel_shuffle.h"

#include <algorithm>

#include "ops/ops.h"

namespace hone {
namespace {

/// The node that makes the value, where it is of that operator and nothing else reads the value.
Node* sole(const Value* value, const OpDef& op) {
  Node* node = value == nullptr ? nullptr : value->producer;
  return node != nullptr && node->is(op) && value->uses.size() == 1 ? node : nullptr;
}

/// 0 2 1 3 4 ...
bool exchanges_groups(const Node& transpose) {
  Dims perm = transpose.attrs.has("perm") ? transpose.attrs.integers("perm") : Dims();
  if (perm.size() < 4) return false;
  std::swap(perm[1], perm[2]);
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return true;
}

}  // namespace

std::optional<ChannelShuffle> channel_shuffle(Node* last) {
  if (!last->is(ops::view)) return std::nullopt;
  Node* transpose = sole(last->input(0), ops::transpose);
  Node* first = transpose == nullptr ? nullptr : sole(transpose->input(0), ops::view);
  if (first == nullptr || !exchanges_groups(*transpose)) return std::nullopt;
  const Shape &from = first->input(0)->type.shape, &grouped = first->output()->type.shape,
              &to = last->output()->type.shape;
  if (from.rank() < 3 || from.rank() > 5 || from != to || grouped.rank() != from.rank() + 1) return std::nullopt;
  const bool only_channels = from[0] == grouped[0] && std::equal(from.begin() + 2, from.end(), grouped.begin() + 3);
  if (!only_channels || !grouped[1].is_constant() || !grouped[2].is_constant() || grouped[1].value() < 1)
    return std::nullopt;
  return ChannelShuffle{{first, transpose, last}, grouped[1].value()};
}

}  // namespace hone
