// SPDX-License-Identifier: Apache-2.0
//
// What the operator Collective means: all its ranks, evaluated in one process.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace hone {

namespace ops {
extern const OpDef collective;
}

/// The results by place in the group, of operands by place. Throws Error where they do not fit each other.
std::vector<Tensor> evaluate_collective(const Attrs& attrs, const std::vector<Tensor>& operands);

}  // namespace hone
