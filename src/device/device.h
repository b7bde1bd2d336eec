// SPDX-License-Identifier: Apache-2.0
//
// The run side of a backend: devices, streams, kernels and recorded launch lists. Names neither graphs nor tactics.
//
// A Kernel is immutable, made for concrete shapes, and shared by every context. A Recording is a list of launches whose
// pointers are resolved; replaying one allocates nothing and takes no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/log.h"
#include "base/ranges.h"
#include "tensor/tensor.h"

namespace hone {

/// What a kind of device does at best, as far as it follows from what it is: the same on every day, because choices come from it.
/// What a device was seen to do is in Ceilings.
struct NominalRates {
  double f32_flops = 150e9;                        // per second, of products
  double memory_bytes = 10e9, cache_bytes = 40e9;  // per second
  double launch_ms = 0.002;                        // of a kernel between others
};

/// What a device is, for reports and for keys of the timing cache.
struct DeviceInfo {
  std::string name;          // "AMD EPYC 9V74", "NVIDIA H200"
  std::string architecture;  // "avx512", "avx2", "scalar"; "sm90"
  int workers = 1;           // cores used / SMs
  int64_t memory_bytes = 0;
  int64_t cache_bytes = 0;         // L2 of a core or of the GPU
  int64_t shared_cache_bytes = 0;  // the last cache, where layers gain by what others left in it; 0: none
  int64_t core_bytes = 0;          // fast memory of one core: its L2, or a multiprocessor's shared memory
  double clock_ghz = 0;            // 0: unknown
  double memory_clock_ghz = 0;
  int memory_bus_bits = 0;
  std::optional<bool> error_correction = {};  // of the memory; nothing: unknown
  bool half_arithmetic = false;    // has kernels in f16 and bf16; elsewhere such tensors become f32 inside the network
  bool half_networks = false;      // gains by bringing whole networks to f16 or bf16, not convolutions alone
  bool tf32_matmuls = false;       // rounds the operands of f32 matmuls where that is allowed
  bool bf16_matmuls = false;       // multiplies bf16 faster than f32, into sums of f32, and has convolutions in bf16
  bool byte_matmuls = false;       // multiplies matrices of 8-bit integers into sums of 32 bits
  bool byte_dots = false;          // and adds up several such products at once (VNNI)
  bool code_products = false;      // multiplies 8-bit codes inside networks of floats, where weights are codes, too
  bool float8_products = false;    // and codes that are floats of 8 bits (E4M3)
  bool quantized_weights = false;  // multiplies f32 by constant matrices of up to 8 bits and their scales as they are
  bool half_quantized_weights = false;  // and f16 and bf16 by such
  NominalRates rates = {};
  /// What tells apart devices that call themselves alike: "25-17-1/L2 1048576/L3 33554432" (family, model and stepping; bytes) of a
  /// processor, "79 GiB/driver 13" of a GPU.
  std::string silicon = {};
  /// Whether a network that is quantised runs in 8 bits.
  bool has_integers() const { return byte_matmuls || code_products; }
  /// What decides whether a measured time holds here: architecture, name, workers, silicon.
  std::string key() const { return architecture + "/" + name + "/" + std::to_string(workers) + "/" + silicon; }
};

/// A tensor as a kernel sees it: every size known, unless it is managed. A managed operand is a hone::Tensor of the host,
/// and its address is what Bindings hold: results whose sizes only the run decides, strings, sequences, optionals.
struct ConcreteType {
  DType dtype = DType::f32;
  Dims dims;
  Layout layout = Layout::linear;
  bool managed = false;
  int64_t bytes() const { return byte_size(dtype, dims, layout); }
  friend bool operator==(const ConcreteType&, const ConcreteType&) = default;
};

struct OpDef;
/// Operators that a program brought; of those a kernel knows what is behind them (ir/custom.h).
using OperatorList = std::vector<std::shared_ptr<const OpDef>>;

/// Everything a kernel may depend on besides its blob.
struct KernelShapes {
  std::vector<ConcreteType> inputs, outputs;
  SymbolValues symbols;
  std::optional<std::vector<size_t>> constant_bytes = {};  // of a plan's constants; none: they are compile()'s own
  OperatorList operators = {};                             // that kernels of the sources custom and reference may call
};

struct Bindings {
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  std::span<const void* const> constants;  // what compile() asked to keep: packed weights, tables
  void* workspace = nullptr;               // workspace_bytes() of the kernel, 64-byte aligned, contents undefined
};

class Event;

class Stream {
 public:
  virtual ~Stream() = default;
  virtual void synchronize() = 0;
  /// Work that comes later starts when the event has been passed. Nothing to do where work is done when a call returns.
  virtual void wait(const Event& /*event*/) {}
  /// Whether work goes into a graph that somebody captures, and nothing runs.
  virtual bool capturing() const { return false; }
};

/// A place in a stream's work, with the device's own time.
class Event {
 public:
  virtual ~Event() = default;
  virtual void record(Stream& stream) = 0;
  /// Until the stream has passed it.
  virtual void wait() const = 0;
  virtual bool passed() const = 0;
  /// Both must have been recorded and passed.
  virtual double milliseconds_since(const Event& earlier) const = 0;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual size_t workspace_bytes() const { return 0; }
};

struct Launch {
  std::shared_ptr<const Kernel> kernel;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<const void*> constants;
  void* workspace = nullptr;
  std::vector<size_t> input_bytes = {},
                      output_bytes = {};  // of the operands; empty: not known, no launch may pass this one
  RangeLabel range = {};                  // for a profiler
  Bindings bindings() const { return {inputs, outputs, constants, workspace}; }
};

/// Called once per launch, in order, with its duration.
using LaunchObserver = std::function<void(size_t launch, double milliseconds)>;

class Recording {
 public:
  virtual ~Recording() = default;
  /// The launches, so that a context may exchange pointers between replays.
  virtual std::vector<Launch>& launches() = 0;
  /// Runs all launches in order. Asynchronous where the device is; the CPU returns when done.
  virtual void replay(Stream& stream) = 0;
  /// The same, one launch after the other, each timed.
  virtual void replay(Stream& stream, const LaunchObserver& observer) = 0;
  /// From now on a replay whose flag is set leaves out what it has not begun; results are then undefined. Null: no flag.
  virtual void stop_at(const std::atomic<bool>* /*flag*/) {}
  /// Overwrites what the recording keeps beside the launches' own memory and no kernel may rely on, with kPoison.
  virtual void poison(Stream&) {}
};

/// Every byte of memory whose contents nobody may rely on, in tests: floats of all types are NaN then, integers -1.
inline constexpr std::byte kPoison{0xff};

/// What a device has been seen to do at best; 0: not measured.
struct Ceilings {
  double bytes_per_second = 0;          // of a large copy, bytes read and bytes written
  double f16_flops = 0, f32_flops = 0;  // per second, of a large matmul; of f32 with operands rounded to TF32
  double i8_flops = 0;                  // of bytes into sums of 32 bits; 0: unknown

  /// What layers with operands of that type can reach.
  double flops_of(DType operand) const {
    const bool bytes = (operand == DType::u8 || operand == DType::i8 || operand == DType::f8e4m3fn) && i8_flops > 0;
    return bytes ? i8_flops : operand == DType::f32 ? f32_flops : f16_flops;
  }
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceInfo info() const = 0;
  /// Measured at the first call, which takes a moment; nothing where reports do not ask for it.
  virtual Ceilings ceilings() { return {}; }
  virtual void* allocate(size_t bytes) = 0;  ///< 64-byte aligned at least; throws Error with the amount when it cannot
  virtual void release(void* memory) noexcept = 0;
  /// Host memory that copies go to and come from fastest.
  virtual void* allocate_host(size_t bytes) { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
  virtual void release_host(void* memory) noexcept { std::free(memory); }
  virtual std::unique_ptr<Stream> stream() = 0;
  /// A stream that somebody else made and destroys: a cudaStream_t. Throws Error where there are none.
  virtual std::unique_ptr<Stream> stream_of(void* native);
  /// Whether it was opened with cores of its own: who computes on it is bound to them.
  virtual bool has_cores() const { return false; }
  /// Binds the calling thread, and the threads that it starts, to the cores that the device was opened with.
  virtual void adopt_thread() const {}
  /// Null where work is done when a call returns: the host's clock serves there.
  virtual std::unique_ptr<Event> event() { return nullptr; }
  virtual void copy(void* destination, const void* source, size_t bytes, Stream& stream) = 0;
  /// Sets every byte of device memory.
  virtual void fill(void* memory, std::byte value, size_t bytes, Stream& stream) = 0;
  virtual std::unique_ptr<Recording> record(std::vector<Launch> launches) = 0;
  /// Whether host pointers may be bound directly, without copies.
  virtual bool host_accessible() const = 0;
  /// A profiler that waits for it begins or ends its recording.
  virtual void profile(bool /*on*/) {}
};

inline std::unique_ptr<Stream> Device::stream_of(void*) {
  throw Error("this device has no streams but Hone's own", "make the stream with Hone");
}

enum class MemoryKind { device, host };

/// Memory of a device, or host memory for its copies, with an owner.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, size_t bytes, MemoryKind kind = MemoryKind::device)
      : device_(&device),
        kind_(kind),
        data_(bytes == 0                   ? nullptr
              : kind == MemoryKind::device ? device.allocate(bytes)
                                           : device.allocate_host(bytes)),
        size_(bytes) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (data_ == nullptr) return;
    if (kind_ == MemoryKind::device) device_->release(data_);
    else device_->release_host(data_);
  }
  void* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(kind_, other.kind_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  Device* device_ = nullptr;
  MemoryKind kind_ = MemoryKind::device;
  void* data_ = nullptr;
  size_t size_ = 0;
};

class TacticSource;

/// Which of a backend's devices, and how much of it. What is not said is what the environment says, else all there is.
struct DeviceChoice {
  DeviceChoice(int which = 0) : ordinal(which) {}
  int ordinal;
  int workers = 0;         // threads of a processor
  std::vector<int> cores;  // logical processors, for a processor's threads and, where it has several nodes, its memory
  std::string instruction_set;  // the most of a processor's that is used: "scalar", "avx2", "avx512"
};

/// A backend as data; the array of all of them is in backends/all.cpp.
struct Backend {
  std::string_view name;
  int (*devices)();  ///< how many there are; 0 where the machine has none
  /// Throws Error with the reason when there is no such device.
  std::unique_ptr<Device> (*open)(const DeviceChoice& choice);
  /// Bytes of a plan to something launchable, for these shapes. `source` is the tactic source that compiled them.
  std::shared_ptr<const Kernel> (*load)(Device& device, std::string_view source, const Blob& code,
                                        const KernelShapes& shapes);
  std::span<const TacticSource* const> sources;  ///< in order of preference; the reference last
  std::string (*versions)();                     ///< libraries and own kernels, for cache keys: "onednn 3.2.0, cpu 1"
};

}  // namespace hone
