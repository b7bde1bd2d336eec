// SPDX-License-Identifier: Apache-2.0
//
// From a region that only moves elements to what its kernel keeps, and from that to the request that plan_copies() answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/code.h"
#include "device/tactic.h"
#include "regions/copy_plan.h"

namespace hone {

/// The contents of an integer operand as size expressions, for parameters that may depend on the input shapes.
std::optional<std::vector<std::string>> size_texts(const Value* value);
/// The node whose result is copied together: the region's only one, or a Concat, or the last that shuffles channels, behind Slices
/// and Concats that nothing else reads. Null for other regions.
const Node* copy_root(const Graph& region);
/// Reads the whole region; returns why not. `constants` in the order in which the code numbers them.
std::string read_copy(const Problem& problem, CopyCode& code, std::vector<Tensor>& constants);
/// The constants that read_copy() gave. Throws Error on a code that contradicts itself or its tensors.
std::vector<ConstantSpec> copy_constants(const CopyCode& code, const KernelShapes& shapes);
/// The inverse of read_copy(), at concrete shapes. Throws Error on a code that does not fit them.
CopyRequest copy_request(const CopyCode& code, const KernelShapes& shapes);

}  // namespace hone
