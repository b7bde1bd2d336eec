// SPDX-License-Identifier: Apache-2.0
//
// Errors, log lines and messages of the server.
#include "triton/server.h"

namespace hone::triton {
namespace {

hone_status status_of(TRITONSERVER_Error_Code code) {
  switch (code) {
    case TRITONSERVER_ERROR_CANCELLED: return HONE_CANCELLED;
    case TRITONSERVER_ERROR_INVALID_ARG: return HONE_ERROR;
    default: return HONE_INTERNAL;
  }
}

TRITONSERVER_Error_Code code_of(hone_status status) {
  switch (status) {
    case HONE_CANCELLED: return TRITONSERVER_ERROR_CANCELLED;
    case HONE_OUT_OF_MEMORY: return TRITONSERVER_ERROR_UNAVAILABLE;
    case HONE_ERROR:
    case HONE_INVALID_ARGUMENT: return TRITONSERVER_ERROR_INVALID_ARG;
    default: return TRITONSERVER_ERROR_INTERNAL;
  }
}

}  // namespace

void ask(TRITONSERVER_Error* error) {
  if (error == nullptr) return;
  const Error failure(status_of(TRITONSERVER_ErrorCode(error)), TRITONSERVER_ErrorMessage(error), {});
  TRITONSERVER_ErrorDelete(error);
  throw failure;
}

void tell(TRITONSERVER_Error* error) noexcept {
  if (error == nullptr) return;
  log(TRITONSERVER_LOG_ERROR, TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
}

TRITONSERVER_Error* error_of(const Error& failure) noexcept {
  return TRITONSERVER_ErrorNew(code_of(failure.status()), failure.what());
}

TRITONSERVER_Error* current_error() noexcept {
  try {
    throw;
  } catch (const Error& failure) {
    return error_of(failure);
  } catch (const std::bad_alloc&) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "the host has too little memory");
  } catch (const std::exception& failure) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, failure.what());
  } catch (...) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "an exception of no known type");
  }
}

void log(TRITONSERVER_LogLevel level, const std::string& text) noexcept {
  if (TRITONSERVER_Error* error = TRITONSERVER_LogMessage(level, "hone", 0, text.c_str()))
    TRITONSERVER_ErrorDelete(error);
}

Log log_of(std::string name) {
  return {HONE_LOG_INFO, [name = std::move(name)](hone_severity severity, std::string_view text) {
            const auto level = severity <= HONE_LOG_ERROR     ? TRITONSERVER_LOG_ERROR
                               : severity == HONE_LOG_WARNING ? TRITONSERVER_LOG_WARN
                                                              : TRITONSERVER_LOG_VERBOSE;
            if (TRITONSERVER_LogIsEnabled(level)) log(level, name + ": " + std::string(text));
          }};
}

std::string text_of(TRITONSERVER_Message* message) {
  const char* text = nullptr;
  size_t bytes = 0;
  TRITONSERVER_Error* failed = TRITONSERVER_MessageSerializeToJson(message, &text, &bytes);
  std::string copy = failed == nullptr ? std::string(text, bytes) : std::string();
  tell(TRITONSERVER_MessageDelete(message));
  ask(failed);
  return copy;
}

}  // namespace hone::triton
