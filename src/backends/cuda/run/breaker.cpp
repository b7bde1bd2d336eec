// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/breaker.h"

namespace hone::cuda {
namespace {

constexpr const char* kText = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry hone_break_off(.param .u32 really) {
  .reg .pred %p;
  .reg .u32 %r;
  ld.param.u32 %r, [really];
  setp.ne.u32 %p, %r, 0;
  @%p trap;
  ret;
}
)";

}  // namespace

std::unique_ptr<Breaker> Breaker::make(std::shared_ptr<const Context> context) {
  context->select();
  std::unique_ptr<Breaker> breaker(new Breaker(std::move(context)));
  constexpr int kHighest = -100;  // the driver takes the highest that it has
  if (driver().cuStreamCreateWithPriority == nullptr ||
      driver().cuStreamCreateWithPriority(&breaker->stream_, CU_STREAM_NON_BLOCKING, kHighest) != CUDA_SUCCESS) {
    breaker->stream_ = nullptr;
    return nullptr;
  }
  if (driver().cuModuleLoadData(&breaker->module_, kText) != CUDA_SUCCESS) {
    breaker->module_ = nullptr;
    return nullptr;
  }
  const bool ready =
      driver().cuModuleGetFunction(&breaker->function_, breaker->module_, "hone_break_off") == CUDA_SUCCESS &&
      breaker->launch(0) == CUDA_SUCCESS && driver().cuStreamSynchronize(breaker->stream_) == CUDA_SUCCESS;
  return ready ? std::move(breaker) : nullptr;
}

Breaker::~Breaker() {
  driver().cuCtxSetCurrent(context_->handle());
  if (module_ != nullptr) driver().cuModuleUnload(module_);
  if (stream_ != nullptr) driver().cuStreamDestroy(stream_);
}

CUresult Breaker::launch(int really) noexcept {
  CUlaunchConfig launch{};
  launch.gridDimX = launch.gridDimY = launch.gridDimZ = launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
  launch.hStream = stream_;
  void* arguments[] = {&really};
  return driver().cuLaunchKernelEx(&launch, function_, arguments, nullptr);
}

void Breaker::break_off() noexcept {
  driver().cuCtxSetCurrent(context_->handle());
  launch(1);
}

}  // namespace hone::cuda
