// SPDX-License-Identifier: Apache-2.0
//
// Memory beside pages that cannot be touched: generated code and libraries are blind to sanitizers, but not to these. A piece
// ends where such a page begins, or begins where one ends.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "base/error.h"

namespace hone::fuzz {

class GuardedMemory {
 public:
  static constexpr size_t kMost = size_t{4} << 20, kPieces = 48;

  enum class Side { low, high };  // where the forbidden page is

  GuardedMemory() {
    void* all = mmap(nullptr, kPieces * kStride + kPage, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(all);
    for (size_t i = 0; i <= kPieces; ++i) mprotect(base_ + i * kStride, kPage, PROT_NONE);
  }

  /// Forgets all pieces.
  void clear() { used_ = 0; }

  /// A piece; `alignment` holds on the high side as far as the size does.
  std::byte* take(size_t bytes, size_t alignment, Side side) {
    if (bytes > kMost || used_ == kPieces) throw Error("more memory than an execution may have");
    std::byte* low = base_ + used_++ * kStride + kPage;
    if (side == Side::low) return low;
    return low + (kMost - (bytes + alignment - 1) / alignment * alignment);
  }

 private:
  static constexpr size_t kPage = 4096, kStride = kMost + kPage;
  std::byte* base_ = nullptr;
  size_t used_ = 0;
};

}  // namespace hone::fuzz
