// SPDX-License-Identifier: Apache-2.0
//
// Which layouts a family of kernels can offer, where the answer is the same on every device.
#pragma once

#include <string_view>

#include "device/tactic.h"

namespace hone {

/// One offer per layout that input 0 and the result may have together; other inputs stay linear.
void offer_layouts(const Problem& problem, std::string_view source, std::string_view family, Candidates& out);

/// Why a single-node region is not one tensor in, one out, of the same element type and not empty; empty when it is.
std::string reason_not_unary(const Problem& problem, const Node& node);

/// Offers of the family "copy" for a region that read_copy() can read: reformats between all layouts, movements where the
/// channel axis keeps its place.
void offer_copies(const Problem& problem, std::string_view source, Candidates& out);

}  // namespace hone
