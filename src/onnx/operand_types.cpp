// SPDX-License-Identifier: Apache-2.0
#include "onnx/operand_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "onnx/proto.h"

namespace hone::onnx {
namespace {

constexpr size_t kMostLetters = 5;

struct Row {
  std::string_view op;
  int since;  // until the next row of the operator
  std::string_view letters;
  std::array<uint32_t, kMostLetters> masks;
};

constexpr Row kRows[] = {
// sorted
#include "onnx/operand_types.def"
};

constexpr char kAnything = '.', kGoesOn = '+';

char letter_of(const Row& row, size_t operand) {
  const bool goes_on = row.letters.ends_with(kGoesOn);
  const size_t own = row.letters.size() - (goes_on ? 1 : 0);
  if (operand < own) return row.letters[operand];
  return goes_on ? row.letters[own - 1] : kAnything;
}

bool allows(const Row& row, size_t operand, DType type) {
  const char letter = letter_of(row, operand);
  return letter == kAnything || (row.masks[static_cast<size_t>(letter - 'A')] >> onnx_type_of(type) & 1u) != 0;
}

TypeFault forbidden(std::span<const Row> rows, const Row& row, size_t operand, DType type, int opset) {
  const std::string_view word = name_of(type);
  for (const Row& later : rows)
    if (later.since > row.since && allows(later, operand, type))
      return {fmt::format("ONNX's {} takes no {} as operand {} in operator set {}", row.op, word, operand, opset),
              fmt::format("from operator set {} on it does", later.since)};
  return {fmt::format("ONNX's {} takes no {} as operand {}", row.op, word, operand), "put a Cast before it"};
}

}  // namespace

std::optional<TypeFault> operand_type_fault(std::string_view op, int opset,
                                            std::span<const std::optional<DType>> operands) {
  const Row *begin = std::ranges::lower_bound(kRows, op, {}, &Row::op),
            *end = std::ranges::upper_bound(kRows, op, {}, &Row::op);
  const std::span<const Row> rows(begin, end);
  const auto after = std::ranges::upper_bound(rows, opset, {}, &Row::since);
  if (after == rows.begin()) return std::nullopt;
  const Row& row = *std::prev(after);
  std::array<std::optional<size_t>, kMostLetters> first;  // operand of each letter
  for (size_t i = 0; i < operands.size(); ++i) {
    const char letter = letter_of(row, i);
    if (letter == kAnything || !operands[i]) continue;
    if (!allows(row, i, *operands[i])) return forbidden(rows, row, i, *operands[i], opset);
    std::optional<size_t>& other = first[static_cast<size_t>(letter - 'A')];
    if (!other) other = i;
    else if (*operands[*other] != *operands[i])
      return TypeFault{fmt::format("ONNX's {} wants operands {} and {} to be of one type; they are {} and {}", op,
                                   *other, i, name_of(*operands[*other]), name_of(*operands[i])),
                       "put a Cast before one of them"};
  }
  return std::nullopt;
}

}  // namespace hone::onnx
