// SPDX-License-Identifier: Apache-2.0
//
// Small text helpers: splitting, strict numbers, the nearest name for "did you mean".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
template <typename Range>
std::string join(const Range& parts, std::string_view separator) {
  std::string result;
  bool first = true;
  for (const auto& part : parts) {
    if (!first) result += separator;
    result += part;
    first = false;
  }
  return result;
}
/// The whole text as a number, or nothing.
std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_real(std::string_view text);
/// Whether a name is the pattern, whose first '*' stands for any text.
bool fits_pattern(std::string_view pattern, std::string_view name);
/// The candidate with the smallest edit distance to `word` (empty when there are none).
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);
/// Shortest text that reads back as the same float/double ("0.1", "1e-05", "inf", "nan").
std::string exact(double value);
std::string exact(float value);
/// How deep brackets and braces outside of quoted texts lie in each other: what goes through JSON must not use up the stack.
int nesting_of(std::string_view text);

}  // namespace hone
