// SPDX-License-Identifier: Apache-2.0
//
// Memory that other processes' GPUs can map: physical memory with a handle that travels, mapped at an address of this process. It comes in
// steps of some 2 MB, so only what gains by it is allocated this way.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/run/device.h"
#include "device/group.h"

namespace hone::cuda {

class CudaKernel;

class MappedMemory final : public SharedMemory {
 public:
  /// Null where the driver or the GPU has no such memory. Throws OutOfMemory with the amount when it cannot.
  static std::shared_ptr<MappedMemory> allocate(std::shared_ptr<const Context> context, size_t bytes);
  ~MappedMemory() override;
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  void* data() const override { return reinterpret_cast<void*>(address_); }
  size_t size() const override { return bytes_; }
  bool has(const void* operand) const {
    const auto at = reinterpret_cast<CUdeviceptr>(operand);
    return at >= address_ && at < address_ + bytes_;
  }
  /// What others made of it, which ends before it does; each once.
  void hold(std::shared_ptr<const void> made);
  size_t held() const { return held_.size(); }

 private:
  MappedMemory(std::shared_ptr<const Context> context, size_t bytes) : context_(std::move(context)), bytes_(bytes) {}
  CUresult map(const CUmemAllocationProp& properties);

  std::shared_ptr<const Context> context_;
  size_t bytes_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr address_ = 0;
  bool mapped_ = false;
  std::vector<std::shared_ptr<const void>> held_;
};

/// A kernel that ranks launch together and that gains by operands in mapped memory.
class GainsByMapping {
 public:
  virtual ~GainsByMapping() = default;
  /// The same kernel for operands in this memory, which lie at the same places of every rank's. Called on every rank at once.
  virtual std::shared_ptr<const CudaKernel> across(MappedMemory& memory) const = 0;
};

}  // namespace hone::cuda
