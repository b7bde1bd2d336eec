// SPDX-License-Identifier: Apache-2.0
//
// What a source is asked to solve: a region as a graph of its own, with symbols and at the sizes that are tuned for.
#pragma once

#include "builder/regions.h"
#include "device/tactic.h"

namespace hone {

/// The region as a problem, its symbols replaced by the sizes of the opt point.
Problem make_problem(const Region& region, const SymbolValues& opt, const DeviceInfo& device, const Precision& allowed);
/// The problem of bringing a tensor of this type into another layout.
Problem make_reformat_problem(const TensorType& type, const SymbolValues& opt, const DeviceInfo& device);
/// The key of a problem, in a line that begins with it or is an entry of a timing cache.
std::string problem_part(std::string_view line);
/// The problem with this key(), or of a line that begins with it: an entry of a timing cache. Throws Error for other texts.
Problem parse_problem(std::string_view line, const DeviceInfo& device);

}  // namespace hone
