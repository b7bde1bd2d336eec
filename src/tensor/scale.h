// SPDX-License-Identifier: Apache-2.0
//
// How a tensor's floats are brought to 8 bits: real = (code - zero) * scale.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hone {

struct TensorScale {
  float scale = 1;
  int zero = 0;
};
/// By the tensors' names.
using TensorScales = std::map<std::string, TensorScale, std::less<>>;

/// Signed codes, symmetric around a zero point of 0, as TensorRT reads them; unsigned ones that use a range as it is; or floats of 8 bits
/// (E4M3).
enum class Codes : uint8_t { symmetric, asymmetric, f8e4m3 };

}  // namespace hone
