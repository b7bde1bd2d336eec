// SPDX-License-Identifier: Apache-2.0
//
// A timing cache reads what it can of any text, and what it read it writes back unchanged.
#include <cstdint>

#include "base/error.h"
#include "tuner/timing_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string once = hone::TimingCache::parse({reinterpret_cast<const char*>(data), size}).text();
  const std::string twice = hone::TimingCache::parse(once).text();
  HONE_ASSERT(once == twice, "writing does not settle:\n{}\n{}", once, twice);
  return 0;
}
