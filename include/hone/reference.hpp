// SPDX-License-Identifier: Apache-2.0
//
// The golden values of a model, beside hone.hpp:
//
//   hone::Reference reference(hone::Model::load("model.onnx"));
//   reference.set_input("x", hone::Value::tensor({2, 4}, std::span<const float>(x)));
//   reference.run();
//   const hone::Value y = reference.output("y");
#pragma once

#include "hone/hone.hpp"

namespace hone {

class Reference : public detail::Object<hone_reference> {
 public:
  explicit Reference(const Model& model) : Object(hone_reference_create, model.get()) {}
  void set_input(const std::string& name, const Value& value) {
    check(hone_reference_set_input(get(), name.c_str(), value.get()));
  }
  void run() { check(hone_reference_run(get())); }
  Value output(const std::string& name) const { return Value(hone_value_create_from_reference, get(), name.c_str()); }
};

}  // namespace hone
