// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/quant/integer_weights.h"

#include <algorithm>

#include "base/checked.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

/// In steps. A matrix tile holds 16 steps of 16 columns, and the two tiles of a panel's columns lie side by side.
int64_t place_in_panel(IntegerDot dot, int64_t step, int64_t column, int64_t panel) {
  if (dot != IntegerDot::tiles) return step * panel + column;
  constexpr int64_t kSide = kTileBytes / kTileRow;
  return (step / kSide * panel / kSide + column / kSide) * kSide * kSide + step % kSide * kSide + column % kSide;
}

template <typename T>
Tensor packed_weights(const SignedWeights& weights, const IntegerShape& shape, const IntegerConfig& config,
                      int64_t panel) {
  const ColumnOrder order = in_panels(shape, panel);
  const int64_t step = step_of(config.dot), run = shape.run(), row = config.steps(shape) * step;
  TensorBuilder builder(sizeof(T) == 1 ? DType::i8 : DType::i16, {order.padded, row});
  const std::span<T> to = builder.data<T>();
  std::ranges::fill(to, T{0});
  const int32_t* from = weights.values.data();
  for (int64_t column = 0; column < order.columns; ++column) {
    const int64_t place = order.place(column), first = place / panel * panel * row;
    for (int64_t tap = 0; tap < weights.taps; ++tap)
      for (int64_t c = 0; c < weights.depth; ++c) {
        const int64_t in_run = tap % run * config.pixel_steps(shape) + c / step,
                      at = place_in_panel(config.dot, tap / run * config.run_steps(shape) + in_run, place % panel,
                                          panel);
        to[static_cast<size_t>(first + at * step + c % step)] = static_cast<T>(*from++);
      }
  }
  return builder.finish();
}

template <typename T>
Tensor placed(const ColumnOrder& order, const std::vector<T>& values) {
  std::vector<T> result(static_cast<size_t>(order.padded), T{0});
  for (int64_t column = 0; column < order.columns * order.copies; ++column)
    result[static_cast<size_t>(order.place(column))] = values[static_cast<size_t>(column % order.columns)];
  return Tensor::of<T>({order.padded}, std::span<const T>(result));
}

}  // namespace

ColumnOrder in_panels(const IntegerShape& shape, int64_t panel) {
  const int64_t columns = shape.columns, padded = round_up(columns, panel);
  return {shape.groups * columns, shape.groups * padded,
          [=](int64_t column) { return column / columns * padded + column % columns; }};
}

std::vector<Tensor> integer_constants(Tensor packed, const ColumnOrder& order, const IntegerSums& sums,
                                      const SignedWeights& weights, const SumsRegion& region, int64_t added) {
  const bool known = sums.sums.zero_input < 0;
  const auto zero = static_cast<uint32_t>(sums.sums.zero + added);
  std::vector<int32_t> base = region.addends(order.columns), leans;
  for (size_t j = 0; j < base.size(); ++j) {
    const uint32_t lean = weights.lean(static_cast<int64_t>(j));
    leans.push_back(static_cast<int32_t>(lean));
    if (known) base[j] = static_cast<int32_t>(static_cast<uint32_t>(base[j]) + zero * lean);
  }
  std::vector<Tensor> constants{std::move(packed), placed(order, base)};
  if (!known) constants.push_back(placed(order, leans));
  if (sums.column_zeros) constants.push_back(placed(order, weights.zeros));
  if (const std::vector<float> factor = region.factor(); !factor.empty())
    constants.push_back(sums.sums.factor == Factor::one ? Tensor::of<float>({1}, std::span<const float>(factor))
                                                        : placed(order, factor));
  if (sums.epilogue.bias) constants.push_back(placed(order, region.bias(order.columns)));
  return constants;
}

std::vector<ConstantSpec> integer_constants(ConstantSpec packed, const IntegerSums& sums, int64_t padded) {
  std::vector<ConstantSpec> specs{std::move(packed), {DType::i32, {padded}}};
  if (sums.sums.zero_input >= 0) specs.push_back({DType::i32, {padded}});
  if (sums.column_zeros) specs.push_back({DType::i32, {padded}});
  if (sums.sums.factor != Factor::none && sums.sums.factor_input < 0)
    specs.push_back({DType::f32, {sums.sums.factor == Factor::one ? 1 : padded}});
  if (sums.epilogue.bias) specs.push_back({DType::f32, {padded}});
  return specs;
}

std::vector<Tensor> integer_constants(const IntegerShape& shape, const IntegerConfig& config, const IntegerSums& sums,
                                      const SignedWeights& weights, const SumsRegion& region, Isa isa) {
  const int64_t panel = config.panel(isa);
  return integer_constants(weight_type(config.dot) == DType::i8
                               ? packed_weights<int8_t>(weights, shape, config, panel)
                               : packed_weights<int16_t>(weights, shape, config, panel),
                           in_panels(shape, panel), sums, weights, region, config.added(shape));
}

std::vector<ConstantSpec> integer_constants(const IntegerShape& shape, const IntegerConfig& config,
                                            const IntegerSums& sums, Isa isa) {
  require_sizes(Dims{shape.groups, shape.columns + config.panel(isa), shape.depth + kStepBytes, shape.taps()});
  const int64_t padded = in_panels(shape, config.panel(isa)).padded;
  return integer_constants({weight_type(config.dot), {padded, config.steps(shape) * step_of(config.dot)}}, sums,
                           padded);
}

}  // namespace hone::cpu
