// SPDX-License-Identifier: Apache-2.0
//
// What inputs hold where nobody gave values: drawn with a fixed seed, the same in every run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tensor/tensor.h"

namespace hone {

inline constexpr uint64_t kRandomSeed = 2024;

/// Both ends included.
struct RandomRange {
  int64_t low = 0, high = 0;
};
struct RandomInput {
  std::string_view name;
  DType dtype = DType::f32;
  Layout layout = Layout::linear;
  std::optional<RandomRange> range = {};
};

/// Integers from the input's range where there is one; else floats in [-1, 1]; bool, int32 and int64 0 or 1; int8 and uint8 their
/// whole range. Values depend on the name and the seed alone. Padding of blocked layouts is zero.
void fill_random(const RandomInput& input, const Dims& dims, std::span<std::byte> memory, uint64_t seed = kRandomSeed);

}  // namespace hone
