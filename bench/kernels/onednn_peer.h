// SPDX-License-Identifier: Apache-2.0
//
// The same convolution through oneDNN with the layouts it likes best, bias and ReLU fused.
#pragma once

#include <functional>

#include "backends/cpu/conv/conv_kernel.h"

/// 0 when built without oneDNN.
double onednn_conv_seconds(const hone::cpu::ConvShape& shape, int workers,
                           const std::function<double(const std::function<void()>&)>& time);
