// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's operation graphs with owners and types: descriptors, operations that are put together to a graph, and the engines that the
// library knows for it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backends/cuda/run/libraries.h"
#include "device/device.h"
#include "regions/epilogue.h"

namespace hone::cuda {

/// One backend descriptor.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    check(cudnn().cudnnBackendCreateDescriptor(type, &handle_), "creating a descriptor");
  }
  Descriptor(Descriptor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Descriptor() {
    if (handle_ != nullptr) cudnn().cudnnBackendDestroyDescriptor(handle_);
  }
  cudnnBackendDescriptor_t handle() const { return handle_; }

  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                  const void* values);
  Descriptor& set(cudnnBackendAttributeName_t name, int64_t value) { return set(name, CUDNN_TYPE_INT64, 1, &value); }
  Descriptor& set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    return set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnDataType_t type) {
    return set(name, CUDNN_TYPE_DATA_TYPE, 1, &type);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, double value) { return set(name, CUDNN_TYPE_DOUBLE, 1, &value); }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.handle_);
  }
  /// Throws Error in the library's words.
  Descriptor& finalize(const char* what);
  /// Number of values read.
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, void* values) const;
  int64_t integer(cudnnBackendAttributeName_t name) const;

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

/// What the library calls the operands of a graph.
enum class Operand : int64_t { input = 1, weights, bias, residual, output, queries, keys, values, scale };

/// An engine of the library and its settings.
struct EngineChoice {
  int64_t engine = 0;
  std::vector<int64_t> knobs;  // type, value, type, value, ...
  bool tensor_cores = false;   // for f32: rounds operands
};

/// Sizes and strides in elements.
struct TensorForm {
  DType dtype = DType::f32;
  Dims dims, strides;
};

/// Operations in the order in which they are added; finish() makes them a graph.
class OperationGraph {
 public:
  /// In memory, bound by its name.
  const Descriptor& tensor(Operand name, const TensorForm& form);
  /// A float on the host, bound by its name; as an operand of so many axes.
  const Descriptor& number(Operand name, size_t axes);
  /// A result inside the graph, which never lies in memory.
  const Descriptor& scratch(const TensorForm& form);
  /// Null where the operation has one operand; an activation where the mode has parameters.
  void add_pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* other, const Descriptor& y,
                     const Activation& activation = {});
  void add(Descriptor operation);
  /// A part of an operation, which has to live as long as the graph.
  Descriptor& keep(Descriptor part);
  /// For the handle that it is then used with. Throws Error where the library takes no such graph.
  void finish(cudnnHandle_t handle);

  /// The library's best guesses first.
  std::vector<EngineChoice> engines(size_t most) const;
  const Descriptor& descriptor() const { return *graph_; }

 private:
  std::vector<EngineChoice> engines(cudnnBackendHeurMode_t mode, size_t most) const;

  std::vector<std::unique_ptr<Descriptor>> parts_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  std::optional<Descriptor> graph_;
  int64_t next_scratch_ = 100;
};

/// An engine made ready to run. Throws Error when it does not serve this graph.
class ExecutionPlan {
 public:
  ExecutionPlan(const OperationGraph& graph, const EngineChoice& choice, cudnnHandle_t handle);
  /// The engine that was chosen, or where it does not serve these sizes the first of the library's guesses that does.
  static ExecutionPlan of(const OperationGraph& graph, const EngineChoice& choice, cudnnHandle_t handle);
  size_t workspace_bytes() const {
    return static_cast<size_t>(plan_.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  }
  void run(cudnnHandle_t handle, const std::vector<int64_t>& names, const std::vector<void*>& pointers,
           void* workspace) const;

 private:
  Descriptor plan_;
  /// Contexts share kernels, and the library writes operands into the plan while it launches.
  mutable std::mutex running_;
};

}  // namespace hone::cuda
