// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/tactic_table.h"

namespace hone::cuda {

std::span<const CudaTactic* const> cuda_tactics() {
  static constexpr const CudaTactic* kAll[] = {
      &tactics::implicit_gemm, &tactics::depthwise, &tactics::direct_conv,    &tactics::attention,
      &tactics::pointwise,     &tactics::cast,      &tactics::copy,           &tactics::softmax,
      &tactics::normalization, &tactics::pool,      &tactics::reduce,         &tactics::gather,
      &tactics::resize,        &tactics::recurrent, &tactics::squeeze_excite, &tactics::gather_nd,
      &tactics::top_k,
  };
  return kAll;
}

}  // namespace hone::cuda
