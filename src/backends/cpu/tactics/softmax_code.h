// SPDX-License-Identifier: Apache-2.0
//
// Machine code that turns rows of attention scores into probabilities, in place: + mask, exp(x - max), / sum.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

class Emitter;

/// Offsets in the code depend on the order.
struct SoftmaxArgs {
  float* scores;
  const float* mask;
  int64_t rows;                   // at least one
  int64_t score_step, mask_step;  // bytes from one row to the next
};

enum class MaskKind { none, full, per_row };  // per_row: one value for a whole row

class SoftmaxCode {
 public:
  SoftmaxCode(int64_t columns, MaskKind mask, Isa isa);
  ~SoftmaxCode();
  void operator()(const SoftmaxArgs& args) const { function_(&args); }

 private:
  std::unique_ptr<Emitter> code_;
  void (*function_)(const SoftmaxArgs*) = nullptr;
};

}  // namespace hone::cpu
