// SPDX-License-Identifier: Apache-2.0
//
// Damage to the fields of a kernel's code, for tests of what load() makes of it; and which of their values samples leave untried.
#pragma once

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "device/fields.h"

namespace hone {

/// Whether the value that a code has for the field can be damaged.
inline bool can_damage(const AttrValue* value, const Field& field) {
  if (value == nullptr || !field.is_integer()) return false;
  const auto* list = std::get_if<std::vector<int64_t>>(value);
  return list != nullptr ? !list->empty() : std::holds_alternative<int64_t>(*value);
}

/// Whether there are integers beyond the field's bounds.
inline bool has_ends(const Field& field) {
  return field.low > std::numeric_limits<int64_t>::min() && field.high < std::numeric_limits<int64_t>::max();
}

/// A damaged value of a field: out of its bounds, where it has_ends(), or anything within.
inline AttrValue damaged(const AttrValue& value, const Field& field, bool within, std::mt19937& random) {
  const auto number = [&] {
    if (!within) return random() % 2 == 0 ? field.low - 1 : field.high + 1;
    if (random() % 2 == 0) return std::uniform_int_distribution<int64_t>(field.low, field.high)(random);
    return std::clamp<int64_t>(random() % 5, field.low, field.high);
  };
  if (std::holds_alternative<int64_t>(value)) return number();
  auto list = std::get<std::vector<int64_t>>(value);
  for (int64_t& item : list) item = number();
  return list;
}

/// Each value of a switch and of an enumeration, by the field's name: families that have a field in common share how they read
/// and compute it, so that it is enough when one of them meets a value.
class UntriedValues {
 public:
  void expect(const std::vector<Field>& fields) {
    for (const Field& field : fields) {
      std::set<std::string>& values = untried_[kind_of(field.name)];
      if (field.is_switch) values.insert({"0", "1"});
      for (const std::string& name : field.names) values.insert(print_value(name));
    }
  }
  /// After all expect().
  void meet(const Attrs& code) {
    for (const auto& [name, value] : code)
      if (const auto found = untried_.find(kind_of(name)); found != untried_.end())
        found->second.erase(print_value(value));
  }
  /// "activation is never "clip"".
  std::vector<std::string> list() const {
    std::vector<std::string> texts;
    for (const auto& [field, values] : untried_)
      for (const std::string& value : values) texts.push_back(field + " is never " + value);
    return texts;
  }

 private:
  /// "operands.3.kind" as "operands.kind".
  static std::string kind_of(std::string_view field) {
    std::string kind;
    for (const std::string_view part : split(field, '.'))
      if (!std::isdigit(static_cast<unsigned char>(part[0]))) kind += (kind.empty() ? "" : ".") + std::string(part);
    return kind;
  }

  std::map<std::string, std::set<std::string>> untried_;
};

}  // namespace hone
