// SPDX-License-Identifier: Apache-2.0
//
// A timing cache reads what it can of any text, and what it read it writes back unchanged.
#include "harness.h"
#include "tuner/timing_cache.h"

namespace hone::fuzz {

std::vector<std::string> seed_inputs() {
  TimingCache cache;
  cache.put("conv | cpu.tile{mr=14}", {0.25, 0.01, 12, ""});
  cache.put("a \"key\" with \\ and \t", {1e-9, 0, 0, "wrong result"});
  return {cache.text()};
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string once = hone::TimingCache::parse(hone::fuzz::text_of(data, size)).text();
  const std::string twice = hone::TimingCache::parse(once).text();
  HONE_ASSERT(once == twice, "writing does not settle:\n{}\n{}", once, twice);
  return 0;
}
