// SPDX-License-Identifier: Apache-2.0
//
// Tensors that list their elements which are not zero, as ordinary tensors.
#pragma once

#include <string_view>

#include "tensor/tensor.h"

namespace hone {

/// `values` at `places` among zeros: numbers of elements in row-major order [count], or of axes, an entry a row [count, rank].
/// Throws Error that begins with `name` where they do not fit the sizes, or are strings, or where there are more than 2^28 elements:
/// a short message may claim any size.
Tensor dense(std::string_view name, const Tensor& values, const Tensor& places, const Dims& dims);

}  // namespace hone
