// SPDX-License-Identifier: Apache-2.0
//
// Engines and contexts.
#include <map>

#include "binding.h"

namespace hone::python {
namespace {

/// Asks a callable where an output shall lie; it returns an address.
struct OutputFunction {
  nb::object function;
  std::exception_ptr failure = {};
};

/// A context and the callables that it calls, which outlive it.
struct Context {
  std::map<std::string, std::unique_ptr<OutputFunction>, std::less<>> outputs = {};
  Handle<hone_context> handle;
  hone_context* get() const { return handle.get(); }
};

/// Calls a function that waits for inferences; what a callable raised goes on from here.
void finish(hone_status (*function)(hone_context*), const Context& context) {
  try {
    call(function, context.get());
  } catch (...) {
    for (const auto& [name, output] : context.outputs)
      if (output->failure) std::rethrow_exception(std::exchange(output->failure, nullptr));
    throw;
  }
}

std::vector<std::pair<std::string, double>> profile(const Context& context) {
  std::vector<std::pair<std::string, double>> layers;
  const auto add = [](void* user, const char* layer, double ms) {
    static_cast<decltype(layers)*>(user)->emplace_back(layer, ms);
  };
  call(hone_context_set_layer_function, context.get(), static_cast<hone_layer_fn>(add), static_cast<void*>(&layers));
  std::exception_ptr failure;
  try {
    finish(hone_context_run, context);
  } catch (...) {
    failure = std::current_exception();
  }
  check(hone_context_set_layer_function(context.get(), nullptr, nullptr));
  if (failure) std::rethrow_exception(failure);
  return layers;
}

void* place_output(void* user, const char*, const int64_t* dims, int rank, int64_t bytes) {
  OutputFunction& output = *static_cast<OutputFunction*>(user);
  nb::gil_scoped_acquire acquire;
  try {
    const nb::object address = output.function(std::vector<int64_t>(dims, dims + rank), bytes);
    return reinterpret_cast<void*>(nb::cast<uintptr_t>(address));
  } catch (...) {
    output.failure = std::current_exception();
    return nullptr;  // fails the run
  }
}

void set_output_function(Context& context, const std::string& output, nb::object function) {
  if (function.is_none()) {
    call(hone_context_set_output_function, context.get(), output.c_str(), static_cast<hone_output_fn>(nullptr),
         static_cast<void*>(nullptr));
    context.outputs.erase(output);
    return;
  }
  auto kept = std::make_unique<OutputFunction>(std::move(function));
  call(hone_context_set_output_function, context.get(), output.c_str(), place_output, static_cast<void*>(kept.get()));
  context.outputs[output] = std::move(kept);
}

void add_engines(nb::module_& module) {
  nb::class_<Engine>(module, "Engine", "A plan on a device.")
      .def(
          "__init__",
          [](Engine* self, const Plan& plan, const Device& device, nb::object log, int threshold) {
            const Log lines(std::move(log), threshold);
            new (self) Engine(Engine::make(hone_engine_create, static_cast<const hone_plan*>(plan.get()),
                                           static_cast<const hone_device*>(device.get()), lines.get()));
          },
          nb::arg(), nb::arg(), nb::arg().none(), nb::arg())
      .def(
          "tensors",
          [](const Engine& self) {
            return tensors(hone_engine_tensors(self.get()),
                           [&](size_t i, hone_tensor* t) { return hone_engine_tensor(self.get(), i, t); });
          },
          "Inputs and outputs.")
      .def(
          "profiles", [](const Engine& self) { return hone_engine_profiles(self.get()); }, "How many there are.")
      .def(
          "memory_bytes",
          [](const Engine& self, int number) {
            int64_t bytes = 0;
            check(hone_engine_memory_bytes(self.get(), number, &bytes));
            return bytes;
          },
          "What a context needs at a profile's largest shapes.");
}

int64_t bytes_by(hone_status (*function)(hone_context*, int64_t*), const Context& context) {
  int64_t bytes = 0;
  call(function, context.get(), &bytes);
  return bytes;
}

void add_memory(nb::class_<Context>& context) {
  context
      .def(
          "set_shape",
          [](const Context& self, const std::string& input, std::vector<int64_t> dims) {
            const int rank = static_cast<int>(dims.size());
            dims.push_back(0);  // never empty: no pointer is NULL
            call(hone_context_set_shape, self.get(), input.c_str(), static_cast<const int64_t*>(dims.data()), rank);
          },
          "The sizes of an input.")
      .def(
          "shape",
          [](const Context& self, const std::string& tensor) {
            int64_t dims[HONE_MAX_RANK];
            int rank = 0;
            call(hone_context_shape, self.get(), tensor.c_str(), &dims[0], &rank);
            return std::vector<int64_t>(dims, dims + rank);
          },
          "Sizes at the present shapes.")
      .def(
          "bytes",
          [](const Context& self, const std::string& tensor) {
            int64_t bytes = 0;
            call(hone_context_bytes, self.get(), tensor.c_str(), &bytes);
            return bytes;
          },
          "Bytes of a tensor at the present shapes.")
      .def(
          "bind",
          [](const Context& self, const std::string& tensor, uintptr_t address, int kind) {
            call(hone_context_bind, self.get(), tensor.c_str(), reinterpret_cast<void*>(address),
                 static_cast<hone_memory>(kind));
          },
          "Memory of a tensor.")
      .def("set_output_function", set_output_function, nb::arg(), nb::arg().none(),
           "Asks function(shape, bytes) for an output's address in every run.")
      .def(
          "memory_bytes", [](const Context& self) { return bytes_by(hone_context_memory_bytes, self); },
          "What activations need at the present shapes.")
      .def(
          "set_memory",
          [](const Context& self, uintptr_t address, int64_t bytes) {
            call(hone_context_set_memory, self.get(), reinterpret_cast<void*>(address), bytes);
          },
          "Memory of the caller's for activations.");
}

void add_contexts(nb::module_& module) {
  nb::class_<Context> context(module, "Context", "One inference at a time.");
  context
      .def("__init__",
           [](Context* self, const Engine& engine, int number) {
             auto made =
                 Handle<hone_context>::make(hone_context_create, static_cast<const hone_engine*>(engine.get()), number);
             new (self) Context{.handle = std::move(made)};
           })
      .def(
          "set_profile", [](const Context& self, int number) { call(hone_context_set_profile, self.get(), number); },
          "Another profile; shapes are to be set again.")
      .def(
          "set_value",
          [](const Context& self, const std::string& input, const Value& value) {
            call(hone_context_set_value, self.get(), input.c_str(), static_cast<const hone_value*>(value.get()));
          },
          "The contents of an input.")
      .def(
          "value",
          [](const Context& self, const std::string& output) {
            return Value::make(hone_value_create_from_output, self.get(), output.c_str());
          },
          "An output of the last run.")
      .def(
          "debug_tensors",
          [](const Context& self) {
            std::vector<std::string> names;
            for (size_t i = 0; i < hone_context_debug_tensors(self.get()); ++i)
              names.emplace_back(hone_context_debug_tensor(self.get(), i));
            return names;
          },
          "The names of debug tensors.")
      .def(
          "debug_value",
          [](const Context& self, const std::string& tensor) {
            return Value::make(hone_value_create_from_debug_tensor, self.get(), tensor.c_str());
          },
          "What a debug tensor held at the end of the last run.")
      .def(
          "prepare", [](const Context& self) { call(hone_context_prepare, self.get()); },
          "What the first run at these shapes does before it computes.")
      .def(
          "run", [](const Context& self) { finish(hone_context_run, self); }, "Runs once and waits.")
      .def(
          "enqueue",
          [](const Context& self, const Stream& stream) { call(hone_context_enqueue, self.get(), stream.get()); },
          "Runs once, in the stream.")
      .def(
          "wait", [](const Context& self) { finish(hone_context_wait, self); }, "Waits for what was enqueued.")
      .def(
          "cancel", [](const Context& self) { check(hone_context_cancel(self.get())); },
          "Ends what is under way and what is enqueued.")
      .def("profile", profile, "Each layer's name and milliseconds, of one run.");
  add_memory(context);
}

}  // namespace

void add_running(nb::module_& module) {
  add_engines(module);
  add_contexts(module);
}

}  // namespace hone::python
