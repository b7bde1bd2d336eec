// SPDX-License-Identifier: Apache-2.0
#include "tools/memory_usage.h"

#include <fmt/format.h>
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

}  // namespace

MemoryUsage::MemoryUsage() : before_(resident_bytes()) {}

std::string MemoryUsage::change(std::string_view what) const {
  const int64_t now = resident_bytes();
  return fmt::format("[MemUsageChange] {}: CPU +{}, GPU +0, now: CPU {}, GPU 0 (MiB)", what,
                     std::max<int64_t>(now - before_, 0) >> 20, now >> 20);
}

}  // namespace hone
