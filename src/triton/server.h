// SPDX-License-Identifier: Apache-2.0
//
// Triton's errors and messages as C++: what it refuses is thrown as Hone's own failures are, and what was thrown is its error again.
#pragma once

#include <string>

#include "hone/hone.hpp"
#include "triton/triton_abi.h"

namespace hone::triton {

/// Throws what the server says, whose error is freed.
void ask(TRITONSERVER_Error* error);
/// The same where there is nobody to tell but the log.
void tell(TRITONSERVER_Error* error) noexcept;

/// What is being handled, for the server.
TRITONSERVER_Error* current_error() noexcept;
TRITONSERVER_Error* error_of(const Error& failure) noexcept;

/// body(), whose exceptions the server gets as errors.
template <typename Body>
TRITONSERVER_Error* guarded(Body&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (...) {
    return current_error();
  }
}

void log(TRITONSERVER_LogLevel level, const std::string& text) noexcept;
/// Hone's lines in the server's log, each behind `name`.
Log log_of(std::string name);

/// The text of a message, which is freed.
std::string text_of(TRITONSERVER_Message* message);

}  // namespace hone::triton
