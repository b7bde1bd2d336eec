// SPDX-License-Identifier: Apache-2.0
//
// A QuantizeLinear or DequantizeLinear between f32 and bytes whose one scale and zero point are known: the kind that passes move,
// that regions take in as arithmetic, and of which two can undo each other.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace hone {

struct ByteScale {
  DType bytes;  // u8 or i8
  float scale;  // bytes times it stay normal, finite numbers
  float zero;
  bool operator==(const ByteScale&) const = default;
};

/// Nothing for other nodes.
std::optional<ByteScale> byte_scale(const Node& node);

/// What QuantizeLinear rounds: the quotient in the scale's type.
float rounded_quotient(DType scale, float quotient);

}  // namespace hone
