// SPDX-License-Identifier: Apache-2.0
//
// The equation of an Einsum, with "..." written out: axes of the ellipsis are labelled '0', '1', … from the last one on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone {

struct EinsumEquation {
  std::vector<std::string> operands;  // one label per axis
  std::string result;
};

/// Throws Error when the equation does not fit the operands.
EinsumEquation parse_einsum(std::string_view text, const std::vector<size_t>& ranks);

}  // namespace hone
