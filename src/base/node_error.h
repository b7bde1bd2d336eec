// SPDX-License-Identifier: Apache-2.0
//
// Errors about nodes of a model that say which part of the node is wrong, for those who list what is wrong with a model.
#pragma once

#include "base/error.h"

namespace hone {

/// Of a node whose attribute is missing, unknown, of another kind or out of range.
class AttributeError : public Error {
 public:
  using Error::Error;
};

/// Of a tensor whose element type does not go where it stands.
class TypeError : public Error {
 public:
  using Error::Error;
};

template <typename Kind, typename... Args>
[[noreturn, gnu::cold, gnu::noinline]] void throw_check_as(fmt::format_string<const Args&...> format,
                                                           const Args&... args) {
  throw Kind(fmt::vformat(format, fmt::make_format_args(args...)));
}

}  // namespace hone

/// HONE_CHECK with one of these: HONE_CHECK_AS(TypeError, cond, "operand {} is {}", i, type).
#define HONE_CHECK_AS(Kind, condition, ...)      \
  do {                                           \
    if (!(condition)) [[unlikely]]               \
      ::hone::throw_check_as<Kind>(__VA_ARGS__); \
  } while (false)
