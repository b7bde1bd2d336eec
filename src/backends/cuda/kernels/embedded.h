// SPDX-License-Identifier: Apache-2.0
//
// The text of kernels/*.cuh, made part of the program when it is built: one name per file.
#pragma once

namespace hone::cuda::kernels {

extern const char *const prelude,
    *const activation,
        *const attention,
            *const attention_mma,
                *const cast, *const copy, *const direct_conv,
                                              *const gather, *const implicit_gemm,
                                                                 *const normalization,
                                                                     *const pointwise,
                                                                         *const pool, *const reduce, *const resize,
                                                                                                         *const softmax;

}  // namespace hone::cuda::kernels
