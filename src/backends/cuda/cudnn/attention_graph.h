// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale q kT) v as a graph of one operation of cuDNN's, which has it since 9.13. (As a graph of matmuls, reductions and pointwise
// operations, which may have a mask, its engines for Hopper refuse it.)
#pragma once

#include "backends/cuda/cudnn/cudnn_graph.h"
#include "regions/attention_region.h"

namespace hone::cuda {

/// Finished. Operands and result are of `dtype`; the scale is bound as a number. Throws Error where the library does not know it.
OperationGraph graph_of(const AttentionSizes& sizes, DType dtype, cudnnHandle_t handle);

}  // namespace hone::cuda
