// SPDX-License-Identifier: Apache-2.0
//
// Machine code for the softmax inside of attention, a block of keys at a time. Every row of queries has a shift, close to the
// largest score seen so far. A block's scores become weights exp(score - shift); their sums stay with the row, and the sums
// of weighted values are divided by them at the end. When a score is far above the shift, the row's sums are scaled to a
// new one, which after the first block is rare.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

class Emitter;

/// Offsets in the code depend on the order. Steps are bytes from one row to the next.
struct SoftmaxArgs {
  float* scores;
  const float* mask;
  float* state;   // SoftmaxCode::state_floats() of every row
  float* values;  // rows of weighted values, padded to whole vectors
  float* result;  // finish() only
  int64_t rows;   // at least one
  int64_t score_step, mask_step, value_step, result_step;
};

enum class MaskKind { none, full, per_row };  // per_row: one value for a whole row

struct SoftmaxSpec {
  int64_t keys, value_columns;
  MaskKind mask = MaskKind::none;
  bool running = false;  // more than this block of keys: values and state hold sums already
};

class SoftmaxCode {
 public:
  SoftmaxCode(const SoftmaxSpec& spec, Isa isa);
  ~SoftmaxCode();
  SoftmaxCode(SoftmaxCode&&) noexcept;

  /// What scores must have been multiplied by: without a mask they are in units of ln 2.
  static double unit(MaskKind mask);
  static int64_t state_floats(Isa isa) { return 2 * lanes_of(isa); }
  /// No keys seen yet; needed where `running`.
  static void start(float* state, int64_t rows, Isa isa);

  /// Scores of a block become weights, in place.
  void operator()(const SoftmaxArgs& args) const { weights_(&args); }
  /// result = values / sum of the weights.
  void finish(const SoftmaxArgs& args) const { finish_(&args); }

 private:
  using Function = void (*)(const SoftmaxArgs*);
  std::unique_ptr<Emitter> code_;
  Function weights_ = nullptr, finish_ = nullptr;
};

}  // namespace hone::cpu
