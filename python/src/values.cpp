// SPDX-License-Identifier: Apache-2.0
//
// Values: tensors, texts, sequences, optionals and maps that stand for themselves.
#include "binding.h"

namespace hone::python {
namespace {

Value strings(const std::vector<int64_t>& dims, const std::vector<nb::bytes>& texts) {
  std::vector<const char*> addresses;
  std::vector<size_t> lengths;
  for (const nb::bytes& each : texts) {
    addresses.push_back(each.c_str());
    lengths.push_back(each.size());
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
  auto tensor = sized<hone_tensor>();
  check(hone_value_describe(value.get(), &tensor));
  return {tensor.dtype, std::vector<int64_t>(tensor.dims, tensor.dims + tensor.rank)};
}

nb::bytes string(const Value& value, size_t index) {
  const char* begin = nullptr;
  size_t length = 0;
  check(hone_value_string(value.get(), index, &begin, &length));
  return nb::bytes(begin, length);
}

}  // namespace

void add_values(nb::module_& module) {
  nb::class_<Reference>(module, "Reference", "A model, operator by operator.")
      .def("__init__",
           [](Reference* self, const Model& model) {
             new (self) Reference(Reference::make(hone_reference_create, static_cast<const hone_model*>(model.get())));
           })
      .def(
          "set_input",
          [](const Reference& self, const std::string& name, const Value& value) {
            check(hone_reference_set_input(self.get(), name.c_str(), value.get()));
          },
          "What an input holds.")
      .def(
          "run", [](const Reference& self) { call(hone_reference_run, self.get()); }, "Computes all outputs.")
      .def(
          "output",
          [](const Reference& self, const std::string& name) {
            return Value::make(hone_value_create_from_reference, static_cast<const hone_reference*>(self.get()),
                               name.c_str());
          },
          "What the last run gave.");
  nb::class_<Value>(module, "Value", "A tensor, a sequence, an optional or a map.")
      .def_static(
          "tensor",
          [](int dtype, const std::vector<int64_t>& dims, uintptr_t address) {
            return Value::make(hone_value_create_tensor, static_cast<hone_dtype>(dtype), dims.data(),
                               static_cast<int>(dims.size()), reinterpret_cast<const void*>(address));
          },
          "A copy of numbers.")
      .def_static("strings", strings, "A tensor of texts.")
      .def_static("sequence", sequence, "A list of values.")
      .def_static(
          "optional",
          [](const Value* item) {
            return Value::make(hone_value_create_optional,
                               static_cast<const hone_value*>(item == nullptr ? nullptr : item->get()));
          },
          nb::arg().none(), "A value, or none.")
      .def_static(
          "map",
          [](const Value& keys, const Value& values) {
            return Value::make(hone_value_create_map, static_cast<const hone_value*>(keys.get()),
                               static_cast<const hone_value*>(values.get()));
          },
          "Keys and values, as lists.")
      .def("describe", describe, "Element type and sizes.")
      .def(
          "address", [](const Value& self) { return reinterpret_cast<uintptr_t>(hone_value_data(self.get())); },
          "Where the elements lie.")
      .def("string", string, "An element of a tensor of texts.")
      .def(
          "item",
          [](const Value& self, size_t index) {
            return Value::make(hone_value_create_from_item, static_cast<const hone_value*>(self.get()), index);
          },
          "An item of a sequence or an optional; of a map the keys or the values.");
}

}  // namespace hone::python
