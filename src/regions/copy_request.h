// SPDX-License-Identifier: Apache-2.0
//
// From a region that only moves elements to the attributes of its kernel, and from those to the request that plan_copies()
// answers. The attributes hold sizes as expressions, so that one compiled tactic serves every shape.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/tactic.h"
#include "regions/copy_plan.h"

namespace hone {

/// The contents of an integer operand as size expressions, for parameters that may depend on the input shapes.
std::optional<std::vector<std::string>> size_texts(const Value* value);
/// The node whose result is copied together: the region's only one, or a Concat behind Slices and Concats that nothing else
/// reads. Null for other regions.
const Node* copy_root(const Graph& region);
/// Reads the whole region; returns why not. `constants` in the order in which the sources number them.
std::string read_copy(const Problem& problem, Attrs& attrs, std::vector<Tensor>& constants);
/// The inverse, at concrete shapes. Throws Error on attributes that read_copy() does not write.
CopyRequest copy_request(const Attrs& attrs, const KernelShapes& shapes);

}  // namespace hone
