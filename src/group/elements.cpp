// SPDX-License-Identifier: Apache-2.0
#include "group/elements.h"

#include <algorithm>
#include <type_traits>

#include "tensor/tensor.h"

namespace hone {
namespace {

/// What a type is computed in: integers wrap as their unsigned kin do.
template <typename T>
auto wide(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) return static_cast<float>(value);
  else if constexpr (std::is_integral_v<T>) return static_cast<uint64_t>(value);
  else return value;
}

template <typename T>
T reduced(ReduceKind kind, T a, T b) {
  if (kind == ReduceKind::max) return wide(a) < wide(b) ? b : a;
  if (kind == ReduceKind::min) return wide(b) < wide(a) ? b : a;
  return kind == ReduceKind::prod ? static_cast<T>(wide(a) * wide(b)) : static_cast<T>(wide(a) + wide(b));
}

/// Integers are compared as they are.
template <typename T>
requires(std::is_integral_v<T>) T reduced_extreme(ReduceKind kind, T a, T b) {
  return kind == ReduceKind::max ? std::max(a, b) : std::min(a, b);
}

template <typename T, ReduceKind kKind>
void reduce(void* to, const void* a, const void* b, size_t elements) {
  auto* out = static_cast<T*>(to);
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  constexpr bool kExtreme = kKind == ReduceKind::max || kKind == ReduceKind::min;
  for (size_t i = 0; i < elements; ++i) {
    if constexpr (kExtreme && std::is_integral_v<T>) out[i] = reduced_extreme(kKind, x[i], y[i]);
    else out[i] = reduced(kKind, x[i], y[i]);
  }
}

template <typename T>
ReduceFunction function_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::prod: return reduce<T, ReduceKind::prod>;
    case ReduceKind::max: return reduce<T, ReduceKind::max>;
    case ReduceKind::min: return reduce<T, ReduceKind::min>;
    default: return reduce<T, ReduceKind::sum>;
  }
}

}  // namespace

ReduceFunction reduce_function(ReduceKind kind, DType dtype) {
  return visit(dtype, [&]<typename T>() -> ReduceFunction {
    if constexpr (std::is_same_v<T, bool>) throw Error("bool cannot be reduced");
    else return function_of<T>(kind);
  });
}

void divide(void* data, size_t elements, DType dtype, int by) {
  visit(dtype, [&]<typename T>() {
    auto* values = static_cast<T*>(data);
    for (size_t i = 0; i < elements; ++i) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>)
        values[i] = static_cast<T>(static_cast<float>(values[i]) / static_cast<float>(by));
      else values[i] = static_cast<T>(values[i] / static_cast<T>(by));
    }
  });
}

}  // namespace hone
