// SPDX-License-Identifier: Apache-2.0
//
// The border between exceptions and status codes.
#pragma once

#include <new>
#include <string>

#include "base/error.h"
#include "hone/hone.h"

namespace hone::capi {

/// Of the calling thread; what hone_last_error() shows.
std::string& last_error();

inline void require(const void* pointer, const char* what) { HONE_CHECK(pointer != nullptr, "{} is NULL", what); }

/// Runs `body`; every exception becomes a status and the thread's last error.
template <typename Body>
hone_status guarded(Body&& body) {
  try {
    body();
    return HONE_OK;
  } catch (const InternalError& error) {
    last_error() = error.what();
    return HONE_INTERNAL;
  } catch (const Error& error) {
    last_error() = error.what();
    return HONE_ERROR;
  } catch (const std::bad_alloc&) {
    last_error() = "out of memory\n  hint: a smaller batch or --memPoolSize=workspace:<MiB> needs less";
    return HONE_ERROR;
  } catch (const std::exception& error) {
    last_error() = std::string("internal error: ") + error.what();
    return HONE_INTERNAL;
  } catch (...) {
    last_error() = "internal error of an unknown kind";
    return HONE_INTERNAL;
  }
}

}  // namespace hone::capi
