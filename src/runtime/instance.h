// SPDX-License-Identifier: Apache-2.0
//
// ShapeInstance: everything about one stage of a profile that follows from concrete sizes. Immutable once made.
//
// A profile's steps fall into stages: a stage ends where the next step needs a data-dependent size. Almost every
// model has one stage, made once per set of input shapes. Buffers that a stage writes lie in that stage's arena.
#pragma once

#include <memory>
#include <vector>

#include "device/device.h"
#include "plan/plan.h"

namespace hone {

/// The steps [begin, end) of a profile.
struct StageRange {
  size_t begin = 0, end = 0;
};

struct ShapeInstance {
  SymbolValues symbols;
  StageRange steps;
  std::vector<ConcreteType> buffers;                   // by BufferId; filled in where this stage reads or writes
  std::vector<std::shared_ptr<const Kernel>> kernels;  // by step from steps.begin; null: nothing to launch
  std::vector<int64_t> offsets;                        // by BufferId: place in the stage's arena, -1 outside
  int64_t workspace_offset = 0;
  int64_t arena_bytes = 0;  // activations and workspace
};

}  // namespace hone
