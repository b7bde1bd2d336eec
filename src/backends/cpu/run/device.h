// SPDX-License-Identifier: Apache-2.0
//
// The processor as a Device: host memory, streams that run at once, recordings that replay on a team of workers.
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/jit/isa.h"
#include "device/device.h"
#include "device/group.h"

namespace hone::cpu {

struct DeviceOptions {
  int workers = 0;              // 0: HONE_THREADS, else as many as there are cores
  std::vector<int> cores = {};  // logical processors; empty: those of this process
  Isa isa = best_isa();
  int64_t shared_cache_bytes = -1;  // for choices; -1: the machine's
};

class CpuDevice final : public Device, public HasGroup {
 public:
  explicit CpuDevice(const DeviceOptions& options = {});

  DeviceInfo info() const override { return info_; }
  Ceilings ceilings() override;
  void* allocate(size_t bytes) override;
  void release(void* memory) noexcept override;
  std::unique_ptr<Stream> stream() override;
  bool has_cores() const override { return !cores_.empty(); }
  void adopt_thread() const override;
  void copy(void* destination, const void* source, size_t bytes, Stream& stream) override;
  void fill(void* memory, std::byte value, size_t bytes, Stream& stream) override;
  /// Every kernel must be a CpuKernel.
  std::unique_ptr<Recording> record(std::vector<Launch> launches) override;
  bool host_accessible() const override { return true; }

 private:
  const Isa isa_;
  const std::vector<int> cores_;
  const int node_;  // of the cores' memory; -1: anywhere
  DeviceInfo info_;
};

}  // namespace hone::cpu
