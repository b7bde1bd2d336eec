// SPDX-License-Identifier: Apache-2.0
#include "tensor/difference.h"

#include <array>
#include <cmath>

namespace hone {
namespace {

struct Norms {
  double difference = 0, expected = 0;  // squares
  double relative() const { return difference == 0 ? 0 : std::sqrt(difference / std::max(expected, 1e-30)); }
};

/// Infinite or NaN where an element is.
Norms of_finite(std::span<const float> found, std::span<const float> expected) {
  constexpr size_t kLanes = 8;  // sums that do not wait for each other
  std::array<double, kLanes> difference{}, norm{};
  size_t at = 0;
  for (; at + kLanes <= found.size(); at += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double x = found[at + lane], y = expected[at + lane];
      difference[lane] += (x - y) * (x - y);
      norm[lane] += y * y;
    }
  for (; at < found.size(); ++at) {
    const double x = found[at], y = expected[at];
    difference[0] += (x - y) * (x - y);
    norm[0] += y * y;
  }
  Norms sums;
  for (size_t lane = 0; lane < kLanes; ++lane) sums.difference += difference[lane], sums.expected += norm[lane];
  return sums;
}

/// All values of f16: looking one up costs a fraction of converting it.
const std::vector<float>& values_of_half() {
  static const std::vector<float> values = [] {
    std::vector<float> all(size_t{1} << 16);
    for (size_t bits = 0; bits < all.size(); ++bits) all[bits] = half_to_float(static_cast<uint16_t>(bits));
    return all;
  }();
  return values;
}

/// Elements of f32, f16 or bf16 as f32; `room` holds them where they have to be made.
std::span<const float> as_floats(const Tensor& tensor, std::vector<float>& room) {
  if (tensor.dtype() == DType::f32) return tensor.data<float>();
  room.resize(static_cast<size_t>(tensor.size()));
  const auto* bits = reinterpret_cast<const uint16_t*>(tensor.bytes().data());
  const float* values = values_of_half().data();
  const bool half = tensor.dtype() == DType::f16;
  for (size_t i = 0; i < room.size(); ++i) room[i] = half ? values[bits[i]] : bfloat_to_float(bits[i]);
  return room;
}

bool has_float_values(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

Norms of_any(const Tensor& found, const Tensor& expected) {
  Norms sums;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double x = found.real(i), y = expected.real(i);
    const bool same = x == y || (std::isnan(x) && std::isnan(y));
    if (!same) sums.difference += (x - y) * (x - y);
    if (!same || std::isfinite(y)) sums.expected += y * y;
  }
  return sums;
}

}  // namespace

double relative_difference(const Tensor& found, const Tensor& expected) {
  if (found.dims() != expected.dims()) return INFINITY;
  if (has_float_values(found.dtype()) && has_float_values(expected.dtype())) {
    std::vector<float> room[2];
    const Norms sums = of_finite(as_floats(found, room[0]), as_floats(expected, room[1]));
    if (std::isfinite(sums.difference) && std::isfinite(sums.expected)) return sums.relative();
  }
  return of_any(found, expected).relative();
}

}  // namespace hone
