// SPDX-License-Identifier: Apache-2.0
//
// Enumerations whose values have names: `field_names(E)` lists them from 0 on, found by the type alone.
#pragma once

#include <iterator>
#include <optional>
#include <string_view>

namespace hone {

/// The value of this name; nothing where none has it.
template <typename E>
std::optional<E> value_named(std::string_view name) {
  const auto& names = field_names(E{});
  for (size_t i = 0; i < std::size(names); ++i)
    if (names[i] == name) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace hone
