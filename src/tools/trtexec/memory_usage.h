// SPDX-License-Identifier: Apache-2.0
//
// Growth of the process over a step, as the [MemUsageChange] lines report it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hone {

/// "Memory after <phase>: 123 MiB resident, 456 MiB at the highest", of the process.
std::string memory_after(std::string_view phase);

class MemoryUsage {
 public:
  MemoryUsage();  ///< takes the snapshot before the step
  /// "[MemUsageChange] <what>: CPU +a, GPU +0, now: CPU b, GPU 0 (MiB)"
  std::string change(std::string_view what) const;

 private:
  int64_t before_;  // bytes resident
};

}  // namespace hone
