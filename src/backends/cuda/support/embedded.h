// SPDX-License-Identifier: Apache-2.0
//
// The text of every .cuh of the rooms, made part of the program when it is built: one name per file.
#pragma once

namespace hone::cuda::kernels {

extern const char* const prelude;
extern const char* const activation;
extern const char* const attention;
extern const char* const attention_mma;
extern const char* const cast;
extern const char* const copy;
extern const char* const depthwise;
extern const char* const direct_conv;
extern const char* const gather;
extern const char* const gather_nd;
extern const char* const implicit_gemm;
extern const char* const normalization;
extern const char* const pointwise;
extern const char* const pool;
extern const char* const recurrent;
extern const char* const reduce;
extern const char* const resize;
extern const char* const softmax;
extern const char* const squeeze_excite;
extern const char* const top_k;

}  // namespace hone::cuda::kernels
