// SPDX-License-Identifier: Apache-2.0
//
// What every target offers: the function that libFuzzer calls, and valid inputs to begin with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace hone::fuzz {

std::vector<std::string> seed_inputs();

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// How many bodies of accepted() ended well.
inline size_t accepted_bodies = 0;

/// Whether `body` ended well. A refusal is as good an answer as any; a failed assertion is a defect and leaves.
template <typename Body>
bool accepted(const Body& body) {
  try {
    body();
    ++accepted_bodies;
    return true;
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {}
  return false;
}

}  // namespace hone::fuzz
