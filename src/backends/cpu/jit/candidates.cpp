// SPDX-License-Identifier: Apache-2.0
//
// First guesses for tile and blocking. They only order what a tuner times.

#include <algorithm>

#include "backends/cpu/jit/conv_kernel.h"
#include "backends/cpu/jit/gemm_kernel.h"
#include "backends/cpu/jit/tile_code.h"

namespace hone::cpu {

std::vector<ConvConfig> conv_candidates(const ConvShape& shape, Isa isa, int workers) {
  (void)shape; (void)workers;
  return isa == Isa::avx512 ? std::vector<ConvConfig>{{14, 2, 0, 1, true}, {9,3,0,1,true}, {7,4,0,1,true}, {6,4,0,1,true}} : std::vector<ConvConfig>{{6, 2, 0, 1, true}, {4,3,0,1,true}, {3,4,0,1,true}};
}

std::vector<GemmConfig> batched_gemm_candidates(const BatchedGemmShape& shape, Isa isa, int workers) {
  return gemm_candidates(shape.matrix, isa, workers);
}

}  // namespace hone::cpu
