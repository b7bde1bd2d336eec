// SPDX-License-Identifier: Apache-2.0
//
// What every CUDA kernel is: something that enqueues work into a stream, or a piece of work for the host between two runs of
// device work. Arguments are written down once, when a plan is loaded; a launch only fills in the pointers.
#pragma once

#include <array>
#include <optional>
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
  /// Whether enqueue() may be called while a graph is captured; what may not stands between two graphs.
  virtual bool capturable() const { return true; }
  /// Whether the last thing that enqueue() puts into the stream is a kernel, which the one behind it may overlap.
  virtual bool ends_with_kernel() const { return true; }
  /// Runs on the host, on copies of the operands in host memory: the recording makes them. Called instead of enqueue().
  virtual bool on_host() const { return false; }
  virtual void run_on_host(const Bindings&) const {}
  /// Throws Error where it names an operand or a constant that a plan's step does not have.
  virtual void require_places(const KernelShapes&) const {}
  /// Bytes of every operand, for the copies; asked for only when on_host().
  virtual KernelShapes host_shapes() const { return {}; }
};

/// A pointer of a launch, named by where it comes from; `bytes` behind its start.
struct Pointer {
  enum class From : uint8_t { input, output, constant, workspace, nowhere };
  From from = From::nowhere;  // nowhere: null
  int64_t index = 0, bytes = 0;
};
/// What a kernel reads and what it writes; neither serves as the other.
struct Reads : Pointer {};
struct Writes : Pointer {};

inline Reads input(int64_t index, int64_t bytes = 0) { return {{Pointer::From::input, index, bytes}}; }
inline Reads constant(int64_t index, int64_t bytes = 0) { return {{Pointer::From::constant, index, bytes}}; }
inline Reads from_workspace() { return {{Pointer::From::workspace}}; }
inline Writes output(int64_t index, int64_t bytes = 0) { return {{Pointer::From::output, index, bytes}}; }
inline Writes to_workspace() { return {{Pointer::From::workspace}}; }

/// An operand of which a kernel asks for boxes, as the engine that copies tensors on Hopper is told of it, which puts zeros where there is
/// nothing: sizes and the box's, from the innermost on, the first ones in bytes. Those are a multiple of 16, and of the box 128, 64 or 32, whose
/// pieces of 16 are exchanged by bits of where they lie in shared memory.
struct MappedOperand {
  static constexpr size_t kMostAxes = 4;
  Reads from;
  size_t axes = 2;
  std::array<int64_t, kMostAxes> sizes{16, 1, 1, 1}, box{128, 1, 1, 1};
};

/// The arguments of one launch: pointers by name, everything else as it is.
class Arguments {
 public:
  Arguments& pointer(const Pointer& pointer);
  /// Of one launch no more than once.
  Arguments& mapped(const MappedOperand& operand);
  template <typename T>
  Arguments& value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return bytes(&value, sizeof(T));
  }

  void require_places(const KernelShapes& shapes) const;

  static constexpr size_t kMost = 80;
  /// What `list` points to must outlive the launch call.
  struct Resolved {
    std::array<void*, kMost> pointers, list;  // the latter as cuLaunchKernel() wants it
    CUtensorMap map;
  };
  /// Throws Error where the driver does not know what is asked of it.
  void resolve(const Bindings& bindings, Resolved& to) const;

 private:
  struct Slot {
    Pointer pointer;
    std::optional<size_t> value;  // place in bytes_, of what is no pointer
    bool mapped = false;          // mapped_
  };
  Arguments& bytes(const void* value, size_t size);
  Arguments& add(const Slot& slot);

  std::vector<Slot> slots_;
  std::vector<std::byte> bytes_;
  MappedOperand mapped_;
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

/// How many clusters of `blocks` the GPU runs at once: it may have processors that fill none. 0 where the driver does not say.
int64_t clusters_at_once(const GridLaunch& launch, int64_t blocks);

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
