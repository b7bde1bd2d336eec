// SPDX-License-Identifier: Apache-2.0
//
// Regions that begin with a matmul of floats with constant weights of few bits (QuantizedLinear), read once for all sources. To a
// plan they are linear layers; their weights come out in one form.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "regions/matmul_region.h"

namespace hone {

/// What a code stands for: itself, a float of eight bits, or a number of a table (ops/code_tables.h).
enum class CodeKind { integer, e4m3, e5m2, e2m1, fp4, nf4 };
constexpr std::array<std::string_view, 6> field_names(CodeKind) {
  return {"integer", "e4m3", "e5m2", "e2m1", "fp4", "nf4"};
}
/// Of a table, what code_table() knows it by.
constexpr std::string_view table_name(CodeKind kind) { return field_names(kind)[static_cast<size_t>(kind)]; }
constexpr bool is_table(CodeKind kind) { return kind >= CodeKind::e2m1; }

/// Weight (p, j) is (number of codes[p N + j] - zeros[p / block N + j]) scales[p / block N + j].
struct QuantizedWeights {
  int64_t n = 1, k = 1;
  int64_t block = 1;  // rows of a column that share a scale; the last block may be shorter
  int bits = 4;       // of a code: 4 or 8
  CodeKind kind = CodeKind::integer;
  std::vector<int8_t>
      codes;  // signed: unsigned ones and places in a table less the middle of their range, and so zero points
  std::vector<float> scales;   // with the region's scale
  std::vector<float> zeros;    // empty where all are 0
  bool integer_zeros = false;  // that fit a signed byte

  int64_t blocks() const { return (k + block - 1) / block; }
};

struct QuantizedLinearRegion {
  RegionMatch match;  // its refusal says why there is more than such a matmul with an epilogue
  LinearCode code;

  const Node& node() const { return *match.anchor; }
  CodeKind kind() const;
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
