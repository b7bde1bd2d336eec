// SPDX-License-Identifier: Apache-2.0
//
// A GPU as a Device: its primary context, memory from the driver's pool, streams, events, and recordings that replay as
// CUDA graphs. Every call first makes the GPU's context the calling thread's, so any thread may use any device.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backends/cuda/run/libraries.h"
#include "backends/cuda/run/module.h"
#include "device/device.h"
#include "device/group.h"

namespace hone::cuda {

/// The GPU's context. It stays until the process ends: the libraries' handles (handles.h) belong to it.
class Context {
 public:
  explicit Context(int ordinal);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  void select() const { check(driver().cuCtxSetCurrent(context_), "selecting the GPU"); }
  CUcontext handle() const { return context_; }
  CUdevice device() const { return device_; }

 private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

class CudaStream final : public Stream {
 public:
  explicit CudaStream(std::shared_ptr<const Context> context);
  /// A stream of somebody else, who destroys it.
  CudaStream(std::shared_ptr<const Context> context, CUstream stream)
      : context_(std::move(context)), stream_(stream), owned_(false) {}
  ~CudaStream() override;
  void synchronize() override;
  void wait(const Event& event) override;
  bool capturing() const override;
  CUstream handle() const { return stream_; }

 private:
  std::shared_ptr<const Context> context_;
  CUstream stream_ = nullptr;
  bool owned_ = true;
};

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(std::shared_ptr<const Context> context);
  ~CudaEvent() override;
  void record(Stream& stream) override;
  void wait() const override;
  bool passed() const override;
  double milliseconds_since(const Event& earlier) const override;
  CUevent handle() const { return event_; }

 private:
  std::shared_ptr<const Context> context_;
  CUevent event_ = nullptr;
};

/// How many GPUs the driver sees; 0 without a driver.
int device_count();

class CudaDevice final : public Device, public HasGroup {
 public:
  explicit CudaDevice(int ordinal);

  DeviceInfo info() const override { return info_; }
  Ceilings ceilings() override;
  void* allocate(size_t bytes) override;
  void release(void* memory) noexcept override;
  std::shared_ptr<SharedMemory> shared_memory(size_t bytes) override;
  bool ends_only_with_process() const override { return shares_; }
  void* allocate_host(size_t bytes) override;
  void release_host(void* memory) noexcept override;
  std::unique_ptr<Stream> stream() override;
  std::unique_ptr<Stream> stream_of(void* native) override;
  std::unique_ptr<Event> event() override;
  void copy(void* destination, const void* source, size_t bytes, Stream& stream) override;
  void fill(void* memory, std::byte value, size_t bytes, Stream& stream) override;
  /// Every kernel must be a CudaKernel.
  std::unique_ptr<Recording> record(std::vector<Launch> launches) override;
  bool host_accessible() const override { return false; }
  void profile(bool on) override;
  /// Whether a kernel may be launched before the one ahead of it has ended (compute capability 9 and newer).
  bool can_overlap() const;
  const std::shared_ptr<const Context>& context() const { return context_; }
  /// Machine code, loaded once for all that use it at a time: loading takes longer than all else about a kernel.
  std::shared_ptr<const Module> module(const Blob& cubin);

 private:
  std::shared_ptr<const Context> context_;
  std::atomic<bool> shares_ = false;
  std::mutex modules_mutex_;
  std::map<std::string, std::weak_ptr<const Module>> modules_;  // by the hash of their code
  std::unique_ptr<CudaStream> memory_stream_;                   // orders allocations; used by nothing else
  DeviceInfo info_;
  std::once_flag ceilings_measured_;
  Ceilings ceilings_;
};

}  // namespace hone::cuda
