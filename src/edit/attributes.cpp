// SPDX-License-Identifier: Apache-2.0
//
// Attributes: their values from and to text and messages.
#include <algorithm>
#include <bit>

#include "base/text.h"
#include "edit/values.h"

namespace hone::edit {
namespace {

constexpr int64_t kFloat = 1, kInt = 2, kString = 3, kTensor = 4, kGraph = 5, kFloats = 6, kInts = 7, kStrings = 8,
                  kGraphs = 10;
constexpr uint32_t kFixed32 = 5;

void add_float(Rope& out, uint32_t field, double value) {
  out.add_tag(field, kFixed32);
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  char bytes[4];
  for (size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(bits >> 8 * i);
  out.add(std::string_view(bytes, 4));
}

int64_t kind_of(const AttributeValue& value) {
  constexpr int64_t kKinds[] = {kInt, kFloat, kString, kInts, kFloats, kStrings};
  return kKinds[value.index()];
}

/// The same value in another kind, where that loses nothing.
std::optional<AttributeValue> converted(const AttributeValue& value, int64_t kind) {
  if (kind_of(value) == kind) return value;
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    if (kind == kFloat) return static_cast<double>(*integer);
    if (kind == kInts) return std::vector<int64_t>{*integer};
    if (kind == kFloats) return std::vector<double>{static_cast<double>(*integer)};
  }
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
    if (kind == kFloats) return std::vector<double>(integers->begin(), integers->end());
    if (integers->empty() && kind == kStrings) return std::vector<std::string>();
  }
  if (const auto* real = std::get_if<double>(&value); real != nullptr && kind == kFloats)
    return std::vector<double>{*real};
  return std::nullopt;
}

AttributeValue parse_scalar(std::string_view text) {
  text = trim(text);
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    return std::string(text.substr(1, text.size() - 2));
  if (const std::optional<int64_t> integer = parse_integer(text)) return *integer;
  if (const std::optional<double> real = parse_real(text)) return *real;
  if (text == "True" || text == "true") return int64_t{1};
  if (text == "False" || text == "false") return int64_t{0};
  return std::string(text);
}

template <typename Range, typename Text>
std::string list_text(const Range& items, const Text& text) {
  std::vector<std::string> parts;
  for (const auto& item : items) parts.push_back(text(item));
  return "[" + join(parts, ", ") + "]";
}

std::string real_text(double value) { return exact(static_cast<float>(value)); }

}  // namespace

Attribute make_attribute(Model& model, const std::string& name, const AttributeValue& value) {
  Rope out;
  out.add_text(1, name);
  const int64_t kind = kind_of(value);
  if (const auto* integer = std::get_if<int64_t>(&value)) out.add_integer(3, *integer);
  else if (const auto* real = std::get_if<double>(&value)) add_float(out, 2, *real);
  else if (const auto* text = std::get_if<std::string>(&value)) out.add_text(4, *text);
  else if (const auto* reals = std::get_if<std::vector<double>>(&value))
    for (const double each : *reals) add_float(out, 7, each);
  else if (const auto* integers = std::get_if<std::vector<int64_t>>(&value))
    for (const int64_t each : *integers) out.add_integer(8, each);
  else
    for (const std::string& each : std::get<std::vector<std::string>>(value)) out.add_text(9, each);
  out.add_integer(20, kind);
  return {name, kind, model.keep(out.text()), {}};
}

AttributeValue parse_attribute_value(std::string_view text) {
  text = trim(text);
  if (text.empty() || text.front() != '[') return parse_scalar(text);
  if (text.back() != ']')
    throw Error(fmt::format("the list '{}' is not closed", text), "write it like [1,2] or [\"a\",\"b\"]");
  const std::string_view inner = trim(text.substr(1, text.size() - 2));
  std::vector<int64_t> integers;
  std::vector<double> reals;
  std::vector<std::string> texts;
  if (inner.empty()) return integers;
  for (const std::string_view part : split(inner, ',')) {
    const AttributeValue item = parse_scalar(part);
    if (const auto* integer = std::get_if<int64_t>(&item)) integers.push_back(*integer);
    if (const auto* integer = std::get_if<int64_t>(&item)) reals.push_back(static_cast<double>(*integer));
    if (const auto* real = std::get_if<double>(&item)) reals.push_back(*real);
    if (const auto* word = std::get_if<std::string>(&item)) texts.push_back(*word);
  }
  const size_t count = split(inner, ',').size();
  if (integers.size() == count) return integers;
  if (reals.size() == count) return reals;
  if (texts.size() == count) return texts;
  throw Error(fmt::format("the list {} mixes texts and numbers", text), "an attribute's items are of one kind");
}

void set_attribute(Model& model, Node& node, const std::string& name, const AttributeValue& value) {
  const auto at = std::ranges::find(node.attributes, name, &Attribute::name);
  if (at == node.attributes.end()) {
    node.attributes.push_back(make_attribute(model, name, value));
    return;
  }
  const std::optional<AttributeValue> fitting = at->type == 0 ? value : converted(value, at->type);
  if (!fitting)
    throw Error(fmt::format("attribute '{}' of {} is {}; the value given is of another kind", name, node.op_type,
                            attribute_text(*at)),
                "numbers with a point are floats, quoted words texts, [..] lists");
  *at = make_attribute(model, name, *fitting);
}

std::string attribute_text(const Attribute& attribute) {
  const onnx::AttributeProto proto =
      onnx::parse_attribute(std::as_bytes(std::span(attribute.bytes.data(), attribute.bytes.size())));
  if (!proto.reference.empty()) return fmt::format("(the function's {})", proto.reference);
  const auto quoted = [](std::string_view text) { return fmt::format("'{}'", text); };
  switch (proto.type) {
    case onnx::AttributeType::real: return real_text(proto.real);
    case onnx::AttributeType::integer: return std::to_string(proto.integer);
    case onnx::AttributeType::text: return std::string(proto.text);
    case onnx::AttributeType::reals: return list_text(proto.reals, real_text);
    case onnx::AttributeType::integers: return list_text(proto.integers, [](int64_t i) { return std::to_string(i); });
    case onnx::AttributeType::texts: return list_text(proto.texts, quoted);
    case onnx::AttributeType::tensor: {
      if (!proto.tensor) return "tensor";
      return fmt::format("tensor [dtype={}, shape=({})]", numpy_name(proto.tensor->data_type),
                         join_dims(proto.tensor->dims, ", "));
    }
    case onnx::AttributeType::graph:
    case onnx::AttributeType::graphs: {
      size_t nodes = 0;
      for (const auto& body : attribute.bodies) nodes += body->nodes.size();
      return fmt::format("graph of {} node(s)", nodes);
    }
    default: return "(a value of another kind)";
  }
}

}  // namespace hone::edit
