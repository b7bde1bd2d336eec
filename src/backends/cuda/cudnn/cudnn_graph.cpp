// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/cudnn/cudnn_graph.h"

#include <algorithm>

#include "base/error.h"
#include "ops/support.h"

namespace hone::cuda {
namespace {

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return CUDNN_DATA_FLOAT;
    case DType::f16: return CUDNN_DATA_HALF;
    case DType::bf16: return CUDNN_DATA_BFLOAT16;
    default: throw InternalError(fmt::format("cuDNN convolves no {}", name_of(dtype)));
  }
}

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

}  // namespace

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                            const void* values) {
  check(cudnn().cudnnBackendSetAttribute(handle_, name, type, count, values), "describing an operation");
  return *this;
}

Descriptor& Descriptor::finalize(const char* what) {
  check(cudnn().cudnnBackendFinalize(handle_), what);
  return *this;
}

int64_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                        void* values) const {
  int64_t found = 0;
  check(cudnn().cudnnBackendGetAttribute(handle_, name, type, count, &found, values), "asking the library");
  return found;
}

int64_t Descriptor::integer(cudnnBackendAttributeName_t name) const {
  int64_t value = 0;
  get(name, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

bool has_activation(const Activation& activation) {
  return activation.kind == ActivationKind::none || mode_of(activation).has_value();
}

OperationGraph::OperationGraph(const ConvolutionGraph& convolution, cudnnHandle_t handle) {
  const ConcreteType& result = convolution.output;
  const bool activated = convolution.activation.kind != ActivationKind::none;
  int steps = (convolution.bias ? 1 : 0) + (convolution.residual ? 1 : 0) + (activated ? 1 : 0);
  const Descriptor& x = tensor(Operand::input, convolution.input, convolution.input.dims);
  const Descriptor& w = tensor(Operand::weights, convolution.input, convolution.weights);
  const Descriptor& y = tensor(Operand::output, result, result.dims);
  const auto next = [&]() -> const Descriptor& { return steps-- == 0 ? y : scratch(result); };

  const Descriptor* at = &next();
  add_convolution(convolution, x, w, *at);
  const auto sum = [&](const Descriptor& other) {
    const Descriptor& to = next();
    add_sum(*at, other, to);
    at = &to;
  };
  if (convolution.bias) {
    Dims dims(result.dims.size(), 1);
    dims[1] = result.dims[1];
    sum(tensor(Operand::bias, result, dims));
  }
  const bool last = convolution.residual_after_activation && activated;
  if (convolution.residual && !last) sum(tensor(Operand::residual, result, result.dims));
  if (activated) {
    const Descriptor& to = next();
    add_activation(convolution.activation, *at, to);
    at = &to;
  }
  if (convolution.residual && last) sum(tensor(Operand::residual, result, result.dims));

  graph_.emplace(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph_->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(operations_.size()),
              operations_.data());
  graph_->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle)
      .finalize("putting an operation graph together");
}

const Descriptor& OperationGraph::tensor(Operand name, const ConcreteType& type, Dims dims) {
  dims = with_two_spatial(std::move(dims));
  Descriptor& made = *parts_.emplace_back(std::make_unique<Descriptor>(CUDNN_BACKEND_TENSOR_DESCRIPTOR));
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, data_type(type.dtype))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
      .set(CUDNN_ATTR_TENSOR_STRIDES, layout_strides(dims, type.layout));
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<int64_t>(name)).set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16});
  return made.finalize("describing a tensor");
}

/// A result inside the graph, which never lies in memory; in f32, so that it is rounded once, at the end.
const Descriptor& OperationGraph::scratch(const ConcreteType& type) {
  const Dims dims = with_two_spatial(type.dims);
  const bool is_virtual = true;
  Descriptor& made = *parts_.emplace_back(std::make_unique<Descriptor>(CUDNN_BACKEND_TENSOR_DESCRIPTOR));
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
      .set(CUDNN_ATTR_TENSOR_STRIDES, layout_strides(dims, type.layout));
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, next_scratch_++)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16})
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  return made.finalize("describing a tensor");
}

void OperationGraph::add_convolution(const ConvolutionGraph& convolution, const Descriptor& x, const Descriptor& w,
                                     const Descriptor& y) {
  Descriptor& window = *parts_.emplace_back(std::make_unique<Descriptor>(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(convolution.strides.size()))
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  window.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  window.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, convolution.before)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, convolution.after);
  window.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, convolution.dilations)
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, convolution.strides)
      .finalize("describing a convolution");
  Descriptor& operation =
      *parts_.emplace_back(std::make_unique<Descriptor>(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR));
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
  const float alpha = 1, beta = 0;
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, window)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &alpha);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &beta)
      .finalize("describing a convolution");
  operations_.push_back(operation.handle());
}

const Descriptor& OperationGraph::pointwise(cudnnPointwiseMode_t mode, const Activation& activation) {
  Descriptor& made = *parts_.emplace_back(std::make_unique<Descriptor>(CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
  made.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  if (activation.kind == ActivationKind::clip)
    made.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, double{activation.alpha})
        .set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, double{activation.beta});
  if (activation.kind == ActivationKind::leaky_relu)
    made.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, double{activation.alpha});
  if (activation.kind == ActivationKind::silu) made.set(CUDNN_ATTR_POINTWISE_SWISH_BETA, 1.0);
  return made.finalize("describing an activation");
}

void OperationGraph::add_sum(const Descriptor& x, const Descriptor& other, const Descriptor& y) {
  const Descriptor& sum = pointwise(CUDNN_POINTWISE_ADD, {});
  Descriptor& operation =
      *parts_.emplace_back(std::make_unique<Descriptor>(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, sum)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, other);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y).finalize("describing a sum");
  operations_.push_back(operation.handle());
}

void OperationGraph::add_activation(const Activation& activation, const Descriptor& x, const Descriptor& y) {
  const Descriptor& formula = pointwise(*mode_of(activation), activation);
  Descriptor& operation =
      *parts_.emplace_back(std::make_unique<Descriptor>(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, formula).set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y).finalize("describing an activation");
  operations_.push_back(operation.handle());
}

std::vector<EngineChoice> OperationGraph::engines(size_t most) const {
  std::vector<EngineChoice> all;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (all.size() >= most) break;
    for (EngineChoice& choice : engines(mode, most - all.size()))
      if (std::none_of(all.begin(), all.end(), [&](const EngineChoice& known) {
            return known.engine == choice.engine && known.knobs == choice.knobs;
          }))
        all.push_back(std::move(choice));
  }
  return all;
}

std::vector<EngineChoice> OperationGraph::engines(cudnnBackendHeurMode_t mode, size_t most) const {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph_)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  // The library says "not supported" for a graph that it has no engine for: that is an answer.
  if (cudnn().cudnnBackendFinalize(heuristic.handle()) != CUDNN_STATUS_SUCCESS) return {};
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (size_t i = 0; i < most; ++i)
    handles.push_back(configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).handle());
  const int64_t found = heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                      static_cast<int64_t>(most), handles.data());

  constexpr int64_t kMostKnobs = CUDNN_KNOB_TYPE_COUNTS, kMostNotes = CUDNN_NUMERICAL_NOTE_TYPE_COUNT;
  std::vector<EngineChoice> result;
  for (int64_t i = 0; i < std::min<int64_t>(found, static_cast<int64_t>(most)); ++i) {
    const Descriptor& config = configs[static_cast<size_t>(i)];
    const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t handle = engine.handle();
    config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
    EngineChoice choice{.engine = engine.integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX), .knobs = {}};
    cudnnBackendNumericalNote_t notes[kMostNotes];
    const int64_t note_count =
        engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, kMostNotes, notes);
    choice.tensor_cores = std::find(notes, notes + note_count, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != notes + note_count;
    std::vector<Descriptor> knobs;
    std::vector<cudnnBackendDescriptor_t> knob_handles;
    for (int64_t k = 0; k < kMostKnobs; ++k)
      knob_handles.push_back(knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR).handle());
    const int64_t knob_count =
        config.get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, kMostKnobs, knob_handles.data());
    for (int64_t k = 0; k < knob_count; ++k) {
      cudnnBackendKnobType_t type{};
      knobs[static_cast<size_t>(k)].get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
      choice.knobs.push_back(static_cast<int64_t>(type));
      choice.knobs.push_back(knobs[static_cast<size_t>(k)].integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
    }
    result.push_back(std::move(choice));
  }
  return result;
}

ExecutionPlan::ExecutionPlan(const OperationGraph& graph, const EngineChoice& choice, cudnnHandle_t handle)
    : plan_(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.descriptor())
      .set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, choice.engine)
      .finalize("choosing an engine of cuDNN");
  std::vector<Descriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (size_t i = 0; i + 1 < choice.knobs.size(); i += 2) {
    Descriptor& knob = knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    const auto type = static_cast<cudnnBackendKnobType_t>(choice.knobs[i]);
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type)
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, choice.knobs[i + 1])
        .finalize("setting up an engine of cuDNN");
    handles.push_back(knob.handle());
  }
  Descriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!handles.empty())
    config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(handles.size()),
               handles.data());
  config.finalize("setting up an engine of cuDNN");
  plan_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle)
      .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config)
      .finalize("preparing an engine of cuDNN");
}

void ExecutionPlan::run(cudnnHandle_t handle, const std::vector<int64_t>& names, const std::vector<void*>& pointers,
                        void* workspace) const {
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const auto count = static_cast<int64_t>(names.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, names.data())
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace).finalize("binding a convolution");
  check(cudnn().cudnnBackendExecute(handle, plan_.handle(), pack.handle()), "running a convolution");
}

}  // namespace hone::cuda
