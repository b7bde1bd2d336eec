// SPDX-License-Identifier: Apache-2.0
//
// A node whose result is rounded to codes before it is stored (FakeQuantize), and how source text says so.
#pragma once

#include <functional>
#include <string>

#include "device/tactic.h"
#include "regions/epilogue.h"

namespace hone::cuda {

/// A region of one node, perhaps with the FakeQuantize or Encode that alone reads it; no node where it is something else.
struct RoundedNode {
  const Node* node = nullptr;
  const Node* rounding = nullptr;
  const Node* last() const { return rounding != nullptr ? rounding : node; }  // whose result the region's is
};
RoundedNode read_rounded(const Problem& problem);

/// A number as source text has it.
std::string real_text(float value);
using NumberText = std::function<std::string(float)>;

/// What a FakeQuantize makes of a sum.
std::string rounding_call(std::string_view sum, const Rounding& to, const NumberText& number = real_text);
/// The same as a code, an Encode's.
std::string encoding_call(std::string_view sum, const Rounding& to, float zero, const NumberText& number = real_text);
/// Result, the element type of what is stored, and ROUND(x), which makes one of a float: x itself where there is no rounding.
std::string rounding_text(const RoundedNode& rounded);
}  // namespace hone::cuda
