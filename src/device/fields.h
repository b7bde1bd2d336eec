// SPDX-License-Identifier: Apache-2.0
//
// What a plan or a timing cache keeps of a kernel, as a struct. Its fields are listed once, each with its bounds:
//
//   struct PoolCode {
//     std::array<int64_t, 2> kernel = {1, 1};
//     bool count_padding = false;
//     static void fields(auto& self, auto& visit) {
//       visit("kernel", self.kernel, 1, kMostPixels);
//       visit("count_padding", self.count_padding);
//     }
//   };
//
// From that one list come the text in a plan (write_fields), the reading of it, which trusts nothing (read_fields), and what a
// fuzzer and a report can say of it (list_fields). A struct within a struct has its fields listed by calling its fields(); a
// list of structs writes "name" with their number and "name.0.field" for each.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/limits.h"
#include "tensor/attrs.h"

namespace hone {

/// Bounds that many fields share.
inline constexpr int64_t kMostAxes = static_cast<int64_t>(kMaxRank);
inline constexpr int64_t kMostSize = int64_t{1} << 40;  // of an axis, in elements

/// An enumeration that a field may be: `field_names(E)` lists its values' names, from 0 on, found by the type alone.
template <typename T>
concept NamedEnum = std::is_enum_v<T> && requires(T value) {
  { field_names(value)[0] } -> std::convertible_to<std::string_view>;
};

/// A field as reports and fuzzers see it.
struct Field {
  std::string name;
  int64_t low = 0, high = 0;  // of an integer, or of each integer of a list; low > high where there is no bound
  bool is_switch = false;
  std::vector<std::string> names = {};  // of an enumeration's values
  bool is_integer() const { return low <= high; }
};

namespace fields {

[[noreturn]] void refuse(std::string_view name, const std::string& what);
/// Elements that a list may have at most, where nothing else is said.
constexpr size_t kMostElements = 1 << 16;

template <typename T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;
template <typename T>
concept Struct = requires(T value, int visit) {
  T::fields(value, visit);
};

inline std::string numbered(std::string_view name, size_t i) { return std::string(name) + "." + std::to_string(i); }

class Writer {
 public:
  explicit Writer(Attrs& attrs, std::string prefix = {}) : attrs_(attrs), prefix_(std::move(prefix)) {}

  void operator()(std::string_view name, const Integer auto& value, int64_t, int64_t) {
    set(name, static_cast<int64_t>(value));
  }
  void operator()(std::string_view name, const bool& value) { set(name, int64_t{value}); }
  void operator()(std::string_view name, const std::floating_point auto& value) {
    set(name, static_cast<double>(value));
  }
  void operator()(std::string_view name, const std::string& value) { set(name, value); }
  void operator()(std::string_view name, const DType& value) { set(name, std::string(name_of(value))); }
  void operator()(std::string_view name, const Tensor& value) { set(name, value); }
  void operator()(std::string_view name, const NamedEnum auto& value) {
    set(name, std::string(field_names(value)[static_cast<size_t>(value)]));
  }
  template <size_t N>
  void operator()(std::string_view name, const std::array<int64_t, N>& values, int64_t, int64_t) {
    set(name, std::vector<int64_t>(values.begin(), values.end()));
  }
  void operator()(std::string_view name, const std::vector<int64_t>& values, int64_t, int64_t, size_t = kMostElements) {
    set(name, values);
  }
  void operator()(std::string_view name, const std::vector<double>& values, size_t = kMostElements) {
    set(name, values);
  }
  void operator()(std::string_view name, const std::vector<std::string>& values, size_t = kMostElements) {
    set(name, values);
  }
  template <Struct T>
  void operator()(std::string_view name, const std::vector<T>& list, int) {
    set(name, static_cast<int64_t>(list.size()));
    for (size_t i = 0; i < list.size(); ++i) {
      Writer inner(attrs_, prefix_ + numbered(name, i) + ".");
      T::fields(list[i], inner);
    }
  }
  /// Left out where there is none.
  template <typename T>
  void operator()(std::string_view name, const std::optional<T>& value, auto... bounds) {
    if (value) (*this)(name, *value, bounds...);
  }

 private:
  void set(std::string_view name, AttrValue value) { attrs_.set(prefix_ + std::string(name), std::move(value)); }
  Attrs& attrs_;
  std::string prefix_;
};

/// Throws Error where a field is missing, of another kind or out of bounds.
class Reader {
 public:
  explicit Reader(const Attrs& attrs, std::string prefix = {}) : attrs_(attrs), prefix_(std::move(prefix)) {}

  template <Integer T>
  void operator()(std::string_view name, T& value, int64_t low, int64_t high) {
    value = static_cast<T>(bounded(name, integer(name), low, high));
  }
  void operator()(std::string_view name, bool& value) { value = bounded(name, integer(name), 0, 1) != 0; }
  template <std::floating_point T>
  void operator()(std::string_view name, T& value) {
    value = static_cast<T>(get<double>(name, "a number"));
  }
  void operator()(std::string_view name, std::string& value) { value = get<std::string>(name, "a text"); }
  void operator()(std::string_view name, Tensor& value) { value = get<Tensor>(name, "a tensor"); }
  void operator()(std::string_view name, DType& value) {
    const std::string& text = get<std::string>(name, "a type");
    const std::optional<DType> type = parse_dtype(text);
    if (!type) refuse(prefix_ + std::string(name), "the unknown type " + text);
    value = *type;
  }
  template <NamedEnum E>
  void operator()(std::string_view name, E& value) {
    const std::string& text = get<std::string>(name, "a text");
    const auto& names = field_names(E{});
    for (size_t i = 0; i < std::size(names); ++i)
      if (names[i] == text) return void(value = static_cast<E>(i));
    refuse(prefix_ + std::string(name), "the unknown " + text);
  }
  template <size_t N>
  void operator()(std::string_view name, std::array<int64_t, N>& values, int64_t low, int64_t high) {
    const std::vector<int64_t> list = integers(name, low, high, N);
    if (list.size() != N) refuse(prefix_ + std::string(name), std::to_string(list.size()) + " numbers");
    std::copy(list.begin(), list.end(), values.begin());
  }
  void operator()(std::string_view name, std::vector<int64_t>& values, int64_t low, int64_t high,
                  size_t most = kMostElements) {
    values = integers(name, low, high, most);
  }
  void operator()(std::string_view name, std::vector<double>& values, size_t most = kMostElements) {
    values = limited(name, get<std::vector<double>>(name, "numbers"), most);
  }
  void operator()(std::string_view name, std::vector<std::string>& values, size_t most = kMostElements) {
    values = limited(name, get<std::vector<std::string>>(name, "texts"), most);
  }
  template <Struct T>
  void operator()(std::string_view name, std::vector<T>& list, int most) {
    list.resize(static_cast<size_t>(bounded(name, integer(name), 0, most)));
    for (size_t i = 0; i < list.size(); ++i) {
      Reader inner(attrs_, prefix_ + numbered(name, i) + ".");
      T::fields(list[i], inner);
      read_ += inner.read_;
    }
  }
  template <typename T>
  void operator()(std::string_view name, std::optional<T>& value, auto... bounds) {
    value.reset();
    if (attrs_.has(prefix_ + std::string(name))) (*this)(name, value.emplace(), bounds...);
  }
  /// How many of the attributes were asked for and there.
  size_t read() const { return read_; }

 private:
  template <typename T>
  const T& get(std::string_view name, const char* kind) {
    const AttrValue* value = attrs_.find(prefix_ + std::string(name));
    const T* typed = value == nullptr ? nullptr : std::get_if<T>(value);
    if (typed == nullptr)
      refuse(prefix_ + std::string(name), value == nullptr ? "nothing" : std::string("not ") + kind);
    ++read_;
    return *typed;
  }
  int64_t integer(std::string_view name) { return get<int64_t>(name, "an integer"); }
  int64_t bounded(std::string_view name, int64_t value, int64_t low, int64_t high) const;
  std::vector<int64_t> integers(std::string_view name, int64_t low, int64_t high, size_t most);
  template <typename T>
  const std::vector<T>& limited(std::string_view name, const std::vector<T>& values, size_t most) const {
    if (values.size() > most) refuse(prefix_ + std::string(name), std::to_string(values.size()) + " elements");
    return values;
  }

  const Attrs& attrs_;
  std::string prefix_;
  size_t read_ = 0;
};

class Lister {
 public:
  explicit Lister(std::vector<Field>& list, std::string prefix = {}) : list_(list), prefix_(std::move(prefix)) {}
  /// `bounds` are low, high and what else the kind of field takes; or nothing that bounds integers.
  template <typename T>
  void operator()(std::string_view name, T&, auto... bounds) {
    add<T>(name, bounds...);
  }
  template <typename T>
  void operator()(std::string_view name, std::optional<T>&, auto... bounds) {
    add<T>(name, bounds...);
  }
  template <Struct T>
  void operator()(std::string_view name, std::vector<T>&, int most) {
    list_.push_back({prefix_ + std::string(name), 0, most});
    Lister inner(list_, prefix_ + numbered(name, 0) + ".");
    T element;
    T::fields(element, inner);
  }

 private:
  template <typename T>
  void add(std::string_view name, auto... bounds) {
    Field field{prefix_ + std::string(name), 1, 0};
    if constexpr (std::same_as<T, bool>) field.low = 0, field.high = 1, field.is_switch = true;
    if constexpr (NamedEnum<T>)
      for (const std::string_view value : field_names(T{})) field.names.emplace_back(value);
    if constexpr (sizeof...(bounds) >= 2) {
      const std::array<int64_t, sizeof...(bounds)> all{static_cast<int64_t>(bounds)...};
      field.low = all[0], field.high = all[1];
    }
    list_.push_back(std::move(field));
  }

  std::vector<Field>& list_;
  std::string prefix_;
};

}  // namespace fields

template <typename T>
Attrs write_fields(const T& value) {
  Attrs attrs;
  fields::Writer visit(attrs);
  T::fields(value, visit);
  return attrs;
}

/// Exact inverse. Throws Error on anything that write_fields() does not write: what is missing, out of bounds or unknown.
template <typename T>
T read_fields(const Attrs& attrs) {
  T value;
  fields::Reader visit(attrs);
  T::fields(value, visit);
  if (visit.read() != attrs.size()) fields::refuse("its parameters", "some that are unknown: " + attrs.print());
  return value;
}

template <typename T>
std::vector<Field> list_fields() {
  std::vector<Field> list;
  fields::Lister visit(list);
  T value;
  T::fields(value, visit);
  return list;
}

}  // namespace hone
