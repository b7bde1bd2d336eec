// SPDX-License-Identifier: Apache-2.0
//
// Picks among the targets that Highway compiled a file for by our instruction sets, so that HONE_CPU_ISA caps the portable
// kernels like the generated ones.
#pragma once

#include <hwy/targets.h>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

/// In Highway a smaller target bit is a better instruction set.
inline int64_t allowed_targets(Isa isa) {
  switch (isa) {
    case Isa::avx512: return ~int64_t{0};
    case Isa::avx2: return ~(int64_t{HWY_AVX2} - 1);
    case Isa::scalar: return ~(int64_t{HWY_SSE4} - 1);
  }
  return 0;
}

/// Index into HWY_DISPATCH_TABLE.
inline size_t target_index(Isa isa) {
  hwy::ChosenTarget target;
  target.Update(hwy::SupportedTargets() & allowed_targets(isa));
  return target.GetIndex();
}

}  // namespace hone::cpu
