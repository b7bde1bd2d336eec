// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/run/handles.h"

#include <map>
#include <mutex>

namespace hone::cuda {
namespace {

CUcontext selected() {
  CUcontext context = nullptr;
  if (driver_library().found()) driver().cuCtxGetCurrent(&context);
  return context;
}

}  // namespace

bool gpu_selected() { return selected() != nullptr; }

// Handles live as long as the process: the libraries' own clean-up at exit comes after the driver's.
cublasLtHandle_t cublaslt_handle() {
  static std::mutex mutex;
  static std::map<CUcontext, cublasLtHandle_t> handles;
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles[selected()];
  if (handle == nullptr) check(cublaslt().cublasLtCreate(&handle), "starting cuBLASLt");
  return handle;
}

cudnnHandle_t cudnn_handle() {
  thread_local std::map<CUcontext, cudnnHandle_t> handles;
  cudnnHandle_t& handle = handles[selected()];
  if (handle == nullptr) check(cudnn().cudnnCreate(&handle), "starting cuDNN");
  return handle;
}

}  // namespace hone::cuda
