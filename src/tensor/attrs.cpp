// SPDX-License-Identifier: Apache-2.0
//
// Typed access and text of named values.
#include "tensor/attrs.h"

#include "base/hash.h"
#include "base/node_error.h"
#include "base/text.h"

namespace hone {
namespace {

std::string quote(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') result += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else result += c;
  }
  return result + '"';
}

/// A real always shows that it is one, so that the text reads back as the same kind.
std::string real_text(double value) {
  std::string text = exact(value);
  return text.find_first_of(".einf") == std::string::npos ? text + ".0" : text;
}

template <typename T, typename Print>
std::string list(const std::vector<T>& values, const Print& print) {
  std::vector<std::string> parts;
  for (const T& x : values) parts.push_back(print(x));
  return "[" + join(parts, ", ") + "]";
}

template <typename T>
const T& get(const Attrs& attrs, std::string_view name, std::string_view kind) {
  const AttrValue* value = attrs.find(name);
  if (value == nullptr) throw AttributeError(fmt::format("the attribute '{}' is missing", name));
  const T* typed = std::get_if<T>(value);
  if (typed == nullptr) throw AttributeError(fmt::format("attribute '{}' is not {}", name, kind));
  return *typed;
}

}  // namespace

void Attrs::erase(std::string_view name) {
  if (const auto at = values_.find(name); at != values_.end()) values_.erase(at);
}

const AttrValue* Attrs::find(std::string_view name) const {
  const auto at = values_.find(name);
  return at == values_.end() ? nullptr : &at->second;
}

int64_t Attrs::integer(std::string_view name) const { return get<int64_t>(*this, name, "an integer"); }
double Attrs::real(std::string_view name) const {
  const AttrValue* value = find(name);
  if (value != nullptr && std::holds_alternative<int64_t>(*value))
    return static_cast<double>(std::get<int64_t>(*value));
  return get<double>(*this, name, "a number");
}
const std::string& Attrs::text(std::string_view name) const { return get<std::string>(*this, name, "a text"); }
const std::vector<int64_t>& Attrs::integers(std::string_view name) const {
  return get<std::vector<int64_t>>(*this, name, "a list of integers");
}
const std::vector<double>& Attrs::reals(std::string_view name) const {
  return get<std::vector<double>>(*this, name, "a list of numbers");
}
const std::vector<std::string>& Attrs::texts(std::string_view name) const {
  return get<std::vector<std::string>>(*this, name, "a list of texts");
}
const Tensor& Attrs::tensor(std::string_view name) const { return get<Tensor>(*this, name, "a tensor"); }

std::string print_value(const AttrValue& value) {
  struct Printer {
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return real_text(v); }
    std::string operator()(const std::string& v) const { return quote(v); }
    std::string operator()(const std::vector<int64_t>& v) const {
      return list(v, [](int64_t x) { return std::to_string(x); });
    }
    std::string operator()(const std::vector<double>& v) const { return v.empty() ? "reals[]" : list(v, real_text); }
    std::string operator()(const std::vector<std::string>& v) const {
      return v.empty() ? "texts[]" : list(v, [](const std::string& x) { return quote(x); });
    }
    std::string operator()(const Tensor& v) const {
      return fmt::format("tensor<{} #{}>", v.type().text(), hash_hex(v.bytes()));
    }
  };
  return std::visit(Printer(), value);
}

std::string Attrs::print() const {
  std::vector<std::string> parts;
  for (const auto& [name, value] : values_) parts.push_back(name + "=" + print_value(value));
  return join(parts, ", ");
}

}  // namespace hone
