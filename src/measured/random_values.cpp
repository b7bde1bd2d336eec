// SPDX-License-Identifier: Apache-2.0
#include "measured/random_values.h"

#include <algorithm>
#include <random>

#include "base/hash.h"
#include "tensor/layout.h"

namespace hone {
namespace {

template <typename T>
T draw(std::mt19937_64& engine) {
  const uint64_t bits = engine();
  const double unit = static_cast<double>(bits >> 11) / 9007199254740992.0;  // [0, 1), the same with every library
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) return T(static_cast<float>(2 * unit - 1));
  else if constexpr (std::is_floating_point_v<T>) return static_cast<T>(2 * unit - 1);
  else if constexpr (sizeof(T) == 1 && !std::is_same_v<T, bool>) return static_cast<T>(bits >> 32);
  else return static_cast<T>(bits >> 63);
}

/// Floats of eight bits and fewer have codes for what is no number, so values are drawn; of integers every code is one.
uint8_t draw_small(DType dtype, std::mt19937_64& engine) {
  if (is_float(dtype)) return float_to_small(dtype, draw<float>(engine));
  return float_to_small(dtype, static_cast<float>(draw<int8_t>(engine) >> (8 - bits_of(dtype))));
}

template <typename T>
T draw_from(std::mt19937_64& engine, RandomRange range) {
  const uint64_t count = static_cast<uint64_t>(range.high) - static_cast<uint64_t>(range.low) + 1;
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(range.low) + (count == 0 ? engine() : engine() % count));
  else return T();
}

}  // namespace

void fill_random(const RandomInput& input, const Dims& dims, std::span<std::byte> memory, uint64_t seed) {
  const DType dtype = input.dtype;
  std::mt19937_64 engine(seed ^ hash64(input.name));
  AlignedBuffer linear(static_cast<size_t>(byte_size(dtype, dims)));
  if (is_small(dtype))
    for (size_t i = 0; i < linear.size(); ++i) linear.data()[i] = static_cast<std::byte>(draw_small(dtype, engine));
  else
    visit(dtype, [&]<typename T>() {
      T* values = reinterpret_cast<T*>(linear.data());
      std::generate_n(values, linear.size() / sizeof(T), [&] {
        return input.range && std::is_integral_v<T> ? draw_from<T>(engine, *input.range) : draw<T>(engine);
      });
    });
  std::memset(memory.data(), 0, memory.size());
  convert_layout(linear.data(), memory.data(), dtype, dims, Layout::linear, input.layout);
}

}  // namespace hone
