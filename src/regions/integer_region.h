// SPDX-License-Identifier: Apache-2.0
//
// Regions that begin with sums of products of bytes (MatMulInteger), read once for all sources, and what a kernel's code keeps of
// them: the sums themselves, or the sums as floats, times a factor, then an epilogue.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "regions/region_match.h"

namespace hone {

/// What sums are multiplied by as floats: nothing, so that they stay integers; one number; a number for each column.
enum class Factor { none, one, columns };
constexpr std::array<std::string_view, 3> field_names(Factor) { return {"none", "one", "columns"}; }

/// [..., K] to [..., N], with constant weights.
struct IntegerLinearCode {
  static constexpr int64_t kMostColumns = 1 << 28;

  int64_t input = 0;        // which of the region's inputs is multiplied
  int64_t zero_input = -1;  // which of them is its zero point, -1: it is known
  int64_t zero = 0;
  int64_t n = 1, k = 1;
  Factor factor = Factor::none;
  int64_t factor_input = -1;  // which of the region's inputs is the factor, -1: a constant
  EpilogueCode epilogue = {};
  static void fields(auto& self, auto& visit) {
    visit("input", self.input, 0, kMostOperands - 1);
    visit("zero_input", self.zero_input, -1, kMostOperands - 1);
    visit("zero", self.zero, -128, 255);
    visit("n", self.n, 1, kMostColumns);
    visit("k", self.k, 1, kMostColumns);
    visit("factor", self.factor);
    visit("factor_input", self.factor_input, -1, kMostOperands - 1);
    EpilogueCode::fields(self.epilogue, visit);
  }

  /// Throws Error where operands and result do not exist or do not fit together.
  void require_operands(const KernelShapes& shapes) const;
  int64_t factors() const { return factor == Factor::none ? 0 : factor == Factor::one ? 1 : n; }
};

struct IntegerLinearRegion {
  RegionMatch match;  // its refusal says why there is more than such a matmul
  IntegerLinearCode code;

  const Node& node() const { return *match.anchor; }
  /// The constant factor: as many as code.factors(); empty when it is an input.
  std::vector<float> factor() const;
  /// N values; empty when there is none.
  std::vector<float> bias() const;
};

/// Nothing when the region does not begin with MatMulInteger. Refused where its weights are no constant matrix.
std::optional<IntegerLinearRegion> read_integer_linear_region(const Graph& region);

}  // namespace hone
