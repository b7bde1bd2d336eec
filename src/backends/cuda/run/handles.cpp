// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/run/handles.h"

#include <map>
#include <mutex>
#include <vector>

namespace hone::cuda {
namespace {

CUcontext selected() {
  CUcontext context = nullptr;
  if (driver_library().found()) driver().cuCtxGetCurrent(&context);
  return context;
}

/// Of cuDNN: a thread's own while it runs. Of those that have ended the next takes them up.
class ThreadHandles {
 public:
  ThreadHandles() = default;
  ~ThreadHandles() {
    const std::lock_guard lock(spare().mutex);
    for (const auto& [context, handle] : own_) spare().handles[context].push_back(handle);
  }
  ThreadHandles(const ThreadHandles&) = delete;
  ThreadHandles& operator=(const ThreadHandles&) = delete;

  cudnnHandle_t of(CUcontext context) {
    if (const auto known = own_.find(context); known != own_.end()) return known->second;
    return own_.emplace(context, taken_up(context)).first->second;
  }

 private:
  struct Spare {
    std::mutex mutex;
    std::map<CUcontext, std::vector<cudnnHandle_t>> handles;
  };
  static Spare& spare() {
    static Spare& all = *new Spare;  // threads may end after statics do
    return all;
  }

  static cudnnHandle_t taken_up(CUcontext context) {
    {
      const std::lock_guard lock(spare().mutex);
      if (std::vector<cudnnHandle_t>& handles = spare().handles[context]; !handles.empty()) {
        const cudnnHandle_t handle = handles.back();
        handles.pop_back();
        return handle;
      }
    }
    cudnnHandle_t handle = nullptr;
    check(cudnn().cudnnCreate(&handle), "starting cuDNN");
    return handle;
  }

  std::map<CUcontext, cudnnHandle_t> own_;
};

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
  thread_local ThreadHandles handles;
  return handles.of(selected());
}

}  // namespace hone::cuda
