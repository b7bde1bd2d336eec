// SPDX-License-Identifier: Apache-2.0
//
// What every CPU kernel is: a function of (phase, worker, workers, bindings) over a static partition. The device runs a
// whole chain of kernels inside one parallel region, with a barrier between phases and kernels.
#pragma once

#include "device/device.h"

namespace hone::cpu {

class CpuKernel : public Kernel {
 public:
  /// Number of calls per worker, with a barrier between them.
  virtual int phases() const { return 1; }
  /// Called by every worker at once. Must not allocate, lock or throw.
  virtual void run(int phase, int worker, int workers, const Bindings& bindings) const = 0;
  /// Constants in another form than the plan holds, where the sizes or the team want one: made once for each launch of a
  /// recording, and bound behind the launch's own constants. 0: none.
  virtual size_t prepared_bytes() const { return 0; }
  virtual void prepare(std::span<const void* const> /*constants*/, void* /*to*/) const {}
  /// Of the launch's constants those that a worker reads first: while it waits for others they are brought near.
  virtual std::span<const std::byte> read_first(int /*worker*/, int /*workers*/,
                                                std::span<const void* const> /*constants*/) const {
    return {};
  }
  /// A library that opens its own parallel region: called once, as run(0, 0, 1, …), between two chains.
  virtual bool self_parallel() const { return false; }
  /// Small enough that one worker should do all of it (others wait at the barrier only).
  virtual bool serial() const { return false; }
};

/// Worker `worker`'s share [begin, end) of `count` items.
struct Share {
  int64_t begin, end;
};
inline Share share_of(int64_t count, int worker, int workers) {
  return {count * worker / workers, count * (worker + 1) / workers};
}

}  // namespace hone::cpu
