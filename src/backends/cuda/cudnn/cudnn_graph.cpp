// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/cudnn/cudnn_graph.h"

#include <algorithm>

#include "base/error.h"

namespace hone::cuda {
namespace {

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return CUDNN_DATA_FLOAT;
    case DType::f16: return CUDNN_DATA_HALF;
    case DType::bf16: return CUDNN_DATA_BFLOAT16;
    default: throw InternalError(fmt::format("cuDNN knows no {}", name_of(dtype)));
  }
}

void describe(Descriptor& tensor, const TensorForm& form, int64_t name) {
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, data_type(form.dtype))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, form.dims)
      .set(CUDNN_ATTR_TENSOR_STRIDES, form.strides);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, name).set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16});
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

Descriptor& OperationGraph::keep(Descriptor part) {
  return *parts_.emplace_back(std::make_unique<Descriptor>(std::move(part)));
}

const Descriptor& OperationGraph::tensor(Operand name, const TensorForm& form) {
  Descriptor& tensor = keep(Descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR));
  describe(tensor, form, static_cast<int64_t>(name));
  return tensor.finalize("describing a tensor");
}

const Descriptor& OperationGraph::number(Operand name, size_t axes) {
  const bool by_value = true;
  Descriptor& tensor = keep(Descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR));
  describe(tensor, {DType::f32, Dims(axes, 1), Dims(axes, 1)}, static_cast<int64_t>(name));
  tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
  return tensor.finalize("describing a number");
}

const Descriptor& OperationGraph::scratch(const TensorForm& form) {
  const bool is_virtual = true;
  Descriptor& tensor = keep(Descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR));
  describe(tensor, form, next_scratch_++);
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  return tensor.finalize("describing a tensor");
}

void OperationGraph::add_pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* other,
                                   const Descriptor& y, const Activation& activation) {
  Descriptor& formula = keep(Descriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
  formula.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  if (activation.kind == ActivationKind::clip)
    formula.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, double{activation.alpha})
        .set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, double{activation.beta});
  if (activation.kind == ActivationKind::leaky_relu)
    formula.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, double{activation.alpha});
  if (activation.kind == ActivationKind::silu) formula.set(CUDNN_ATTR_POINTWISE_SWISH_BETA, 1.0);
  formula.finalize("describing a pointwise operation");
  Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, formula).set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (other != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *other);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y).finalize("describing a pointwise operation");
  add(std::move(operation));
}

void OperationGraph::add(Descriptor operation) { operations_.push_back(keep(std::move(operation)).handle()); }

void OperationGraph::finish(cudnnHandle_t handle) {
  graph_.emplace(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph_->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(operations_.size()),
              operations_.data());
  graph_->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle)
      .finalize("putting an operation graph together");
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

ExecutionPlan ExecutionPlan::of(const OperationGraph& graph, const EngineChoice& choice, cudnnHandle_t handle) {
  constexpr size_t kGuesses = 8;
  try {
    return {graph, choice, handle};
  } catch (const Error&) {
    for (const EngineChoice& guess : graph.engines(kGuesses)) {
      try {
        return {graph, guess, handle};
      } catch (const Error&) {  // the next one
      }
    }
    throw;
  }
}

void ExecutionPlan::run(cudnnHandle_t handle, const std::vector<int64_t>& names, const std::vector<void*>& pointers,
                        void* workspace) const {
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const auto count = static_cast<int64_t>(names.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, names.data())
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace).finalize("binding operands");
  const std::lock_guard lock(running_);
  check(cudnn().cudnnBackendExecute(handle, plan_.handle(), pack.handle()), "running an operation graph");
}

}  // namespace hone::cuda
