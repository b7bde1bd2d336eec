// SPDX-License-Identifier: Apache-2.0
//
// The C interface as the tools use it: objects that destroy themselves, failures as Error, structs that know their size.
#pragma once

#include <memory>

#include "base/error_text.h"
#include "hone/tools.h"

namespace hone {

struct Destroy {
  void operator()(hone_device* device) const { hone_device_destroy(device); }
  void operator()(hone_options* options) const { hone_options_destroy(options); }
  void operator()(hone_model* model) const { hone_model_destroy(model); }
  void operator()(hone_plan* plan) const { hone_plan_destroy(plan); }
  void operator()(hone_context* context) const { hone_context_destroy(context); }
  void operator()(hone_value* value) const { hone_value_destroy(value); }
  void operator()(hone_engine* engine) const { hone_engine_destroy(engine); }
  void operator()(hone_benchmark* benchmark) const { hone_benchmark_destroy(benchmark); }
  void operator()(hone_timing_cache* cache) const { hone_timing_cache_destroy(cache); }
  void operator()(hone_check* check) const { hone_check_destroy(check); }
  void operator()(hone_reference* reference) const { hone_reference_destroy(reference); }
};
template <typename Object>
using Owned = std::unique_ptr<Object, Destroy>;

/// What the last call that failed says.
inline Error last_error() {
  const std::string hint = hone_last_hint();
  return parse_error(hone_last_error() + (hint.empty() ? hint : "\n  hint: " + hint));
}

inline void check(hone_status status) {
  if (status != HONE_OK) throw last_error();
}

/// Calls a function of the C interface whose last argument receives the object it makes.
template <typename Object, typename... Parameters, typename... Arguments>
Owned<Object> make(hone_status (*function)(Parameters...), const Arguments&... arguments) {
  Object* object = nullptr;
  check(function(arguments..., &object));
  return Owned<Object>(object);
}

/// Calls one whose last argument receives a struct, or a text.
template <typename Result, typename... Parameters, typename... Arguments>
Result ask(hone_status (*function)(Parameters...), const Arguments&... arguments) {
  Result result{};
  if constexpr (requires { result.size; }) result.size = sizeof(Result);
  check(function(arguments..., &result));
  return result;
}

}  // namespace hone
