// SPDX-License-Identifier: Apache-2.0
//
// Machine code for a pointwise program: the two innermost loops, every value an f32 in a register. Operands and the result
// are f32, bf16, bytes or truth values in memory, in any mixture; a result in bytes saturates, and NaN becomes 0.
#pragma once

#include <memory>
#include <string>

#include "backends/cpu/jit/isa.h"
#include "regions/pointwise_program.h"

namespace hone::cpu {

class Emitter;

inline constexpr int kMaxCodeOperands = 8;

/// Offsets in the code depend on the order.
struct PointwiseArgs {
  const void* operands[kMaxCodeOperands];
  void* result;
  int64_t row_steps[kMaxCodeOperands];  // bytes from one row to the next
  int64_t result_step;
  int64_t rows;             // at least one
  int64_t vector_elements;  // of the whole vectors of a row
  int64_t tail;             // whether the last, partial vector of the row is done too
};

/// Why there is no code for this program; empty when there is.
std::string pointwise_code_refusal(const PointwiseProgram& program, DType result, Isa isa);

class PointwiseCode {
 public:
  /// `streams[k]`: operand k advances along a row; otherwise it is one value per row. `tail`: lanes of a row's last vector.
  PointwiseCode(const PointwiseProgram& program, const std::vector<bool>& streams, DType result, int tail, Isa isa);
  ~PointwiseCode();
  void operator()(const PointwiseArgs& args) const { function_(&args); }

 private:
  std::unique_ptr<Emitter> code_;
  void (*function_)(const PointwiseArgs*) = nullptr;
};

}  // namespace hone::cpu
