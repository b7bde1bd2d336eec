// SPDX-License-Identifier: Apache-2.0
//
// Regions that begin with sums of products of bytes (MatMulInteger, ConvInteger), read once for all sources, and what a kernel's
// code keeps of them: the sums themselves; or the sums as floats, times a factor, then an epilogue; or bytes again.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "regions/conv_region.h"
#include "regions/region_match.h"

namespace hone {

/// What sums are multiplied by as floats: nothing, so that they stay integers; one number; a number for each column.
enum class Factor { none, one, columns };
constexpr std::array<std::string_view, 3> field_names(Factor) { return {"none", "one", "columns"}; }

/// The operand's zero point, and what becomes of the sums: + an integer, times the factor, the epilogue, in this order: + bias, an
/// activation that comes before the residual, `rounding` to bytes and back, + residual, an activation behind it, `result`.
struct SumsCode {
  int64_t zero_input = -1;  // which of the region's inputs is its zero point, -1: it is known
  int64_t zero = 0;
  Factor factor = Factor::none;
  int64_t factor_input = -1;  // which of the region's inputs is the factor, -1: a constant
  Quantization rounding = {}, residual = {}, result = {};
  static void fields(auto& self, auto& visit) {
    visit("zero_input", self.zero_input, -1, kMostOperands - 1);
    visit("zero", self.zero, -128, 255);
    visit("factor", self.factor);
    visit("factor_input", self.factor_input, -1, kMostOperands - 1);
    Quantization::fields(self.rounding, visit, "rounding");
    Quantization::fields(self.residual, visit, "residual");
    Quantization::fields(self.result, visit, "result");
  }

  int64_t factors(int64_t columns) const { return factor == Factor::none ? 0 : factor == Factor::one ? 1 : columns; }
  /// Throws Error where inputs do not exist, or they, the residual or the result have other types or sizes.
  void require_operands(const EpilogueCode& epilogue, int64_t columns, const KernelShapes& shapes) const;
};

/// [..., K] to [..., N], with constant weights.
struct IntegerLinearCode {
  static constexpr int64_t kMostColumns = 1 << 28;

  int64_t input = 0;  // which of the region's inputs is multiplied
  int64_t n = 1, k = 1;
  EpilogueCode epilogue = {};
  SumsCode sums = {};
  static void fields(auto& self, auto& visit) {
    visit("input", self.input, 0, kMostOperands - 1);
    visit("n", self.n, 1, kMostColumns);
    visit("k", self.k, 1, kMostColumns);
    EpilogueCode::fields(self.epilogue, visit);
    SumsCode::fields(self.sums, visit);
  }

  /// Throws Error where operands and result do not exist or do not fit together.
  void require_operands(const KernelShapes& shapes) const;
};

/// [..., M, K] times [..., K, N], both made as the network runs, with zero points that are known.
struct IntegerProductCode {
  int64_t a = 0, b = 1;       // which of the region's inputs
  bool transposed_b = false;  // [..., N, K]
  int64_t b_zero = 0;
  EpilogueCode epilogue = {};
  SumsCode sums = {};
  static void fields(auto& self, auto& visit) {
    visit("a", self.a, 0, kMostOperands - 1);
    visit("b", self.b, 0, kMostOperands - 1);
    visit("transposed_b", self.transposed_b);
    visit("b_zero", self.b_zero, -128, 255);
    EpilogueCode::fields(self.epilogue, visit);
    SumsCode::fields(self.sums, visit);
  }

  /// Throws Error where operands and result do not exist or do not fit together.
  void require_operands(const KernelShapes& shapes) const;
};

struct IntegerConvCode {
  ConvCode conv;
  SumsCode sums = {};
  static void fields(auto& self, auto& visit) {
    ConvCode::fields(self.conv, visit);
    SumsCode::fields(self.sums, visit);
  }
  void require_operands(const KernelShapes& shapes) const;
};

/// Its refusal says why there is more than such sums.
struct SumsRegion {
  RegionMatch match;

  const Node& node() const { return *match.anchor; }
  /// The constant factor: one number or one per column; empty when it is an input, or there is none.
  std::vector<float> factor() const;
  /// What is added to the sums, one value per column.
  std::vector<int32_t> addends(int64_t columns) const;
  /// One value per column; empty when there is none.
  std::vector<float> bias(int64_t columns) const;
};
struct IntegerLinearRegion : SumsRegion {
  IntegerLinearCode code;
};
struct IntegerConvRegion : SumsRegion {
  IntegerConvCode code;
};
struct IntegerProductRegion : SumsRegion {
  IntegerProductCode code;
};

/// The weights of all columns, signed: unsigned ones less 128.
struct SignedWeights {
  std::vector<int32_t> values;  // [column][tap][channel of the group]
  std::vector<int32_t> zeros;   // of each column
  int64_t depth = 1, taps = 1;

  /// MatMulInteger's [K, N] or ConvInteger's [M, C, taps...].
  explicit SignedWeights(const Node& node);
  bool have_zeros() const;
  /// The same products, with zero points of zero.
  void take_off_zeros();
  /// K w - sum b of a column, wrapped around.
  uint32_t lean(int64_t column) const;
};

/// Nothing when the region does not begin with MatMulInteger. Refused where its weights are no constant matrix.
std::optional<IntegerLinearRegion> read_integer_linear_region(const Graph& region);
/// Nothing when the region does not begin with MatMulInteger of two operands that are not constant.
std::optional<IntegerProductRegion> read_integer_product_region(const Graph& region);
/// The same of ConvInteger.
std::optional<IntegerConvRegion> read_integer_conv_region(const Graph& region);

}  // namespace hone
