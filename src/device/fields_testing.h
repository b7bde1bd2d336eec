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
#include <utility>
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

/// Each value of a switch and of an enumeration, by the field's name and what it may be: families that have a field in common share
/// how they read and compute it, so that it is enough when one of them meets a value.
class UntriedValues {
 public:
  void expect(const std::vector<Field>& fields) {
    for (const Field& field : fields) untried_.try_emplace({kind_of(field.name), values_of(field)}, values_of(field));
  }
  /// A code of the family with these fields; after all expect().
  void meet(const std::vector<Field>& fields, const Attrs& code) {
    std::map<std::string, const Field*> known;
    for (const Field& field : fields) known[kind_of(field.name)] = &field;
    for (const auto& [name, value] : code)
      if (const auto field = known.find(kind_of(name)); field != known.end())
        untried_.at({field->first, values_of(*field->second)}).erase(print_value(value));
  }
  /// "activation is never "clip"".
  std::vector<std::string> list() const {
    std::vector<std::string> texts;
    for (const auto& [key, values] : untried_)
      for (const std::string& value : values) texts.push_back(key.first + " is never " + value);
    return texts;
  }

 private:
  static std::set<std::string> values_of(const Field& field) {
    if (field.is_switch) return {"0", "1"};
    std::set<std::string> values;
    for (const std::string& name : field.names) values.insert(print_value(name));
    return values;
  }
  /// "operands.3.kind" as "operands.kind".
  static std::string kind_of(std::string_view field) {
    std::string kind;
    for (const std::string_view part : split(field, '.'))
      if (!std::isdigit(static_cast<unsigned char>(part[0]))) kind += (kind.empty() ? "" : ".") + std::string(part);
    return kind;
  }

  using Values = std::set<std::string>;
  std::map<std::pair<std::string, Values>, Values> untried_;  // by name and all that there are
};

}  // namespace hone
