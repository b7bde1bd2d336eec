// SPDX-License-Identifier: Apache-2.0
//
// Each operator says what it accepts of an operand; those that hand integers on are looked through.
#include "ir/range.h"

#include <algorithm>

#include "ir/op.h"

namespace hone {
namespace {

constexpr int kMaxDepth = 8;  // of operators looked through: chains between an input and its consumer are short

/// Wide integers that are handed on as floats or truth values are masks.
bool is_mask(const Use& use, const Value* value) {
  const bool wide = value->type.dtype == DType::i32 || value->type.dtype == DType::i64;
  return wide && use.node->op->hands_on(use.index) && !is_integer(use.node->output()->type.dtype);
}

void narrow(std::optional<IntegerRange>& range, const std::optional<IntegerRange>& other) {
  if (!other) return;
  range = range ? IntegerRange{std::max(range->low, other->low), std::min(range->high, other->high)} : *other;
}

std::optional<IntegerRange> accepted(const Value* value, int depth) {
  std::optional<IntegerRange> range;
  if (depth > kMaxDepth) return range;
  for (const Use& use : value->uses) {
    const OpDef& op = *use.node->op;
    if (op.traits.accepts != nullptr) narrow(range, op.traits.accepts(*use.node, use.index));
    if (is_mask(use, value)) narrow(range, IntegerRange{0, 1});
    if (!op.hands_on(use.index)) continue;
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
