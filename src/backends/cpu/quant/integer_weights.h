// SPDX-License-Identifier: Apache-2.0
//
// The constants of kernels of integer sums: packed weights, what the sums begin with, factors and biases in panels.
#pragma once

#include <functional>
#include <vector>

#include "backends/cpu/quant/integer_kernel.h"
#include "device/code.h"

namespace hone::cpu {

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

/// Where a kernel keeps what belongs to a column of the result; the places between are zero. Of all columns there may be several
/// copies, whose places are those of further columns.
struct ColumnOrder {
  int64_t columns = 1, padded = 1;
  std::function<int64_t(int64_t)> place;
  int64_t copies = 1;
};
/// Whole panels of each group.
ColumnOrder in_panels(const IntegerShape& shape, int64_t panel);

/// The constants of a kernel behind its packed weights; `added` is what is added to A.
std::vector<Tensor> integer_constants(Tensor packed, const ColumnOrder& order, const IntegerSums& sums,
                                      const SignedWeights& weights, const SumsRegion& region, int64_t added);
/// As a plan has to bring them.
std::vector<ConstantSpec> integer_constants(ConstantSpec packed, const IntegerSums& sums, int64_t padded);

/// The same with weights packed in panels of the configuration.
std::vector<Tensor> integer_constants(const IntegerShape& shape, const IntegerConfig& config, const IntegerSums& sums,
                                      const SignedWeights& weights, const SumsRegion& region, Isa isa);
std::vector<ConstantSpec> integer_constants(const IntegerShape& shape, const IntegerConfig& config,
                                            const IntegerSums& sums, Isa isa);

}  // namespace hone::cpu
