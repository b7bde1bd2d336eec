// SPDX-License-Identifier: Apache-2.0
//
// What every CUDA kernel is: something that enqueues work into a stream, or a piece of work for the host between two runs of
// device work. Arguments are written down once, when a plan is loaded; a launch only fills in the pointers.
#pragma once

#include <array>
#include <vector>

#include "backends/cuda/run/libraries.h"
#include "backends/cuda/run/module.h"
#include "device/device.h"

namespace hone::cuda {

class CudaKernel : public Kernel {
 public:
  /// Enqueues without waiting. Must not allocate device memory: it is also called while a graph is captured. `early`: what
  /// stands before it in the stream is a kernel, and its blocks may start before that has ended, as long as they wait for the
  /// end before they touch operands (await_operands() of support/prelude.cuh). Libraries ask for that by themselves.
  virtual void enqueue(CUstream stream, const Bindings& bindings, bool early) const = 0;
  /// What enqueue() launches, if all of it waits for its operands as await_operands() does. Empty: it calls a library, which
  /// may launch kernels that begin early and read some operand without waiting; the recording sees to it that they cannot.
  virtual std::vector<CUfunction> waiting_functions() const { return {}; }
  /// Runs on the host, on copies of the operands in host memory: the recording makes them. Called instead of enqueue().
  virtual bool on_host() const { return false; }
  virtual void run_on_host(const Bindings&) const {}
  /// Throws Error where it names an operand or a constant that a plan's step does not have.
  virtual void require_places(const KernelShapes&) const {}
  /// Bytes of every operand, for the copies; asked for only when on_host().
  virtual KernelShapes host_shapes() const { return {}; }
};

/// The arguments of one launch: pointers are named by where they come from, everything else is stored as it is.
class Arguments {
 public:
  Arguments& input(int64_t index, int64_t bytes = 0) { return pointer(Kind::input, index, bytes); }
  Arguments& output(int64_t index, int64_t bytes = 0) { return pointer(Kind::output, index, bytes); }
  Arguments& constant(int64_t index, int64_t bytes = 0) { return pointer(Kind::constant, index, bytes); }
  Arguments& workspace(int64_t bytes = 0) { return pointer(Kind::workspace, 0, bytes); }
  Arguments& null() { return pointer(Kind::null, 0, 0); }
  /// A region input (>= 0) or constant -1 - k, as kernels' codes number places; `bytes` behind its start.
  Arguments& place(int64_t index, int64_t bytes = 0) {
    return index >= 0 ? input(index, bytes) : constant(-1 - index, bytes);
  }
  template <typename T>
  Arguments& value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    slots_.push_back({Kind::value, static_cast<int64_t>(bytes_.size())});
    bytes_.resize((bytes_.size() + sizeof(T) + 7) / 8 * 8);
    std::memcpy(bytes_.data() + slots_.back().at, &value, sizeof(T));
    return *this;
  }

  void require_places(const KernelShapes& shapes) const;

  static constexpr size_t kMost = 32;
  /// Fills `list` as cuLaunchKernel() wants it; `pointers` must outlive the launch call.
  void resolve(const Bindings& bindings, std::array<void*, kMost>& pointers, std::array<void*, kMost>& list) const;

 private:
  enum class Kind : uint8_t { input, output, constant, workspace, null, value };
  struct Slot {
    Kind kind;
    int64_t at;          // index, or place in bytes_
    int64_t offset = 0;  // of a pointer, in bytes
  };
  Arguments& pointer(Kind kind, int64_t at, int64_t offset);

  std::vector<Slot> slots_;
  std::vector<std::byte> bytes_;
};

struct Grid {
  int64_t x = 1, y = 1, z = 1;
};

/// One launch of a function of a module.
struct GridLaunch {
  CUfunction function = nullptr;
  Grid grid;
  unsigned block = 256, shared_bytes = 0;
  Arguments arguments;
};

/// Launches of generated code, one after the other.
class GridKernel final : public CudaKernel {
 public:
  GridKernel(std::shared_ptr<const Module> module, std::vector<GridLaunch> launches, size_t workspace = 0);
  void enqueue(CUstream stream, const Bindings& bindings, bool early) const override;
  std::vector<CUfunction> waiting_functions() const override;
  size_t workspace_bytes() const override { return workspace_; }
  void require_places(const KernelShapes& shapes) const override {
    for (const GridLaunch& launch : launches_) launch.arguments.require_places(shapes);
  }

 private:
  std::shared_ptr<const Module> module_;
  std::vector<GridLaunch> launches_;
  size_t workspace_;
};

}  // namespace hone::cuda
