// SPDX-License-Identifier: Apache-2.0
//
// Operators that are Python functions: hone_operator over a callable. It is given addresses, types and sizes; hone/operators.py makes
// arrays of them. One that works in memory beside them is also given its address, and on a GPU the stream.
#include "binding.h"

namespace hone::python {
namespace {

/// What one registered operator is made of. It is freed when nothing uses the operator any more.
struct PythonOperator {
  std::string domain, name;
  std::vector<uint32_t> input_types;
  std::vector<int> output_types;
  std::vector<std::string> sizes;
  std::vector<const char*> size_texts;
  nb::object run, ask_sizes, ask_workspace;
  hone_operator raw = {};
};

void fail(const hone_call* call, const char* text) {
  const size_t length = std::min(std::char_traits<char>::length(text), call->message_size - 1);
  std::copy_n(text, length, call->message);
  call->message[length] = '\0';
}

nb::object operand(const hone_operand* given) {
  if (given == nullptr) return nb::none();
  nb::list dims;
  for (int axis = 0; axis < given->rank; ++axis) dims.append(given->dims[axis]);
  return nb::make_tuple(reinterpret_cast<uintptr_t>(given->data), static_cast<int>(given->dtype), nb::tuple(dims));
}

template <typename Items>
nb::list list_of(const Items* items, size_t count) {
  nb::list list;
  for (size_t i = 0; i < count; ++i) list.append(items[i]);
  return list;
}

nb::object attribute(const hone_attribute& given) {
  switch (given.kind) {
    case HONE_ATTRIBUTE_INTEGER: return nb::int_(given.integer);
    case HONE_ATTRIBUTE_REAL: return nb::float_(given.real);
    case HONE_ATTRIBUTE_TEXT: return text(given.text);
    case HONE_ATTRIBUTE_INTEGERS: return list_of(given.integers, given.count);
    case HONE_ATTRIBUTE_REALS: return list_of(given.reals, given.count);
    case HONE_ATTRIBUTE_TEXTS: return list_of(given.texts, given.count);
    case HONE_ATTRIBUTE_NETWORK: break;
    case HONE_ATTRIBUTE_TENSOR: {
      hone_tensor tensor{};
      tensor.size = sizeof tensor;
      if (hone_value_describe(given.tensor, &tensor) != HONE_OK) return nb::none();
      nb::list dims;
      for (int axis = 0; axis < tensor.rank; ++axis) dims.append(tensor.dims[axis]);
      return nb::make_tuple(reinterpret_cast<uintptr_t>(hone_value_data(given.tensor)), static_cast<int>(tensor.dtype),
                            nb::tuple(dims));
    }
  }
  return nb::none();
}

/// Calls `function(inputs, outputs, attributes, further...)`; what it raises is the message.
template <typename Use, typename... Further>
hone_status call_python(const hone_call* call, const nb::object& function, const Use& use, Further... further) {
  if (Py_IsInitialized() == 0) {
    fail(call, "Python has ended");
    return HONE_ERROR;
  }
  const nb::gil_scoped_acquire hold;
  try {
    nb::list inputs, outputs;
    nb::dict attributes;
    for (size_t i = 0; i < call->input_count; ++i) inputs.append(operand(call->inputs[i]));
    for (size_t i = 0; i < call->output_count; ++i) outputs.append(operand(call->outputs[i]));
    for (size_t i = 0; i < call->attribute_count; ++i)
      attributes[call->attributes[i]->name] = attribute(*call->attributes[i]);
    use(function(inputs, outputs, attributes, further...));
    return HONE_OK;
  } catch (const std::exception& exception) {
    fail(call, exception.what());
    return HONE_ERROR;
  }
}

hone_status run(const hone_call* call) {
  const auto& self = *static_cast<const PythonOperator*>(call->user);
  const auto ignored = [](const nb::object&) {};
  if (self.ask_workspace.is_none()) return call_python(call, self.run, ignored);
  return call_python(call, self.run, ignored, reinterpret_cast<uintptr_t>(call->workspace),
                     reinterpret_cast<uintptr_t>(call->stream));
}

hone_status workspace(const hone_call* call, size_t* bytes) {
  const auto& self = *static_cast<const PythonOperator*>(call->user);
  return call_python(call, self.ask_workspace, [&](const nb::object& result) { *bytes = nb::cast<size_t>(result); });
}

hone_status sizes(const hone_call* call) {
  const auto& self = *static_cast<const PythonOperator*>(call->user);
  return call_python(call, self.ask_sizes, [&](const nb::object& result) {
    const auto all = nb::cast<std::vector<std::vector<int64_t>>>(result);
    if (all.size() != call->output_count) throw std::runtime_error("it gives sizes of another number of outputs");
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].size() > HONE_MAX_RANK) throw std::runtime_error("an output has too many axes");
      call->outputs[i]->rank = static_cast<int>(all[i].size());
      std::ranges::copy(all[i], call->outputs[i]->dims);
    }
  });
}

/// Not behind the end of Python, whose objects are gone then.
void release(void* user) {
  if (Py_IsInitialized() == 0) return;
  const nb::gil_scoped_acquire hold;
  delete static_cast<PythonOperator*>(user);
}

void add(const std::string& domain, const std::string& name, int version, unsigned flags, size_t min_inputs,
         size_t max_inputs, std::vector<uint32_t> input_types, std::vector<int> output_types,
         std::vector<std::string> texts, nb::object function, nb::object ask_sizes, nb::object ask_workspace,
         bool on_device) {
  auto made = std::make_unique<PythonOperator>();
  made->domain = domain;
  made->name = name;
  made->input_types = std::move(input_types);
  made->output_types = std::move(output_types);
  made->sizes = std::move(texts);
  for (const std::string& text : made->sizes) made->size_texts.push_back(text.c_str());
  made->run = std::move(function);
  made->ask_sizes = std::move(ask_sizes);
  made->ask_workspace = std::move(ask_workspace);
  hone_operator& raw = made->raw;
  raw.size = sizeof raw;
  raw.domain = made->domain.c_str();
  raw.name = made->name.c_str();
  raw.version = version;
  raw.flags = flags;
  raw.user = made.get();
  raw.min_inputs = min_inputs;
  raw.max_inputs = max_inputs;
  raw.outputs = made->output_types.size();
  raw.input_types = made->input_types.data();
  raw.input_type_count = made->input_types.size();
  raw.output_types = made->output_types.data();
  if (!made->size_texts.empty()) raw.output_sizes = made->size_texts.data();
  if (!made->ask_sizes.is_none()) raw.sizes = sizes;
  if (!made->ask_workspace.is_none()) raw.workspace = workspace;
  (on_device ? raw.run_on_device : raw.run) = run;
  raw.release = release;
  check(hone_operator_register(&raw));
  static_cast<void>(made.release());
}

}  // namespace

void add_operators(nb::module_& module) {
  using namespace nb::literals;
  module.def("register_operator", add, "domain"_a, "name"_a, "version"_a, "flags"_a, "min_inputs"_a, "max_inputs"_a,
             "input_types"_a, "output_types"_a, "sizes"_a, "function"_a, "ask_sizes"_a.none(),
             "ask_workspace"_a.none() = nb::none(), "on_device"_a = false);
  module.def("unregister_operator", [](const std::string& domain, const std::string& name) {
    check(hone_operator_unregister(domain.c_str(), name.c_str()));
  });
  module.def("open_operators",
             [](const std::string& path) { call(hone_operator_library_open, path.c_str(), 0u, nullptr); });
}

}  // namespace hone::python
