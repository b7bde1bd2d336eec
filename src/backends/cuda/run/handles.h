// SPDX-License-Identifier: Apache-2.0
//
// The libraries' handles. One per GPU (cuBLASLt) or per GPU and thread (cuDNN, whose handle carries the stream), made when
// first needed: making one takes longer than building most engines' layers.
#pragma once

#include "backends/cuda/run/libraries.h"

namespace hone::cuda {

/// Whether a GPU is selected in this thread: what the libraries need even to be asked.
bool gpu_selected();
/// For the selected GPU; throw Error when the library is missing.
cublasLtHandle_t cublaslt_handle();
cudnnHandle_t cudnn_handle();

}  // namespace hone::cuda
