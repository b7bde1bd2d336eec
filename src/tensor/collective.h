// SPDX-License-Identifier: Apache-2.0
//
// What several ranks do together with their tensors, as a call at concrete sizes: every rank makes the same one.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace hone {

enum class CollectiveKind : uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter
};
inline constexpr std::array<std::string_view, 8> kCollectiveNames{
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter"};
constexpr const auto& field_names(CollectiveKind) { return kCollectiveNames; }

enum class ReduceKind : uint8_t { sum, prod, max, min, avg };
inline constexpr std::array<std::string_view, 5> kReduceNames{"sum", "prod", "max", "min", "avg"};
constexpr const auto& field_names(ReduceKind) { return kReduceNames; }

/// The larger side is a row of equal blocks, one per rank that takes part: of the result (all_gather, gather), of the operand
/// (reduce_scatter, scatter), of both (all_to_all). Results that belong to the root alone are zeros elsewhere.
struct CollectiveForm {
  CollectiveKind kind = CollectiveKind::all_reduce;
  ReduceKind reduce = ReduceKind::sum;
  int root = 0;            // its place among those that take part
  std::vector<int> ranks;  // that take part, ascending; empty: all
  DType dtype = DType::f32;
  int64_t elements = 0;  // of the operand
  friend bool operator==(const CollectiveForm&, const CollectiveForm&) = default;
};

}  // namespace hone
