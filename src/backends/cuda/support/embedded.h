// SPDX-License-Identifier: Apache-2.0
//
// The text of every .cuh of families.def, made part of the program when it is built.
#pragma once

namespace hone::cuda::kernels {

#define TEXT(name, file) extern const char* const name;
#include "backends/cuda/families.def"
#undef TEXT

}  // namespace hone::cuda::kernels
