// SPDX-License-Identifier: Apache-2.0
//
// Regions that begin with a matmul of f32 with constant weights of few bits (QuantizedLinear), read once for all sources. To a
// plan they are linear layers; their weights come out in one form.
#pragma once

#include <optional>
#include <vector>

#include "regions/matmul_region.h"

namespace hone {

/// Weight (p, j) is (codes[p N + j] - zeros[p / block N + j]) scales[p / block N + j].
struct QuantizedWeights {
  int64_t n = 1, k = 1;
  int64_t block = 1;           // rows of a column that share a scale; the last block may be shorter
  int bits = 4;                // of a code: 4 or 8
  std::vector<int8_t> codes;   // signed: unsigned ones less the middle of their range, and so their zero points
  std::vector<float> scales;   // with the region's scale
  std::vector<float> zeros;    // empty where all are 0
  bool integer_zeros = false;  // that fit a signed byte

  int64_t blocks() const { return (k + block - 1) / block; }
};

struct QuantizedLinearRegion {
  RegionMatch match;  // its refusal says why there is more than such a matmul with an epilogue
  LinearCode code;

  const Node& node() const { return *match.anchor; }
  /// Known without reading the weights.
  bool may_have_zeros() const;
  QuantizedWeights weights() const;
  /// N values; empty when there is none.
  std::vector<float> bias() const;
};

/// Nothing when the region does not begin with QuantizedLinear. Refused where its weights are no constants.
std::optional<QuantizedLinearRegion> read_quantized_linear_region(const Graph& region);
/// A region that is several of them, of one input and with weights of one form but for their columns: each, without an epilogue, in
/// the order of the results. Else the one that read_quantized_linear_region() finds, or none.
std::vector<QuantizedLinearRegion> read_quantized_linear_regions(const Graph& region);

}  // namespace hone
