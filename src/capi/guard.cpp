// SPDX-License-Identifier: Apache-2.0
//
// From exceptions to status codes.
#include "capi/guard.h"

namespace hone::capi {
namespace {

/// The text that what() has before the hint.
std::string text_of(const Error& error) {
  std::string text = error.message();
  for (const std::string& note : error.notes()) text += "\n  while " + note;
  return text;
}

Outcome outcome_of(hone_status status, const Error& error) { return {status, text_of(error), error.hint()}; }

}  // namespace

Outcome& last_failure() {
  static thread_local Outcome failure;
  return failure;
}

Outcome outcome_of_exception() {
  try {
    throw;
  } catch (const Outcome& outcome) {
    return outcome;
  } catch (const InternalError& error) {
    return outcome_of(HONE_INTERNAL, error);
  } catch (const ArgumentError& error) {
    return outcome_of(HONE_INVALID_ARGUMENT, error);
  } catch (const StateError& error) {
    return outcome_of(HONE_INVALID_STATE, error);
  } catch (const OutOfMemory& error) {
    return outcome_of(HONE_OUT_OF_MEMORY, error);
  } catch (const Cancelled& error) {
    return outcome_of(HONE_CANCELLED, error);
  } catch (const Error& error) {
    return outcome_of(HONE_ERROR, error);
  } catch (const std::bad_alloc&) {
    return {HONE_OUT_OF_MEMORY, "out of memory", "a smaller batch or --memPoolSize=workspace:<MiB> needs less"};
  } catch (const std::exception& error) {
    return outcome_of(HONE_INTERNAL, InternalError(error.what()));
  } catch (...) {
    return outcome_of(HONE_INTERNAL, InternalError("of an unknown kind"));
  }
}

}  // namespace hone::capi

const char* hone_last_error(void) { return hone::capi::last_failure().message.c_str(); }
const char* hone_last_hint(void) { return hone::capi::last_failure().hint.c_str(); }
