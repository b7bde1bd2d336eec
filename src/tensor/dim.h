// SPDX-License-Identifier: Apache-2.0
//
// Dim: a size that is a number or an integer expression over named symbols, kept in one canonical form, so that two
// equal expressions compare and print equal: a sum of integer multiples of products of atoms; an atom is a symbol or
// floordiv/mod/min/max of expressions. Text form: "3", "N", "2*N + 1", "floordiv(H + 1, 2)".
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

/// Values of symbols: what a shape profile point or a concrete set of input shapes comes down to.
using SymbolValues = std::map<std::string, int64_t, std::less<>>;

class Dim {
 public:
  Dim() = default;                          ///< 0
  Dim(int64_t value) : constant_(value) {}  // NOLINT: a number is a size
  static Dim symbol(std::string name);
  static Dim parse(std::string_view text);  ///< inverse of text(); throws Error

  bool is_constant() const { return terms_ == nullptr; }
  /// The number; throws InternalError when symbolic.
  int64_t value() const;
  std::optional<int64_t> constant() const { return is_constant() ? std::optional(constant_) : std::nullopt; }

  /// Throws Error naming the symbol when one has no value.
  int64_t evaluate(const SymbolValues& values) const;
  /// Replaces the symbols that have a value.
  Dim substitute(const SymbolValues& values) const;
  void collect_symbols(std::set<std::string>& names) const;
  /// The largest value that it can have, whatever its symbols are; nothing: there is none.
  std::optional<int64_t> largest() const;
  std::string text() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  /// Rounded towards minus infinity; exact when the divisor divides every term, so (4*N)/4 is N and (N*M)/M is N.
  friend Dim floor_divide(const Dim& a, const Dim& b);
  friend Dim modulo(const Dim& a, const Dim& b);  ///< sign of the divisor
  friend Dim minimum(const Dim& a, const Dim& b);
  friend Dim maximum(const Dim& a, const Dim& b);

  friend bool operator==(const Dim& a, const Dim& b);
  friend std::strong_ordering operator<=>(const Dim& a, const Dim& b);

 private:
  friend struct DimAlgebra;
  struct Terms;  // canonical sum; immutable, shared
  int64_t constant_ = 0;
  std::shared_ptr<const Terms> terms_;
};

inline Dim ceil_divide(const Dim& a, const Dim& b) { return floor_divide(a + b - Dim(1), b); }

}  // namespace hone
