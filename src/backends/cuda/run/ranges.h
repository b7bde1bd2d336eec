// SPDX-License-Identifier: Apache-2.0
//
// A named range on the host's time line, for NVIDIA's profilers: each launch that is enqueued or captured has one. Without a
// profiler attached a range costs one test. The header loads what a profiler injects by itself.
#pragma once

#include <string>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HONE_WITH_NVTX 1
#else
#define HONE_WITH_NVTX 0
#endif

namespace hone::cuda {

/// From construction to destruction; nothing where the name is empty.
class NamedRange {
 public:
  explicit NamedRange(const std::string& name) : open_(HONE_WITH_NVTX && !name.empty()) {
#if HONE_WITH_NVTX
    if (open_) nvtxRangePushA(name.c_str());
#endif
  }
  ~NamedRange() {
#if HONE_WITH_NVTX
    if (open_) nvtxRangePop();
#endif
  }
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;

 private:
  bool open_;
};

}  // namespace hone::cuda
