// SPDX-License-Identifier: Apache-2.0
//
// Damage to the fields of a kernel's code, for tests of what load() makes of it.
#pragma once

#include <algorithm>
#include <limits>
#include <random>

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

}  // namespace hone
