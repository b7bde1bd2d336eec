// SPDX-License-Identifier: Apache-2.0
#include "tools/trtexec/memory_usage.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace hone {
namespace {

int64_t resident_bytes() {
  long long total = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  const int fields = std::fscanf(file, "%lld %lld", &total, &resident);
  std::fclose(file);
  return fields == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

int64_t peak_bytes() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? int64_t{usage.ru_maxrss} * 1024 : 0;
}

}  // namespace

std::string memory_after(std::string_view phase) {
  return fmt::format("Memory after {}: {} MiB resident, {} MiB at the highest", phase, resident_bytes() >> 20,
                     std::max(peak_bytes(), resident_bytes()) >> 20);
}

MemoryUsage::MemoryUsage() : before_(resident_bytes()) {}

std::string MemoryUsage::change(std::string_view what) const {
  const int64_t now = resident_bytes();
  return fmt::format("[MemUsageChange] {}: CPU +{}, GPU +0, now: CPU {}, GPU 0 (MiB)", what,
                     std::max<int64_t>(now - before_, 0) >> 20, now >> 20);
}

}  // namespace hone
