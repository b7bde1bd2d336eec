// SPDX-License-Identifier: Apache-2.0
//
// A node whose result is rounded to codes before it is stored (FakeQuantize), and how source text says so.
#pragma once

#include <string>

#include "device/tactic.h"

namespace hone::cuda {

/// A region of one node, perhaps with the FakeQuantize that alone reads it; no node where it is something else.
struct RoundedNode {
  const Node* node = nullptr;
  const Node* rounding = nullptr;
};
RoundedNode read_rounded(const Problem& problem);

/// rounded(sum, ...) with a FakeQuantize's numbers.
std::string rounding_call(std::string_view sum, float scale, float low, float high, float of_nan);
/// ROUND(x), x itself where there is no rounding.
std::string rounding_text(const RoundedNode& rounded);
/// A number as source text has it.
std::string real_text(float value);

}  // namespace hone::cuda
