// SPDX-License-Identifier: Apache-2.0
//
// Canonical integer expressions. Terms maps a monomial (sorted atoms) to its non-zero coefficient; atoms are compared
// by their text, which is canonical itself. Sizes are positive, which justifies cancelling a common factor.
#include "tensor/dim.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "base/limits.h"

namespace hone {
namespace {

enum class AtomKind { symbol, floordiv, mod, min, max };

struct Atom {
  AtomKind kind;
  std::string text;  // canonical; also the symbol's name
  Dim a, b;          // operands of the functions
  friend bool operator<(const Atom& x, const Atom& y) { return x.text < y.text; }
  friend bool operator==(const Atom& x, const Atom& y) { return x.text == y.text; }
};
using Monomial = std::vector<std::shared_ptr<const Atom>>;  // sorted by text

struct MonomialLess {
  bool operator()(const Monomial& a, const Monomial& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                        [](const auto& x, const auto& y) { return x->text < y->text; });
  }
};
using Sum = std::map<Monomial, int64_t, MonomialLess>;  // the empty monomial is the constant

/// The values that an expression can have where no symbol is negative; a missing end is open.
struct Range {
  std::optional<int64_t> low, high;
};

template <typename Overflows>
std::optional<int64_t> unless_overflow(std::optional<int64_t> a, std::optional<int64_t> b, const Overflows& overflows) {
  int64_t result = 0;
  return a && b && !overflows(*a, *b, &result) ? std::optional(result) : std::nullopt;
}
std::optional<int64_t> sum_of(std::optional<int64_t> a, std::optional<int64_t> b) {
  return unless_overflow(a, b, [](int64_t x, int64_t y, int64_t* sum) { return __builtin_add_overflow(x, y, sum); });
}
std::optional<int64_t> product_of(std::optional<int64_t> a, std::optional<int64_t> b) {
  return unless_overflow(a, b, [](int64_t x, int64_t y, int64_t* all) { return __builtin_mul_overflow(x, y, all); });
}

int64_t floor_divide_numbers(int64_t a, int64_t b) {
  HONE_CHECK(b != 0, "a size is divided by zero");
  HONE_CHECK(a != INT64_MIN || b != -1, "size overflow: {} / {} does not fit 64 bits", a, b);
  const int64_t quotient = a / b;
  return quotient * b != a && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

[[noreturn]] void too_complex(std::string_view what, size_t limit) {
  throw Error(fmt::format("a size is an expression of more than {} {}", limit, what),
              "give inputs fixed sizes in the model, or export it with simpler arithmetic of shapes");
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

std::string print_sum(const Sum& sum);

}  // namespace

struct Dim::Terms {
  Sum sum;
  std::string text;
};

struct DimAlgebra {
  static Sum to_sum(const Dim& dim) {
    if (dim.terms_) return dim.terms_->sum;
    Sum sum;
    if (dim.constant_ != 0) sum[{}] = dim.constant_;
    return sum;
  }
  static Dim from_sum(Sum sum) {
    std::erase_if(sum, [](const auto& term) { return term.second == 0; });
    Dim dim;
    if (sum.empty()) return dim;
    if (sum.size() == 1 && sum.begin()->first.empty()) return Dim(sum.begin()->second);
    auto terms = std::make_shared<Dim::Terms>();
    terms->text = print_sum(sum);
    if (terms->text.size() > kMaxSizeText) too_complex("characters", kMaxSizeText);
    terms->sum = std::move(sum);
    dim.terms_ = std::move(terms);
    return dim;
  }
  static Dim atom(AtomKind kind, std::string text, Dim a = {}, Dim b = {}) {
    Sum sum;
    sum[{std::make_shared<const Atom>(Atom{kind, std::move(text), std::move(a), std::move(b)})}] = 1;
    return from_sum(std::move(sum));
  }
  static Dim apply(AtomKind kind, const Dim& a, const Dim& b) {
    static constexpr std::string_view kNames[] = {"", "floordiv", "mod", "min", "max"};
    return atom(kind, fmt::format("{}({}, {})", kNames[static_cast<int>(kind)], a.text(), b.text()), a, b);
  }
  /// a / b when b is one term that divides every term of a.
  static std::optional<Dim> divide_exactly(const Dim& a, const Dim& b) {
    const Sum divisor = to_sum(b);
    if (divisor.size() != 1) return a == b ? std::optional(Dim(1)) : std::nullopt;
    const auto& [factor, scale] = *divisor.begin();
    Sum result;
    for (const auto& [monomial, coefficient] : to_sum(a)) {
      if (scale == -1 ? coefficient == INT64_MIN : coefficient % scale != 0) return std::nullopt;
      Monomial rest = monomial;
      for (const auto& part : factor) {
        const auto at = std::find_if(rest.begin(), rest.end(), [&](const auto& x) { return x->text == part->text; });
        if (at == rest.end()) return std::nullopt;
        rest.erase(at);
      }
      result[rest] += coefficient / scale;
    }
    return from_sum(std::move(result));
  }
  template <typename Leaf>
  static Dim rebuild(const Dim& dim, const Leaf& leaf) {
    if (dim.is_constant()) return dim;
    Dim total;
    for (const auto& [monomial, coefficient] : dim.terms_->sum) {
      Dim product(coefficient);
      for (const auto& part : monomial) product = product * rebuild_atom(*part, leaf);
      total = total + product;
    }
    return total;
  }
  template <typename Leaf>
  static Dim rebuild_atom(const Atom& atom, const Leaf& leaf) {
    if (atom.kind == AtomKind::symbol) return leaf(atom.text);
    const Dim a = rebuild(atom.a, leaf), b = rebuild(atom.b, leaf);
    switch (atom.kind) {
      case AtomKind::floordiv: return floor_divide(a, b);
      case AtomKind::mod: return modulo(a, b);
      case AtomKind::min: return minimum(a, b);
      case AtomKind::max: return maximum(a, b);
      case AtomKind::symbol: break;
    }
    return {};
  }
  static Range range(const Dim& dim) {
    if (dim.is_constant()) return {dim.constant_, dim.constant_};
    Range total{0, 0};
    for (const auto& [monomial, coefficient] : dim.terms_->sum) {
      Range product{1, 1};
      for (const auto& part : monomial) {
        const Range factor = range(*part);
        if (factor.low.value_or(-1) < 0) return {};
        product = {product_of(product.low, factor.low), product_of(product.high, factor.high)};
      }
      product = {product_of(product.low, coefficient), product_of(product.high, coefficient)};
      if (coefficient < 0) std::swap(product.low, product.high);
      total = {sum_of(total.low, product.low), sum_of(total.high, product.high)};
    }
    return total;
  }
  static Range range(const Atom& atom) {
    if (atom.kind == AtomKind::symbol) return {0, std::nullopt};
    const Range a = range(atom.a), b = range(atom.b);
    const auto either = [](std::optional<int64_t> x, std::optional<int64_t> y, auto best) {
      return x && y ? std::optional(best(*x, *y)) : x ? x : y;
    };
    const auto both = [](std::optional<int64_t> x, std::optional<int64_t> y, auto best) {
      return x && y ? std::optional(best(*x, *y)) : std::nullopt;
    };
    const auto less = [](int64_t x, int64_t y) { return std::min(x, y); };
    const auto more = [](int64_t x, int64_t y) { return std::max(x, y); };
    switch (atom.kind) {
      case AtomKind::min: return {both(a.low, b.low, less), either(a.high, b.high, less)};
      case AtomKind::max: return {either(a.low, b.low, more), both(a.high, b.high, more)};
      case AtomKind::mod: return b.low.value_or(0) > 0 ? Range{0, sum_of(b.high, -1)} : Range{};
      case AtomKind::floordiv: {
        if (b.low.value_or(0) <= 0 || a.low.value_or(-1) < 0) return {};
        return {0, a.high ? std::optional(*a.high / *b.low) : std::nullopt};
      }
      case AtomKind::symbol: break;
    }
    return {};
  }
  static void symbols(const Dim& dim, std::set<std::string>& names) {
    if (dim.is_constant()) return;
    for (const auto& [monomial, coefficient] : dim.terms_->sum)
      for (const auto& part : monomial) {
        if (part->kind == AtomKind::symbol) names.insert(part->text);
        symbols(part->a, names);
        symbols(part->b, names);
      }
  }
};

namespace {

std::string print_sum(const Sum& sum) {
  std::string text, constant;
  const auto add = [&text](bool negative, const std::string& term) {
    if (text.empty()) text = negative ? "-" + term : term;
    else text += (negative ? " - " : " + ") + term;
  };
  for (const auto& [monomial, coefficient] : sum) {
    if (monomial.empty()) continue;
    std::string term = coefficient == 1 || coefficient == -1 ? "" : fmt::format("{}*", magnitude(coefficient));
    for (size_t i = 0; i < monomial.size(); ++i) term += (i == 0 ? "" : "*") + monomial[i]->text;
    add(coefficient < 0, term);
  }
  if (const auto at = sum.find({}); at != sum.end()) add(at->second < 0, fmt::format("{}", magnitude(at->second)));
  return text;
}

/// Recursive descent over the text form.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}
  Dim whole() {
    Dim result = sum();
    blanks();
    HONE_CHECK(at_ == text_.size(), "unexpected '{}' in the size expression '{}'", text_.substr(at_), text_);
    return result;
  }

 private:
  void blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Dim sum() {
    HONE_CHECK(++depth_ < 64, "the size expression '{}' is nested too deeply", text_);
    Dim result = take('-') ? Dim(0) - product() : product();
    while (true) {
      if (take('+')) result = result + product();
      else if (take('-')) result = result - product();
      else break;
    }
    --depth_;
    return result;
  }
  Dim product() {
    Dim result = factor();
    while (take('*')) result = result * factor();
    return result;
  }
  Dim factor() {
    blanks();
    const size_t start = at_;
    const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; };
    while (at_ < text_.size() && word(text_[at_])) ++at_;
    const std::string name(text_.substr(start, at_ - start));
    HONE_CHECK(!name.empty(), "a number or a name is missing at character {} of the size expression '{}'", start,
               text_);
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) {
      int64_t value = 0;
      for (const char c : name) {
        HONE_CHECK(std::isdigit(static_cast<unsigned char>(c)) != 0, "'{}' is not a number in the size expression '{}'",
                   name, text_);
        value = checked_add(checked_multiply(value, 10), c - '0');
      }
      return Dim(value);
    }
    if (!take('(')) return Dim::symbol(name);
    const Dim a = sum();
    HONE_CHECK(take(','), "',' expected in the size expression '{}'", text_);
    const Dim b = sum();
    HONE_CHECK(take(')'), "')' expected in the size expression '{}'", text_);
    if (name == "floordiv") return floor_divide(a, b);
    if (name == "mod") return modulo(a, b);
    if (name == "min") return minimum(a, b);
    if (name == "max") return maximum(a, b);
    throw Error(fmt::format("unknown function '{}' in the size expression '{}'", name, text_));
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Dim Dim::symbol(std::string name) { return DimAlgebra::atom(AtomKind::symbol, std::move(name)); }
Dim Dim::parse(std::string_view text) { return Parser(text).whole(); }

int64_t Dim::value() const {
  HONE_ASSERT(is_constant(), "the size {} is symbolic", text());
  return constant_;
}

int64_t Dim::evaluate(const SymbolValues& values) const {
  return DimAlgebra::rebuild(*this,
                             [&](const std::string& name) {
                               const auto at = values.find(name);
                               HONE_CHECK(at != values.end(), "the size '{}' has no value", name);
                               return Dim(at->second);
                             })
      .value();
}

Dim Dim::substitute(const SymbolValues& values) const {
  return DimAlgebra::rebuild(*this, [&](const std::string& name) {
    const auto at = values.find(name);
    return at != values.end() ? Dim(at->second) : Dim::symbol(name);
  });
}

void Dim::collect_symbols(std::set<std::string>& names) const { DimAlgebra::symbols(*this, names); }
std::optional<int64_t> Dim::largest() const { return DimAlgebra::range(*this).high; }
std::string Dim::text() const { return terms_ ? terms_->text : fmt::format("{}", constant_); }

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return Dim(checked_add(a.constant_, b.constant_));
  Sum sum = DimAlgebra::to_sum(a);
  for (const auto& [monomial, coefficient] : DimAlgebra::to_sum(b))
    sum[monomial] = checked_add(sum[monomial], coefficient);
  return DimAlgebra::from_sum(std::move(sum));
}

Dim operator-(const Dim& a, const Dim& b) { return a + Dim(-1) * b; }

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return Dim(checked_multiply(a.constant_, b.constant_));
  Sum sum;
  for (const auto& [x, p] : DimAlgebra::to_sum(a))
    for (const auto& [y, q] : DimAlgebra::to_sum(b)) {
      Monomial product = x;
      product.insert(product.end(), y.begin(), y.end());
      std::sort(product.begin(), product.end(), [](const auto& l, const auto& r) { return l->text < r->text; });
      sum[product] = checked_add(sum[product], checked_multiply(p, q));
      if (sum.size() > kMaxSizeTerms) too_complex("terms", kMaxSizeTerms);
    }
  return DimAlgebra::from_sum(std::move(sum));
}

Dim floor_divide(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return Dim(floor_divide_numbers(a.constant_, b.constant_));
  if (const std::optional<Dim> exact = DimAlgebra::divide_exactly(a, b)) return *exact;
  // Whole multiples of a constant divisor leave the function: floordiv(2*N + 3, 2) is N + floordiv(3, 2).
  if (b.is_constant() && b.constant_ > 0) {
    Sum outside, inside;
    for (const auto& [monomial, coefficient] : DimAlgebra::to_sum(a)) {
      const int64_t quotient = floor_divide_numbers(coefficient, b.constant_),
                    rest = coefficient - quotient * b.constant_;
      if (monomial.empty() || rest == 0) outside[monomial] += quotient;
      else inside[monomial] += coefficient, outside[monomial] += 0;
      if (monomial.empty() && rest != 0) inside[monomial] += rest;
    }
    const Dim out = DimAlgebra::from_sum(std::move(outside)), in = DimAlgebra::from_sum(std::move(inside));
    if (in.is_constant()) return out + Dim(floor_divide_numbers(in.value(), b.constant_));
    return out + DimAlgebra::apply(AtomKind::floordiv, in, b);
  }
  return DimAlgebra::apply(AtomKind::floordiv, a, b);
}

Dim modulo(const Dim& a, const Dim& b) {
  if (b == Dim(-1)) return Dim(0);
  if (a.is_constant() && b.is_constant())
    return Dim(a.constant_ - floor_divide_numbers(a.constant_, b.constant_) * b.constant_);
  if (DimAlgebra::divide_exactly(a, b)) return Dim(0);
  return DimAlgebra::apply(AtomKind::mod, a, b);
}

/// What min or max of `a` and an expression that is itself a min or max with `a` comes to: min(a, max(a, c)) is a.
static std::optional<Dim> absorbed(AtomKind kind, const Dim& a, const Dim& b) {
  const Sum sum = DimAlgebra::to_sum(b);
  if (sum.size() != 1 || sum.begin()->second != 1 || sum.begin()->first.size() != 1) return std::nullopt;
  const Atom& atom = *sum.begin()->first.front();
  if ((atom.kind != AtomKind::min && atom.kind != AtomKind::max) || (atom.a != a && atom.b != a)) return std::nullopt;
  return atom.kind == kind ? b : a;
}

static Dim extremum(AtomKind kind, const Dim& a, const Dim& b) {
  if (a == b) return a;
  if (const std::optional<Dim> kept = absorbed(kind, a, b)) return *kept;
  if (const std::optional<Dim> kept = absorbed(kind, b, a)) return *kept;
  const Dim difference = a - b;
  if (difference.is_constant()) return (difference.value() < 0) == (kind == AtomKind::min) ? a : b;
  return a < b ? DimAlgebra::apply(kind, a, b) : DimAlgebra::apply(kind, b, a);
}
Dim minimum(const Dim& a, const Dim& b) { return extremum(AtomKind::min, a, b); }
Dim maximum(const Dim& a, const Dim& b) { return extremum(AtomKind::max, a, b); }

bool operator==(const Dim& a, const Dim& b) { return (a <=> b) == std::strong_ordering::equal; }
std::strong_ordering operator<=>(const Dim& a, const Dim& b) {
  if (a.is_constant() != b.is_constant())
    return a.is_constant() ? std::strong_ordering::less : std::strong_ordering::greater;
  if (a.is_constant()) return a.constant_ <=> b.constant_;
  return a.terms_->text <=> b.terms_->text;
}

}  // namespace hone
