// SPDX-License-Identifier: Apache-2.0
//
// ShapeInstance: everything about a profile that follows from concrete input shapes. Immutable once made.
#pragma once

#include <memory>
#include <vector>

#include "backend/device.h"
#include "plan/plan.h"

namespace hone {

struct ShapeInstance {
  SymbolValues symbols;
  std::vector<ConcreteType> buffers;                        // by BufferId
  std::vector<std::shared_ptr<const Kernel>> kernels;       // by step; null for views
  std::vector<int64_t> offsets;                             // by BufferId: place in the arena, -1 outside
  int64_t workspace_offset = 0;
  int64_t arena_bytes = 0;                                  // activations and workspace
};

}  // namespace hone
