// SPDX-License-Identifier: Apache-2.0
//
// A plan's bytes, whatever they are, load or are refused with an Error.
#include <cstdint>

#include "base/error.h"
#include "plan/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    hone::load_plan(hone::Blob::copy(std::as_bytes(std::span(data, size))));
  } catch (const hone::InternalError&) {
    throw;  // a defect: nothing in a file may reach an assertion
  } catch (const hone::Error&) {}
  return 0;
}
