// SPDX-License-Identifier: Apache-2.0
//
// What the GPU at hand does at best: a copy of a quarter of a gigabyte, and matmuls of 8192 x 8192 matrices by cuBLASLt, on
// values that are not zero (zeros run faster than anything real).
#pragma once

#include "backends/cuda/run/device.h"

namespace hone::cuda {

/// A matmul's rate stays 0 where cuBLASLt is missing. Takes about half a second.
Ceilings measure_ceilings(CudaDevice& device);

}  // namespace hone::cuda
