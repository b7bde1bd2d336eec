// SPDX-License-Identifier: Apache-2.0
//
// The few functions of ONNX Runtime's C interface that a run needs. Its interface is one table of functions whose order never changes; the
// numbers here are places in it, so that nothing of ONNX Runtime is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "hone/hone.h"

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

/// Its numbers of element types.
inline constexpr std::pair<hone_dtype, int> kElements[] = {
    {HONE_F32, 1},  {HONE_U8, 2},   {HONE_I8, 3},   {HONE_U16, 4},  {HONE_I16, 5},  {HONE_I32, 6},  {HONE_I64, 7},
    {HONE_BOOL, 9}, {HONE_F16, 10}, {HONE_F64, 11}, {HONE_U32, 12}, {HONE_U64, 13}, {HONE_BF16, 16}};

class Table {
 public:
  /// `entry`: the library's function OrtGetApiBase. Without one, or where it is older than 1.11, the table is empty.
  explicit Table(void* entry) {
    constexpr uint32_t kVersion = 11;  // every later library has it
    struct Base {
      const void* (*table)(uint32_t);
      const char* (*version)();
    };
    if (entry == nullptr) return;
    const Base* base = reinterpret_cast<const Base* (*)()>(entry)();
    functions_ = static_cast<void* const*>(base->table(kVersion));
    version_ = base->version();
  }

  bool empty() const { return functions_ == nullptr; }
  const std::string& version() const { return version_; }

  /// Calls a function that returns a status: "", or what went wrong.
  template <typename... Arguments>
  std::string attempt(Slot slot, Arguments... arguments) const {
    Object* status = at<Object* (*)(Arguments...)>(slot)(arguments...);
    if (status == nullptr) return {};
    std::string message = at<const char* (*)(Object*)>(Slot::error_message)(status);
    release(Slot::release_status, status);
    return message.empty() ? "it failed" : message;
  }
  void release(Slot slot, Object* object) const {
    if (object != nullptr) at<void (*)(Object*)>(slot)(object);
  }

 private:
  template <typename Function>
  Function at(Slot slot) const {
    return reinterpret_cast<Function>(functions_[static_cast<size_t>(slot)]);
  }

  void* const* functions_ = nullptr;
  std::string version_;
};

}  // namespace hone::ort
