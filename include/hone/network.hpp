// SPDX-License-Identifier: Apache-2.0
//
// Networks by hand, beside hone.hpp:
//
//   hone::Network network;
//   network.add_input("x", HONE_F32, {-1, 4}, {"n"});
//   network.add_constant("w", hone::Value::tensor({4, 8}, std::span<const float>(weights)));
//   network.add_node("Gemm", {"x", "w"}, {"y"}, {{"alpha", 0.5F}});
//   network.mark_output("y");
//   hone::Model model = network.model();
//
// Bodies of If, Loop and Scan are networks, too: {{"then_branch", &then}, {"else_branch", &otherwise}}. They see the values around them.
#pragma once

#include <variant>

#include "hone/hone.hpp"

namespace hone {

class Network;

/// An attribute of a node. A tensor, or a network that is a body, has to stay until the node has been added.
struct Attribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, std::vector<std::string>,
               const Value*, const Network*>
      value;
};

class Network : public detail::Object<hone_network> {
 public:
  /// Of a version of ONNX's operators.
  explicit Network(int opset = 17) : Object(hone_network_create, opset) {}
  /// A size of -1 is dynamic; `symbols` says what sizes are called, those of one name are equal; "": it has no name.
  void add_input(const std::string& name, hone_dtype dtype, const std::vector<int64_t>& dims,
                 const std::vector<std::string>& symbols = {}) {
    std::vector<const char*> texts(dims.size());
    for (size_t i = 0; i < std::min(symbols.size(), texts.size()); ++i)
      texts[i] = symbols[i].empty() ? nullptr : symbols[i].c_str();
    check(hone_network_add_input(get(), name.c_str(), dtype, dims.data(), static_cast<int>(dims.size()), texts.data()));
  }
  void add_constant(const std::string& name, const Value& value) {
    check(hone_network_add_constant(get(), name.c_str(), value.get()));
  }
  /// "" among the inputs stands for one that is left out. Without a name one is made up.
  void add_node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                const std::vector<Attribute>& attributes = {}, const std::string& name = {},
                const std::string& domain = {}) {
    std::vector<std::vector<const char*>> texts;
    std::vector<hone_attribute> raw;
    for (const Attribute& attribute : attributes) raw.push_back(raw_of(attribute, texts.emplace_back()));
    const std::vector<const char*> in = pointers(inputs), out = pointers(outputs);
    auto node = detail::sized<hone_node>();
    node.op = op.c_str();
    node.domain = domain.empty() ? nullptr : domain.c_str();
    node.name = name.empty() ? nullptr : name.c_str();
    node.inputs = in.data();
    node.input_count = in.size();
    node.outputs = out.data();
    node.output_count = out.size();
    node.attributes = raw.data();
    node.attribute_count = raw.size();
    check(hone_network_add_node(get(), &node));
  }
  void mark_output(const std::string& tensor) { check(hone_network_mark_output(get(), tensor.c_str())); }
  /// The network as an ONNX file; of this object, until the next call.
  std::span<const std::byte> bytes() {
    const void* bytes = nullptr;
    size_t size = 0;
    check(hone_network_bytes(get(), &bytes, &size));
    return {static_cast<const std::byte*>(bytes), size};
  }
  /// The network, checked.
  Model model(const Log& log = {}) const { return Model::of_network(get(), log); }

 private:
  static std::vector<const char*> pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> result;
    for (const std::string& text : texts) result.push_back(text.c_str());
    return result;
  }
  static hone_attribute raw_of(const Attribute& attribute, std::vector<const char*>& texts) {
    auto raw = detail::sized<hone_attribute>();
    raw.name = attribute.name.c_str();
    raw.kind = static_cast<hone_attribute_kind>(attribute.value.index());
    if (const auto* integer = std::get_if<int64_t>(&attribute.value)) raw.integer = *integer;
    if (const auto* real = std::get_if<float>(&attribute.value)) raw.real = *real;
    if (const auto* text = std::get_if<std::string>(&attribute.value)) raw.text = text->c_str();
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&attribute.value)) {
      raw.integers = integers->data();
      raw.count = integers->size();
    }
    if (const auto* reals = std::get_if<std::vector<float>>(&attribute.value)) {
      raw.reals = reals->data();
      raw.count = reals->size();
    }
    if (const auto* list = std::get_if<std::vector<std::string>>(&attribute.value)) {
      texts = pointers(*list);
      raw.texts = texts.data();
      raw.count = texts.size();
    }
    if (const auto* tensor = std::get_if<const Value*>(&attribute.value)) raw.tensor = (*tensor)->get();
    if (const auto* body = std::get_if<const Network*>(&attribute.value)) raw.network = (*body)->get();
    return raw;
  }
};

}  // namespace hone
