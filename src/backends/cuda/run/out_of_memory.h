// SPDX-License-Identifier: Apache-2.0
//
// What is said where a GPU has no memory left, whichever kind was asked for.
#pragma once

#include "base/state_error.h"
#include "base/text.h"

namespace hone::cuda {

inline OutOfMemory out_of_memory(size_t bytes) {
  return OutOfMemory(fmt::format("cannot allocate {} bytes on the GPU", bytes),
                     "use smaller shapes, fewer streams, or a GPU with more memory");
}

}  // namespace hone::cuda
