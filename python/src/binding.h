// SPDX-License-Identifier: Apache-2.0
//
// What the parts of the compiled module share: handles of hone.h that Python owns, failures as exceptions, callables as callbacks.
//
// The module is hone.h as Python sees it, one class for each kind of object and addresses for memory. What an address points to,
// and how long it lives, is the business of the package (hone/), which holds the arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hone/graph.h"
#include "hone/hone.h"

namespace nb = nanobind;

namespace hone::python {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Cancelled : Error {
  using Error::Error;
};

inline nb::object text(const char* from) {
  return nb::steal(
      PyUnicode_DecodeUTF8(from, static_cast<Py_ssize_t>(std::char_traits<char>::length(from)), "replace"));
}

/// What the calling thread's last failure was, as text. A damaged model's names may be no UTF-8.
inline std::string last_failure() {
  const std::string hint = hone_last_hint();
  const std::string whole = hint.empty() ? hone_last_error() : hone_last_error() + ("\n  hint: " + hint);
  return nb::cast<std::string>(text(whole.c_str()));
}

inline void check(hone_status status) {
  if (status == HONE_OK) return;
  if (status == HONE_CANCELLED) throw Cancelled(last_failure());
  throw Error(last_failure());
}

/// Calls a function of hone.h while Python's other threads run.
template <typename Function, typename... Arguments>
void call(Function* function, Arguments... arguments) {
  hone_status status;
  {
    nb::gil_scoped_release release;
    status = function(arguments...);
  }
  check(status);
}

/// Other threads run meanwhile: the end of an object may wait for work whose callbacks are Python's.
struct Destroy {
  template <typename Object>
  void operator()(Object* object) const {
    nb::gil_scoped_release release;
    if constexpr (std::is_same_v<Object, hone_device>) hone_device_destroy(object);
    else if constexpr (std::is_same_v<Object, hone_options>) hone_options_destroy(object);
    else if constexpr (std::is_same_v<Object, hone_model>) hone_model_destroy(object);
    else if constexpr (std::is_same_v<Object, hone_network>) hone_network_destroy(object);
    else if constexpr (std::is_same_v<Object, hone_plan>) hone_plan_destroy(object);
    else if constexpr (std::is_same_v<Object, hone_engine>) hone_engine_destroy(object);
    else if constexpr (std::is_same_v<Object, hone_context>) hone_context_destroy(object);
    else if constexpr (std::is_same_v<Object, hone_value>) hone_value_destroy(object);
    else if constexpr (std::is_same_v<Object, hone_buffer>) hone_buffer_destroy(object);
    else if constexpr (std::is_same_v<Object, hone_stream>) hone_stream_destroy(object);
    else if constexpr (std::is_same_v<Object, hone_event>) hone_event_destroy(object);
    else if constexpr (std::is_same_v<Object, hone_diagnosis>) hone_diagnosis_destroy(object);
    else if constexpr (std::is_same_v<Object, hone_graph>) hone_graph_destroy(object);
    else if constexpr (std::is_same_v<Object, hone_reference>) hone_reference_destroy(object);
    else hone_timing_cache_destroy(object);
  }
};

template <typename Object>
struct Handle {
  std::unique_ptr<Object, Destroy> object;
  Object* get() const { return object.get(); }

  /// Calls a function whose last argument receives the object.
  template <typename Function, typename... Arguments>
  static Handle make(Function* function, Arguments... arguments) {
    Object* made = nullptr;
    call(function, arguments..., &made);
    return {std::unique_ptr<Object, Destroy>(made)};
  }
};
using Device = Handle<hone_device>;
using Buffer = Handle<hone_buffer>;
using Stream = Handle<hone_stream>;
using Event = Handle<hone_event>;
using Options = Handle<hone_options>;
using TimingCache = Handle<hone_timing_cache>;
using Model = Handle<hone_model>;
using Network = Handle<hone_network>;
using Plan = Handle<hone_plan>;
using Engine = Handle<hone_engine>;
using Value = Handle<hone_value>;
using Reference = Handle<hone_reference>;

template <typename T>
T sized() {
  T value{};
  value.size = sizeof value;
  return value;
}

/// Name, element type, whether an input, sizes (nothing without rank), whether it cannot be bound; of containers the types of
/// elements and of keys inside.
using TensorInfo = std::tuple<std::string, int, bool, std::vector<int64_t>, bool, int, int>;

inline TensorInfo info_of(const hone_tensor& tensor) {
  return {tensor.name,
          tensor.dtype,
          tensor.is_input != 0,
          std::vector<int64_t>(tensor.dims, tensor.dims + std::max(tensor.rank, 0)),
          tensor.by_value != 0,
          tensor.element,
          tensor.key};
}

/// `get(index, tensor)` for each.
template <typename Get>
std::vector<TensorInfo> tensors(size_t count, Get&& get) {
  std::vector<TensorInfo> result;
  for (size_t i = 0; i < count; ++i) {
    auto tensor = sized<hone_tensor>();
    check(get(i, &tensor));
    result.push_back(info_of(tensor));
  }
  return result;
}

/// A Python callable as a log; the callable must outlive the call it is used in.
class Log {
 public:
  Log(nb::object receive, int threshold)
      : receive_(std::move(receive)), log_{sizeof(hone_log), static_cast<hone_severity>(threshold), write, &receive_} {}
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  const hone_log* get() const { return receive_.is_none() ? nullptr : &log_; }

 private:
  static void write(void* user, hone_severity severity, const char* line) {
    nb::gil_scoped_acquire acquire;
    try {
      (*static_cast<nb::object*>(user))(static_cast<int>(severity), text(line));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("a log function of hone");  // must not pass through the library
    }
  }
  nb::object receive_;
  hone_log log_;
};

void add_devices(nb::module_& module);
void add_building(nb::module_& module);
void add_diagnosis(nb::module_& module);
void add_graph(nb::module_& module);
void add_running(nb::module_& module);
void add_values(nb::module_& module);
void add_operators(nb::module_& module);
void add_digest(nb::module_& module);

}  // namespace hone::python
