// SPDX-License-Identifier: Apache-2.0
//
// How far two tensors of numbers are apart.
#pragma once

#include "tensor/tensor.h"

namespace hone {

/// Norm of the difference over the norm of what was expected. NaNs equal each other, and so do infinities of one sign; NaN where
/// only one of two elements is such a one, infinite where the shapes differ.
double relative_difference(const Tensor& found, const Tensor& expected);

}  // namespace hone
