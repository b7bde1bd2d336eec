// SPDX-License-Identifier: Apache-2.0
//
// IR text parses or is refused with an Error; what parses prints to text that parses to the same print.
#include <cstdint>

#include "base/error.h"
#include "ir/graph.h"
#include "ops/all.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string once = print(hone::parse_graph({reinterpret_cast<const char*>(data), size}, hone::find_op));
    const std::string twice = print(hone::parse_graph(once, hone::find_op));
    HONE_ASSERT(once == twice, "printing does not settle:\n{}\n{}", once, twice);
  } catch (const hone::InternalError&) {
    throw;
  } catch (const hone::Error&) {}
  return 0;
}
