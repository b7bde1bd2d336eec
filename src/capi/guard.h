// SPDX-License-Identifier: Apache-2.0
//
// The border between exceptions and status codes, and what is asked of every argument.
#pragma once

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "base/state_error.h"
#include "capi/handle.h"
#include "hone/tools.h"

namespace hone::capi {

/// What a call came to.
struct Outcome {
  hone_status status = HONE_OK;
  std::string message = {}, hint = {};
};

/// Of the calling thread's last failure; what hone_last_error() and hone_last_hint() show.
Outcome& last_failure();

/// A call that no state of the objects makes right.
class ArgumentError : public Error {
 public:
  using Error::Error;
};

/// Throws ArgumentError for NULL and, of handles, for those of another kind and those that have been destroyed.
template <typename T>
void require(const T* pointer, const char* what) {
  if (pointer == nullptr) throw ArgumentError(std::string(what) + " is NULL");
  if constexpr (requires { T::kKind; }) {
    if (pointer->is_valid()) return;
    throw ArgumentError(fmt::format("{} is no {}", what, name_of(T::kKind)),
                        "it is a handle of another kind, or has been destroyed");
  }
}

inline void require_index(size_t index, size_t count, const char* what) {
  if (index >= count) throw ArgumentError(fmt::format("{} {} is asked for, there are {}", what, index, count));
}

/// What the caller set of a struct; the rest is zero.
template <typename T>
T taken(const T* given, const char* what) {
  require(given, what);
  if (given->size < sizeof(size_t))
    throw ArgumentError(fmt::format("{}->size is {}", what, given->size), "set it to sizeof the struct");
  T whole{};
  std::memcpy(&whole, given, std::min(given->size, sizeof(T)));
  whole.size = sizeof(T);
  return whole;
}

/// Fills a caller's struct as far as it goes.
template <typename T>
void fill(T* out, const char* what, T whole) {
  whole.size = taken(out, what).size;
  const size_t known = std::min(out->size, sizeof(T)), size = out->size;
  std::memcpy(out, &whole, known);
  out->size = size;
}

/// What an exception that is being handled comes to.
Outcome outcome_of_exception();

/// Runs `body`; every exception becomes a status and the thread's last failure.
template <typename Body>
hone_status guarded(Body&& body) {
  try {
    body();
    return HONE_OK;
  } catch (...) {
    last_failure() = outcome_of_exception();
    return last_failure().status;
  }
}

/// Frees a handle; NULL is none, and what is no such handle stays.
template <typename T>
void destroy(T* handle, const char* what) {
  if (handle == nullptr) return;
  guarded([&] {
    require(handle, what);
    delete handle;
  });
}

}  // namespace hone::capi
