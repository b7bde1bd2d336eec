// SPDX-License-Identifier: Apache-2.0
//
// Regions that begin with a matmul, read once for all sources, and what a kernel's code keeps of them: Linear, whose
// weights are constant, and MatMul, numpy's batched matmul of two operands.
#pragma once

#include <optional>
#include <vector>

#include "ops/support.h"
#include "regions/operand_code.h"
#include "regions/region_match.h"

namespace hone {

/// [..., K] to [..., N].
struct LinearCode {
  static constexpr int64_t kMostColumns = 1 << 28;

  int64_t input = 0;  // which of the region's inputs is multiplied
  int64_t n = 1, k = 1;
  EpilogueCode epilogue = {};
  static void fields(auto& self, auto& visit) {
    visit("input", self.input, 0, kMostOperands - 1);
    visit("n", self.n, 1, kMostColumns);
    visit("k", self.k, 1, kMostColumns);
    EpilogueCode::fields(self.epilogue, visit);
  }

  /// Throws Error where operands and result, all of f32, do not exist or do not fit together.
  void require_operands(const KernelShapes& shapes) const;
};

struct LinearRegion {
  RegionMatch match;  // its refusal says why there is more than a matmul with an epilogue
  LinearCode code;
  bool transposed = false;  // weights are [N, K]

  const Node& node() const { return *match.anchor; }
  /// With the region's scale, as they lie in the model.
  Floats weights() const;
  /// N values; empty when there is none.
  std::vector<float> bias() const;
};

/// Nothing when the region does not begin with Linear.
std::optional<LinearRegion> read_linear_region(const Graph& region, Roundings roundings = Roundings::refused);
/// A region that is several of them, of one input and with constant weights and biases of the same sizes (queries, keys and
/// values), perhaps of codes: each, without an epilogue, in the order of the results. Else the one that read_linear_region() finds, or none.
std::vector<LinearRegion> read_linear_regions(const Graph& region, Roundings roundings = Roundings::refused);

struct MatmulCode {
  std::vector<OperandCode> operands;  // two
  float scale = 1;                    // of the matmul
  EpilogueCode epilogue = {};         // without bias
  static void fields(auto& self, auto& visit) {
    visit("operand", self.operands, 2);
    visit("scale", self.scale);
    EpilogueCode::fields(self.epilogue, visit);
  }
};

/// The sizes of operands and result. Throws Error where these, all of f32, do not exist or do not fit together.
struct MatmulSizes {
  Dims a, b, c;
  MatmulSizes(const MatmulCode& code, const KernelShapes& shapes);
};

struct MatmulRegion {
  RegionMatch match;  // with biases of the columns, which the code lacks
  MatmulCode code;
  std::vector<Tensor> constants = {};

  const Node& node() const { return *match.anchor; }
  /// One value per column of the result; empty when there is none.
  std::vector<float> bias() const;
};

/// Nothing when the region does not begin with MatMul.
std::optional<MatmulRegion> read_matmul_region(const Graph& region);

}  // namespace hone
