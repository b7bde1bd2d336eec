// SPDX-License-Identifier: Apache-2.0
//
// Rotary embeddings as exporters spell them out, x * cos + rotate_half(x) * sin, as one Rotate: slices, negation and concatenation
// would be three kernels that only move what the fourth reads. Runs behind the moves, since transposes sink below the parts.
#include "ops/ops.h"
#include "passes/passes.h"
#include "passes/slices.h"

namespace hone::passes {
namespace {

constexpr size_t kMostRank = 4;  // what kernels take

bool is_part(const Match& match, std::string_view name, int64_t begin, int64_t end) {
  const std::optional<SlicePart> part = part_of(match[name]);
  return part && part->whole == match["x"] && part->range.axis + 1 == match["x"]->type.shape.rank() &&
         part->range.begin == begin && part->range.end == end;
}

bool exchanges_halves(const Match& match) {
  const TensorType &x = match["x"]->type, &cosines = match["cos"]->type;
  const size_t rank = x.shape.rank();
  if (rank == 0 || rank > kMostRank || cosines.shape.rank() == 0) return false;
  const Dim& depth = x.shape[rank - 1];
  return !match["x"]->is_constant() && (x.dtype == DType::f32 || x.dtype == DType::f16 || x.dtype == DType::bf16) &&
         depth.is_constant() && depth.value() % 2 == 0 && cosines == match["sin"]->type &&
         cosines.shape[cosines.shape.rank() - 1] == depth && match.root()->output()->type == x &&
         normalize_axis(match.node("turned")->attrs.integer("axis"), rank) + 1 == rank &&
         is_part(match, "low", 0, depth.value() / 2) && is_part(match, "high", depth.value() / 2, depth.value());
}

const Rewrite kRotation[] = {
    {.name = "rotation",
     .match = R"(
       %straight = Mul(%x, %cos)
       %negated = Neg(%high)
       %turned = Concat(%negated, %low)
       %across = Mul(%turned, %sin)
       %y = Add(%straight, %across))",
     .replace = "%y = Rotate(%x, %cos, %sin)",
     .when = exchanges_halves},
};

}  // namespace

std::span<const Rewrite> fuse_rotation() { return kRotation; }

}  // namespace hone::passes
