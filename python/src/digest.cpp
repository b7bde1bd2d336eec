// SPDX-License-Identifier: Apache-2.0
//
// What tells the weights of two programs apart, at the speed of memory: XXH3, as in plans. hone.h has no part in it.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "binding.h"

namespace hone::python {

void add_digest(nb::module_& module) {
  module.def(
      "digest",
      [](uintptr_t address, size_t size) {
        XXH128_canonical_t digest;
        {
          nb::gil_scoped_release release;
          XXH128_canonicalFromHash(&digest, XXH3_128bits(reinterpret_cast<const void*>(address), size));  // NOLINT
        }
        return nb::bytes(reinterpret_cast<const char*>(digest.digest), sizeof digest.digest);
      },
      "Sixteen bytes that stand for the bytes at an address.");
}

}  // namespace hone::python
