// SPDX-License-Identifier: Apache-2.0
//
// A convolution with its epilogue as a graph of cuDNN's operations.
#pragma once

#include "backends/cuda/cudnn/cudnn_graph.h"

namespace hone::cuda {

/// A convolution with sizes known. Lists are per spatial axis, at least two of them.
struct ConvolutionGraph {
  ConcreteType input, output;  // in memory; the residual is like the output
  Dims weights;                // [filters, channels of a group, kernel...], in the input's layout
  Dims strides, dilations, before, after;
  bool bias = false, residual = false;
  bool residual_after_activation = false;
  Activation activation;
};

/// Whether the library may have a graph that ends with it.
bool has_activation(const Activation& activation);
/// Finished. Sums are f32 until the one rounding at the end.
OperationGraph graph_of(const ConvolutionGraph& convolution, cudnnHandle_t handle);

}  // namespace hone::cuda
