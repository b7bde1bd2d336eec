// SPDX-License-Identifier: Apache-2.0
#include "ir/size_text.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/limits.h"
#include "base/numbers.h"
#include "base/text.h"

namespace hone {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Reader {
 public:
  Reader(std::string_view text, const SizeScope& scope) : text_(text), scope_(scope) {}

  std::vector<Dim> sizes() {
    std::vector<Dim> dims;
    if (at_end()) return dims;
    do entry(dims);
    while (take(","));
    if (!at_end()) fail("',' or the end is expected");
    return dims;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(fmt::format("the sizes '{}' cannot be read at column {}: {}", text_, at_ + 1, what),
                "write them like \"x0[0], x0[1] * 2\": x0 is the first operand, x0[:-1] all its axes but the last");
  }
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool at_end() { return peek() == '\0' && at_ == text_.size(); }
  bool take(std::string_view token) {
    peek();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail(fmt::format("'{}' is expected", token));
  }
  std::string_view word() {
    peek();
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  int64_t number() {
    const bool negative = take("-");
    const std::optional<int64_t> value = parse_integer(word());
    if (!value) fail("a number is expected");
    return negative ? -*value : *value;
  }

  /// The shape behind a name; null where it names no tensor.
  const Shape* tensor(std::string_view name) const {
    if (name.size() < 2 || (name[0] != 'x' && name[0] != 'y')) return nullptr;
    const std::optional<int64_t> index = parse_integer(name.substr(1));
    const auto& list = name[0] == 'x' ? scope_.inputs : scope_.outputs;
    if (!index || *index < 0) return nullptr;
    if (*index >= static_cast<int64_t>(list.size()) || list[static_cast<size_t>(*index)] == nullptr)
      fail(fmt::format("there is no {}", name));
    return list[static_cast<size_t>(*index)];
  }
  size_t axis_of(int64_t axis, size_t count) const {
    const int64_t found = axis < 0 ? axis + static_cast<int64_t>(count) : axis;
    if (found < 0 || found >= static_cast<int64_t>(count)) fail(fmt::format("[{}] is asked of {}", axis, count));
    return static_cast<size_t>(found);
  }
  int64_t bound(int64_t fallback, int64_t rank) {
    const char c = peek();
    const int64_t value = c == ':' || c == ']' ? fallback : number();
    return std::clamp<int64_t>(value < 0 ? value + rank : value, 0, rank);
  }

  void entry(std::vector<Dim>& dims) {
    const size_t begin = (peek(), at_);
    if (const Shape* shape = tensor(word())) {
      const auto rank = static_cast<int64_t>(shape->rank());
      int64_t from = 0, to = rank;
      const size_t bracket = at_;
      bool whole = peek() == ',' || at_end();
      if (take("[")) {
        from = bound(0, rank);
        if (take(":")) {
          to = bound(rank, rank);
          expect("]");
          whole = true;
        }
      }
      if (whole) {
        for (int64_t axis = from; axis < to; ++axis) dims.push_back((*shape)[static_cast<size_t>(axis)]);
        return;
      }
      at_ = bracket;
    }
    at_ = begin;
    dims.push_back(sum());
  }

  Dim sum() {
    if (++depth_ > kMaxNesting) fail("it is nested too deeply");
    Dim value = term();
    while (true) {
      if (take("+")) value = value + term();
      else if (take("-")) value = value - term();
      else break;
    }
    --depth_;
    return value;
  }
  Dim term() {
    Dim value = factor();
    while (true) {
      if (take("*")) value = value * factor();
      else if (take("/")) value = floor_divide(value, divisor());
      else if (take("%")) value = modulo(value, divisor());
      else return value;
    }
  }
  Dim divisor() {
    Dim value = factor();
    if (value.is_constant() && value.value() == 0) fail("it divides by 0");
    return value;
  }

  Dim factor() {
    if (take("(")) {
      Dim value = sum();
      expect(")");
      return value;
    }
    const char first = peek();
    if (first == '-' || std::isdigit(static_cast<unsigned char>(first)) != 0) return literal();
    const std::string_view name = word();
    if (name.empty()) fail("a size is expected");
    if (const Shape* shape = tensor(name)) return axis(*shape);
    if (take("(")) return call(name);
    return attribute(name);
  }
  Dim literal() {
    if (!take("-")) return Dim(number());
    if (++depth_ > kMaxNesting) fail("it is nested too deeply");
    const Dim value = factor();
    --depth_;
    return Dim(0) - value;
  }
  Dim axis(const Shape& shape) {
    expect("[");
    const size_t found = axis_of(number(), shape.rank());
    expect("]");
    return shape[found];
  }

  Dim call(std::string_view name) {
    if (name == "count" || name == "rank") {
      const Shape* shape = tensor(word());
      if (shape == nullptr) fail(fmt::format("{}() is of a tensor", name));
      expect(")");
      if (name == "rank") return Dim(static_cast<int64_t>(shape->rank()));
      Dim count(1);
      for (const Dim& dim : *shape) count = count * dim;
      return count;
    }
    if (name != "min" && name != "max") fail(fmt::format("there is no function {}", name));
    Dim value = sum();
    while (take(",")) value = name == "min" ? minimum(value, sum()) : maximum(value, sum());
    expect(")");
    return value;
  }

  Dim attribute(std::string_view name) {
    const AttrValue* value = scope_.attrs.find(name);
    if (value == nullptr) fail(fmt::format("the node has no attribute '{}'", name));
    if (const int64_t* integer = std::get_if<int64_t>(value)) return Dim(*integer);
    const auto* list = std::get_if<std::vector<int64_t>>(value);
    if (list == nullptr) fail(fmt::format("the attribute '{}' is no integer", name));
    expect("[");
    const size_t found = axis_of(number(), list->size());
    expect("]");
    return Dim((*list)[found]);
  }

  std::string_view text_;
  const SizeScope& scope_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Shape sizes_from_text(std::string_view text, const SizeScope& scope) { return Shape(Reader(text, scope).sizes()); }

}  // namespace hone
