// SPDX-License-Identifier: Apache-2.0
//
// One recurrent layer at concrete sizes: which cell it is, and where its weights and states lie. The weights are packed in
// panels of a block of hidden units each; see recurrent_kernel.h.
#pragma once

#include "backends/cpu/rnn/recurrent_kernel.h"
#include "backends/cpu/support/node_code.h"

namespace hone::cpu {

/// When a GRU resets: before or behind the matmul with the state.
enum class Cell : uint8_t { lstm, gru_early, gru_late, rnn };
constexpr std::array<std::string_view, 4> field_names(Cell) { return {"lstm", "gru_early", "gru_late", "rnn"}; }

struct RecurrentSizes {
  Cell cell = Cell::lstm;
  int64_t directions = 1, steps = 1, batch = 1, width = 1, hidden = 1;

  int64_t gates() const { return cell == Cell::lstm ? 4 : cell == Cell::rnn ? 1 : 3; }
  int64_t blocks() const { return (hidden + kUnits - 1) / kUnits; }
  int64_t padded() const { return blocks() * kUnits; }
  int64_t panel() const { return gates() * kUnits; }
};

/// Null when the operator is not recurrent.
std::optional<Cell> cell_of(std::string_view op, const Attrs& attrs);
/// The activations and the clip of one direction; throws Error for an activation that does not exist.
GateRule gate_rule(const Attrs& attrs, Cell cell, int64_t direction);

/// [D, G*H, K] as panels [D][block][K][G][unit]; units beyond H are zero.
Tensor pack_panels(const Tensor& weights, int64_t gates);
/// What is added to the projected input and to the state's part of a GRU that resets late: [D][block][G][unit], [D][block][unit].
Tensor pack_bias(const Tensor* bias, const RecurrentSizes& sizes);
Tensor pack_late_bias(const Tensor* bias, const RecurrentSizes& sizes);
/// [D, 3*H] as [D][3][padded].
Tensor pack_peepholes(const Tensor& peepholes, const RecurrentSizes& sizes);

}  // namespace hone::cpu
