// SPDX-License-Identifier: Apache-2.0
//
// The end of kernels that wait for another GPU and would wait for ever, as those of NCCL that reach across do when a rank has gone. The only
// thing that ends a running kernel is an error of its context, so one is made; everybody who waits for the GPU goes on with that error.
#pragma once

#include <memory>

#include "backends/cuda/run/device.h"

namespace hone::cuda {

class Breaker {
 public:
  /// Null where the driver compiles no PTX. All that it needs is loaded here, since nothing can be while the GPU is held up.
  static std::unique_ptr<Breaker> make(std::shared_ptr<const Context> context);
  ~Breaker();
  Breaker(const Breaker&) = delete;
  Breaker& operator=(const Breaker&) = delete;
  /// From any thread. The context is lost to the process.
  void break_off() noexcept;

 private:
  explicit Breaker(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  CUresult launch(int really) noexcept;

  std::shared_ptr<const Context> context_;
  CUstream stream_ =
      nullptr;  // of a priority that no other has: streams of one priority may share a queue, and wait for each other
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

}  // namespace hone::cuda
