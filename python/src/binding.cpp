// SPDX-License-Identifier: Apache-2.0
//
// The C interface as Python sees it: one class per kind of object, addresses for memory. What an address points to, and how
// long it lives, is the business of hone/__init__.py, which holds the arrays.
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

#include "hone/hone.h"

namespace nb = nanobind;

namespace {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void check(hone_status status) {
  if (status == HONE_OK) return;
  const std::string hint = hone_last_hint();
  throw Error(hint.empty() ? hone_last_error() : hone_last_error() + ("\n  hint: " + hint));
}

struct Destroy {
  void operator()(hone_device* object) const { hone_device_destroy(object); }
  void operator()(hone_options* object) const { hone_options_destroy(object); }
  void operator()(hone_model* object) const { hone_model_destroy(object); }
  void operator()(hone_plan* object) const { hone_plan_destroy(object); }
  void operator()(hone_engine* object) const { hone_engine_destroy(object); }
  void operator()(hone_context* object) const { hone_context_destroy(object); }
  void operator()(hone_value* object) const { hone_value_destroy(object); }
};

template <typename Object>
struct Handle {
  std::unique_ptr<Object, Destroy> object;
  Object* get() const { return object.get(); }

  /// Calls a function whose last argument receives the object; Python's other threads run meanwhile.
  template <typename Function, typename... Arguments>
  static Handle make(Function* function, Arguments... arguments) {
    Object* made = nullptr;
    hone_status status;
    {
      nb::gil_scoped_release release;
      status = function(arguments..., &made);
    }
    check(status);
    return {std::unique_ptr<Object, Destroy>(made)};
  }
};
using Device = Handle<hone_device>;
using Model = Handle<hone_model>;
using Plan = Handle<hone_plan>;
using Engine = Handle<hone_engine>;
using Context = Handle<hone_context>;
using Value = Handle<hone_value>;

/// Name, element type, whether an input, sizes (nothing without rank), whether it cannot be bound; of containers the types of
/// elements and of keys inside.
using TensorInfo = std::tuple<std::string, int, bool, std::vector<int64_t>, bool, int, int>;

template <typename Get>
std::vector<TensorInfo> tensors(size_t count, Get&& get) {
  std::vector<TensorInfo> result;
  for (size_t i = 0; i < count; ++i) {
    hone_tensor tensor{};
    tensor.size = sizeof tensor;
    check(get(i, &tensor));
    result.emplace_back(tensor.name, tensor.dtype, tensor.is_input != 0,
                        std::vector<int64_t>(tensor.dims, tensor.dims + std::max(tensor.rank, 0)), tensor.by_value != 0,
                        tensor.element, tensor.key);
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
  static void write(void* user, hone_severity severity, const char* text) {
    nb::gil_scoped_acquire acquire;
    try {
      (*static_cast<nb::object*>(user))(
          static_cast<int>(severity),
          nb::str(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::char_traits<char>::length(text)), "replace"),
                  nb::detail::steal_t{}));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("a log function of hone");  // must not pass through the library
    }
  }
  nb::object receive_;
  hone_log log_;
};

Plan build(const Model& model, const Device& device, const std::vector<std::string>& arguments, nb::object log,
           int threshold) {
  std::vector<const char*> texts;
  for (const std::string& argument : arguments) texts.push_back(argument.c_str());
  hone_options* options = nullptr;
  check(hone_options_create(texts.data(), texts.size(), &options));
  const std::unique_ptr<hone_options, Destroy> owner(options);
  const Log lines(std::move(log), threshold);
  return Plan::make(hone_plan_create_from_model, static_cast<const hone_model*>(model.get()),
                    static_cast<const hone_device*>(device.get()), static_cast<const hone_options*>(options),
                    lines.get());
}

Value strings(const std::vector<int64_t>& dims, const std::vector<nb::bytes>& texts) {
  std::vector<const char*> addresses;
  std::vector<size_t> lengths;
  for (const nb::bytes& text : texts) {
    addresses.push_back(text.c_str());
    lengths.push_back(text.size());
  }
  return Value::make(hone_value_create_strings, dims.data(), static_cast<int>(dims.size()), addresses.data(),
                     lengths.data());
}

Value sequence(const std::vector<const Value*>& items) {
  std::vector<const hone_value*> handles;
  for (const Value* item : items) handles.push_back(item->get());
  return Value::make(hone_value_create_sequence, handles.data(), handles.size());
}

std::pair<int, std::vector<int64_t>> describe(const Value& value) {
  hone_tensor tensor{};
  tensor.size = sizeof tensor;
  check(hone_value_describe(value.get(), &tensor));
  return {tensor.dtype, std::vector<int64_t>(tensor.dims, tensor.dims + tensor.rank)};
}

nb::bytes text(const Value& value, size_t index) {
  const char* begin = nullptr;
  size_t length = 0;
  check(hone_value_string(value.get(), index, &begin, &length));
  return nb::bytes(begin, length);
}

void run(const Context& context) {
  hone_status status;
  {
    nb::gil_scoped_release release;
    status = hone_context_run(context.get());
  }
  check(status);
}

std::vector<std::pair<std::string, double>> profile(const Context& context) {
  std::vector<std::pair<std::string, double>> layers;
  const auto add = [](void* user, const char* layer, double ms) {
    static_cast<decltype(layers)*>(user)->emplace_back(layer, ms);
  };
  check(hone_context_set_layer_function(context.get(), add, &layers));
  const hone_status status = hone_context_run(context.get());
  const std::string message = hone_last_error();
  check(hone_context_set_layer_function(context.get(), nullptr, nullptr));
  if (status != HONE_OK) throw Error(message);
  return layers;
}

}  // namespace

void add_operators(nb::module_& module);  // operators.cpp

NB_MODULE(_hone, module) {
  nb::exception<Error>(module, "Error");
  module.def("version", [] { return hone_version(); });
  add_operators(module);

  nb::class_<Device>(module, "Device").def("__init__", [](Device* self, const std::string& name) {
    new (self) Device(Device::make(hone_device_create, name.c_str(), static_cast<const hone_device_options*>(nullptr)));
  });

  nb::class_<Model>(module, "Model")
      .def_static(
          "load",
          [](const std::string& path, nb::object log, int threshold) {
            const Log lines(std::move(log), threshold);
            return Model::make(hone_model_create_from_file, path.c_str(), lines.get());
          },
          nb::arg(), nb::arg().none(), nb::arg())
      .def_static(
          "parse",
          [](nb::bytes bytes, const std::optional<std::string>& folder, nb::object log, int threshold) {
            const Log lines(std::move(log), threshold);
            return Model::make(hone_model_create_from_memory, bytes.data(), bytes.size(),
                               folder ? folder->c_str() : nullptr, lines.get());
          },
          nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg())
      .def("tensors", [](const Model& self) {
        return tensors(hone_model_tensors(self.get()),
                       [&](size_t i, hone_tensor* t) { return hone_model_tensor(self.get(), i, t); });
      });

  module.def("build", build, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());

  nb::class_<Plan>(module, "Plan")
      .def(
          "refit",
          [](const Plan& self, const Model& model, const Device& device, nb::object log, int threshold) {
            const Log lines(std::move(log), threshold);
            return Plan::make(hone_plan_create_from_refit, static_cast<const hone_plan*>(self.get()),
                              static_cast<const hone_model*>(model.get()),
                              static_cast<const hone_device*>(device.get()), lines.get());
          },
          nb::arg(), nb::arg(), nb::arg().none(), nb::arg())
      .def_static("load", [](const std::string& path) { return Plan::make(hone_plan_create_from_file, path.c_str()); })
      .def("save", [](const Plan& self, const std::string& path) { check(hone_plan_save(self.get(), path.c_str())); })
      .def("bytes",
           [](const Plan& self) {
             const void* bytes = nullptr;
             size_t size = 0;
             check(hone_plan_bytes(self.get(), &bytes, &size));
             return nb::bytes(bytes, size);
           })
      .def("json", [](const Plan& self) {
        const char* json = nullptr;
        check(hone_plan_json(self.get(), &json));
        return std::string(json);
      });

  nb::class_<Engine>(module, "Engine")
      .def(
          "__init__",
          [](Engine* self, const Plan& plan, const Device& device, nb::object log, int threshold) {
            const Log lines(std::move(log), threshold);
            new (self) Engine(Engine::make(hone_engine_create, static_cast<const hone_plan*>(plan.get()),
                                           static_cast<const hone_device*>(device.get()), lines.get()));
          },
          nb::arg(), nb::arg(), nb::arg().none(), nb::arg())
      .def("tensors", [](const Engine& self) {
        return tensors(hone_engine_tensors(self.get()),
                       [&](size_t i, hone_tensor* t) { return hone_engine_tensor(self.get(), i, t); });
      });

  nb::class_<Context>(module, "Context")
      .def("__init__",
           [](Context* self, const Engine& engine, int profile) {
             new (self)
                 Context(Context::make(hone_context_create, static_cast<const hone_engine*>(engine.get()), profile));
           })
      .def("set_shape",
           [](const Context& self, const std::string& input, const std::vector<int64_t>& dims) {
             check(hone_context_set_shape(self.get(), input.c_str(), dims.data(), static_cast<int>(dims.size())));
           })
      .def("shape",
           [](const Context& self, const std::string& tensor) {
             int64_t dims[HONE_MAX_RANK];
             int rank = 0;
             check(hone_context_shape(self.get(), tensor.c_str(), dims, &rank));
             return std::vector<int64_t>(dims, dims + rank);
           })
      .def("bind",
           [](const Context& self, const std::string& tensor, uintptr_t address) {
             check(hone_context_bind(self.get(), tensor.c_str(), reinterpret_cast<void*>(address), HONE_MEMORY_HOST));
           })
      .def("set_value",
           [](const Context& self, const std::string& input, const Value& value) {
             check(hone_context_set_value(self.get(), input.c_str(), value.get()));
           })
      .def("value",
           [](const Context& self, const std::string& output) {
             return Value::make(hone_value_create_from_output, self.get(), output.c_str());
           })
      .def("debug_tensors",
           [](const Context& self) {
             std::vector<std::string> names;
             for (size_t i = 0; i < hone_context_debug_tensors(self.get()); ++i)
               names.emplace_back(hone_context_debug_tensor(self.get(), i));
             return names;
           })
      .def("debug_value",
           [](const Context& self, const std::string& tensor) {
             return Value::make(hone_value_create_from_debug_tensor, self.get(), tensor.c_str());
           })
      .def("run", run)
      .def("profile", profile);

  nb::class_<Value>(module, "Value")
      .def_static("tensor",
                  [](int dtype, const std::vector<int64_t>& dims, uintptr_t address) {
                    return Value::make(hone_value_create_tensor, static_cast<hone_dtype>(dtype), dims.data(),
                                       static_cast<int>(dims.size()), reinterpret_cast<const void*>(address));
                  })
      .def_static("strings", strings)
      .def_static("sequence", sequence)
      .def_static(
          "optional",
          [](const Value* item) {
            return Value::make(hone_value_create_optional,
                               static_cast<const hone_value*>(item == nullptr ? nullptr : item->get()));
          },
          nb::arg().none())
      .def_static("map",
                  [](const Value& keys, const Value& values) {
                    return Value::make(hone_value_create_map, static_cast<const hone_value*>(keys.get()),
                                       static_cast<const hone_value*>(values.get()));
                  })
      .def("describe", describe)
      .def("address", [](const Value& self) { return reinterpret_cast<uintptr_t>(hone_value_data(self.get())); })
      .def("string", text)
      .def("item", [](const Value& self, size_t index) {
        return Value::make(hone_value_create_from_item, static_cast<const hone_value*>(self.get()), index);
      });
}
