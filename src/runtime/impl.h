// SPDX-License-Identifier: Apache-2.0
//
// The private parts of Engine and ExecutionContext.
#pragma once

#include <map>
#include <mutex>

#include "runtime/engine.h"
#include "runtime/instance.h"

namespace hone {

struct Engine::Impl {
  std::vector<const void*> constants;            // device addresses, by index into Plan::constants
  std::vector<Buffer> constant_memory;           // empty where the device reads host memory
  std::mutex mutex;                              // guards instances; never taken by a prepared context
  std::map<std::pair<int, SymbolValues>, std::shared_ptr<const ShapeInstance>> instances;
};

/// One operand of one launch that points into network input or output `io`.
struct IoOperand {
  size_t launch, operand;
  bool is_input;
};

/// A shape instance bound to a context's arena.
struct Prepared {
  std::shared_ptr<const ShapeInstance> instance;
  std::vector<Dims> input_shapes;                    // by io index; empty for outputs
  std::unique_ptr<Recording> recording;
  std::vector<size_t> step_of_launch;
  std::vector<std::vector<IoOperand>> io_operands;   // by io index
};

struct ExecutionContext::Impl {
  std::vector<Dims> shapes;                      // by io index; inputs as set, outputs of the present instance
  std::vector<bool> shape_known;
  std::vector<void*> bound;                      // by io index
  std::vector<BufferId> io_buffer;               // by io index
  std::map<SymbolValues, Prepared> prepared;
  Prepared* current = nullptr;
  bool pointers_changed = true;
  Buffer arena;
};

}  // namespace hone
