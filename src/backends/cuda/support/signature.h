// SPDX-License-Identifier: Apache-2.0
//
// What a kernel was made for: element type, layout and sizes of its operands, results and constants, as part of its code.
// Machine code cannot be asked what it reads; so a plan's step has to bring exactly these.
#pragma once

#include <vector>

#include "device/code.h"
#include "device/tactic.h"

namespace hone::cuda {

void write_signature(Attrs& attrs, const Problem& problem, const Tactic& tactic, const std::vector<Tensor>& constants);
/// Throws Error where a step has other operands, results or constants.
void require_signature(const Attrs& attrs, const KernelShapes& shapes);
/// The sizes that constant `index` was made with.
Dims constant_dims(const Attrs& attrs, int64_t index);

}  // namespace hone::cuda
