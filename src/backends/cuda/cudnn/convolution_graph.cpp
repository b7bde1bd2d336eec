// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/cudnn/convolution_graph.h"

#include "ops/support.h"

namespace hone::cuda {
namespace {

/// The library wants two spatial axes at least: one more of size 1 in front.
Dims with_two_spatial(Dims dims) {
  if (dims.size() == 3) dims.insert(dims.begin() + 2, 1);
  return dims;
}

std::optional<cudnnPointwiseMode_t> mode_of(const Activation& activation) {
  switch (activation.kind) {
    case ActivationKind::relu:
    case ActivationKind::clip:
    case ActivationKind::leaky_relu: return CUDNN_POINTWISE_RELU_FWD;
    case ActivationKind::sigmoid: return CUDNN_POINTWISE_SIGMOID_FWD;
    case ActivationKind::silu: return CUDNN_POINTWISE_SWISH_FWD;
    case ActivationKind::tanh: return CUDNN_POINTWISE_TANH_FWD;
    case ActivationKind::gelu: return CUDNN_POINTWISE_GELU_FWD;
    case ActivationKind::gelu_tanh: return CUDNN_POINTWISE_GELU_APPROX_TANH_FWD;
    default: return std::nullopt;
  }
}

TensorForm form_of(const ConcreteType& type, const Dims& dims) {
  Dims shape = with_two_spatial(dims);
  Dims strides = layout_strides(shape, type.layout);
  return {type.dtype, std::move(shape), std::move(strides)};
}

Descriptor window_of(const ConvolutionGraph& convolution) {
  Descriptor window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(convolution.strides.size()))
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  window.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  window.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, convolution.before)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, convolution.after);
  window.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, convolution.dilations)
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, convolution.strides)
      .finalize("describing a convolution");
  return window;
}

Descriptor operation_of(const Descriptor& window, const Descriptor& x, const Descriptor& w, const Descriptor& y) {
  Descriptor operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
  const float alpha = 1, beta = 0;
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, window)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &alpha);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &beta)
      .finalize("describing a convolution");
  return operation;
}

}  // namespace

bool has_activation(const Activation& activation) {
  return activation.kind == ActivationKind::none || mode_of(activation).has_value();
}

OperationGraph graph_of(const ConvolutionGraph& convolution, cudnnHandle_t handle) {
  OperationGraph graph;
  const ConcreteType& result = convolution.output;
  const TensorForm form = form_of(result, result.dims);
  const bool activated = convolution.activation.kind != ActivationKind::none;
  int steps = (convolution.bias ? 1 : 0) + (convolution.residual ? 1 : 0) + (activated ? 1 : 0);
  const Descriptor& x = graph.tensor(Operand::input, form_of(convolution.input, convolution.input.dims));
  const Descriptor& w = graph.tensor(Operand::weights, form_of(convolution.input, convolution.weights));
  const Descriptor& y = graph.tensor(Operand::output, form);
  const auto next = [&]() -> const Descriptor& {
    return steps-- == 0 ? y : graph.scratch({DType::f32, form.dims, form.strides});
  };

  const Descriptor* at = &next();
  graph.add(operation_of(graph.keep(window_of(convolution)), x, w, *at));
  const auto step = [&](cudnnPointwiseMode_t mode, const Descriptor* other, const Activation& activation = {}) {
    const Descriptor& to = next();
    graph.add_pointwise(mode, *at, other, to, activation);
    at = &to;
  };
  const auto sum = [&](Operand name, const Dims& dims) {
    step(CUDNN_POINTWISE_ADD, &graph.tensor(name, form_of(result, dims)));
  };
  if (convolution.bias) {
    Dims dims(result.dims.size(), 1);
    dims[1] = result.dims[1];
    sum(Operand::bias, dims);
  }
  const bool last = convolution.residual_after_activation && activated;
  if (convolution.residual && !last) sum(Operand::residual, result.dims);
  if (activated) step(*mode_of(convolution.activation), nullptr, convolution.activation);
  if (convolution.residual && last) sum(Operand::residual, result.dims);
  graph.finish(handle);
  return graph;
}

}  // namespace hone::cuda
