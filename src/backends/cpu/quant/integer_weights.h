// SPDX-License-Identifier: Apache-2.0
//
// The constants of kernels of integer sums: packed weights, what the sums begin with, factors and biases in panels.
#pragma once

#include <functional>
#include <vector>

#include "backends/cpu/quant/integer_kernel.h"
#include "device/code.h"

namespace hone::cpu {

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
