// SPDX-License-Identifier: Apache-2.0
//
// Types of tensors, elements of weights and values of attributes: read from a model's messages, and written into new ones.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "edit/model.h"

namespace hone::edit {

/// A number, a name, or neither.
struct Size {
  std::optional<int64_t> number;
  std::string name;
  friend bool operator==(const Size&, const Size&) = default;
};

/// What a ValueInfoProto says of a tensor.
struct ValueType {
  int64_t element = 0;                     // ONNX's number; 0: not given
  std::optional<std::vector<Size>> sizes;  // nothing: no rank
  bool is_tensor = true;                   // false: a sequence, a map, ...; neither is read nor written then
  friend bool operator==(const ValueType&, const ValueType&) = default;
};

ValueType type_of(const Value& value);
ValueType type_of(const Weight& weight);
/// The value with another type; its documentation stays.
Value with_type(Model& model, const Value& value, const ValueType& type);
/// "float32", as NumPy spells it, where it has a word for it.
std::string numpy_name(int64_t onnx_type);
/// The inverse; also ONNX's own words. Nothing for what is no type.
std::optional<int64_t> parse_type(std::string_view word);
/// "(1, 3, 'N')", as Python prints it; "None" without a rank.
std::string sizes_text(const ValueType& type);
/// The inverse: "[1,3,'N',h]", "(1, 3)", "1,3" or "1x3"; -1 is neither number nor name. Throws Error.
std::vector<Size> parse_sizes(std::string_view text);

int64_t element_count(const Weight& weight);
/// Bytes of the elements as a file packs them; 0 for strings.
int64_t element_bytes(const Weight& weight);
/// Whether the elements are in the message or in another file, and not left out.
bool has_elements(const Weight& weight);
/// Throws Error for a type that tensors do not have, and where the elements are missing.
Tensor tensor_of(const Model& model, const Weight& weight);
Weight make_weight(Model& model, const std::string& name, const Tensor& tensor);
/// With elements in raw bytes, which are packed as in a file.
Weight make_weight(Model& model, const std::string& name, int64_t type, const std::vector<int64_t>& dims,
                   const std::string& raw);
/// A weight's message without its elements.
std::string message_without_elements(const Weight& weight);

using AttributeValue =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>>;
Attribute make_attribute(Model& model, const std::string& name, const AttributeValue& value);
/// What stands behind "name=" on a command line: 1, 0.1, "text", word, [1,2]. Throws Error.
AttributeValue parse_attribute_value(std::string_view text);
/// Sets or adds; keeps the type of one that is there where the value allows. Throws Error where it does not.
void set_attribute(Model& model, Node& node, const std::string& name, const AttributeValue& value);
/// As `inspect model` prints it; bodies and tensors by what they are.
std::string attribute_text(const Attribute& attribute);

}  // namespace hone::edit
