// SPDX-License-Identifier: Apache-2.0
//
// First guesses for tile and blocking. They only order what a tuner times.

#include <algorithm>

#include "backends/cpu/jit/conv_kernel.h"
#include "backends/cpu/jit/depthwise_kernel.h"
#include "backends/cpu/jit/gemm_kernel.h"
#include "backends/cpu/jit/tile_code.h"

namespace hone::cpu {

std::vector<ConvConfig> conv_candidates(const ConvShape& shape, Isa isa, int workers) {
  (void)shape; (void)workers;
  return isa == Isa::avx512 ? std::vector<ConvConfig>{{14, 2, 0, 1, true}, {9,3,0,1,true}, {7,4,0,1,true}, {6,4,0,1,true}} : std::vector<ConvConfig>{{6, 2, 0, 1, true}, {4,3,0,1,true}, {3,4,0,1,true}};
}

std::vector<DepthwiseConfig> depthwise_candidates(const ConvShape& shape, Isa isa, int workers) {
  (void)workers;
  const int budget = isa == Isa::avx512 ? 24 : 9;  // accumulators; the filter row's weights need registers too
  std::vector<DepthwiseConfig> all;
  for (int vectors : {1, 2, 4}) {
    if (vectors > 1 && shape.oc <= (vectors / 2) * lanes_of(isa)) continue;
    const int most = std::max(1, std::min<int>(budget, registers_of(isa) - 1 - int(shape.kw) * vectors) / vectors);
    const int64_t strips = (shape.ow() + most - 1) / most;
    all.push_back({int((shape.ow() + strips - 1) / strips), vectors});
  }
  return all;
}

std::vector<GemmConfig> batched_gemm_candidates(const BatchedGemmShape& shape, Isa isa, int workers) {
  return gemm_candidates(shape.matrix, isa, workers);
}

}  // namespace hone::cpu
