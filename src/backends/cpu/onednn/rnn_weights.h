// SPDX-License-Identifier: Apache-2.0
//
// Weights and biases of ONNX's recurrent layers in the order in which oneDNN wants gates.
#pragma once

#include <span>

#include "tensor/tensor.h"

namespace hone::cpu::onednn {

/// ONNX's gate for each of the library's: i f c o out of i o f c; u r o out of z r h.
inline constexpr int kLstmGates[] = {0, 2, 3, 1}, kGruGates[] = {0, 1, 2};

/// [D, G*H, K] to [D, K, G, H].
Tensor arrange_weights(const Tensor& weights, std::span<const int> gates, int64_t hidden);
/// Input and recurrent bias of [D, 2*G*H] added, zeros for none, except for the last gate of a GRU that resets late: it keeps
/// both.
Tensor arrange_bias(const Tensor* bias, std::span<const int> gates, int64_t directions, int64_t hidden,
                    bool late_reset);

}  // namespace hone::cpu::onednn
