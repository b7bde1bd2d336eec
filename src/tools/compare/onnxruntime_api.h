// SPDX-License-Identifier: Apache-2.0
//
// The few functions of ONNX Runtime's C interface that a runner needs, found in a library that is opened when it is asked for: Hone is
// built without it. Its interface is one table of functions whose order never changes; the numbers here are places in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hone::ort {

struct Object;  // all of its objects are opaque

enum class Slot : size_t {
  error_message = 2,
  create_env = 3,
  create_session = 7,
  create_session_from_array = 8,
  run = 9,
  create_options = 10,
  set_log_severity = 22,
  set_optimization = 23,
  set_threads = 24,
  input_count = 30,
  output_count = 31,
  input_name = 36,
  output_name = 37,
  create_tensor = 49,
  tensor_data = 51,
  element_type = 60,
  dimension_count = 61,
  dimensions = 62,
  type_and_shape = 65,
  value_type = 67,
  cpu_memory = 69,
  free_memory = 76,
  default_allocator = 78,
  release_env = 92,
  release_status = 93,
  release_memory_info = 94,
  release_session = 95,
  release_value = 96,
  release_type_and_shape = 99,
  release_options = 100,
  available_providers = 125,
  release_providers = 126,
  add_config_entry = 130,
};

class Library {
 public:
  /// Opens it: `path` where it is given, else where $HONE_ONNXRUNTIME_LIB says, the loader, and the packages of a Python next to the
  /// program or in $VIRTUAL_ENV. Throws StatusError (no_backend) with the places that were searched.
  explicit Library(const std::string& path);

  /// Calls a function that returns a status; throws Error with its message.
  template <typename... Arguments>
  void call(Slot slot, Arguments... arguments) const {
    auto function = reinterpret_cast<Object* (*)(Arguments...)>(table_[static_cast<size_t>(slot)]);
    check(function(arguments...));
  }
  void release(Slot slot, Object* object) const {
    if (object != nullptr) reinterpret_cast<void (*)(Object*)>(table_[static_cast<size_t>(slot)])(object);
  }
  const std::string& version() const { return version_; }

 private:
  void check(Object* status) const;

  void* const* table_ = nullptr;
  std::string version_;
};

}  // namespace hone::ort
