// SPDX-License-Identifier: Apache-2.0
//
// Scalar formulas: parser, printer, evaluation in doubles and in integers.
#include "ir/expr.h"

#include <cctype>
#include <cmath>
#include <limits>

#include "base/numbers.h"
#include "base/text.h"

namespace hone {
namespace {

struct FunctionName {
  std::string_view name;
  ExprKind kind;
  int arity;
};
constexpr FunctionName kFunctions[] = {
    {"neg", ExprKind::negate, 1},
    {"abs", ExprKind::absolute, 1},
    {"exp", ExprKind::exp, 1},
    {"log", ExprKind::log, 1},
    {"sqrt", ExprKind::sqrt, 1},
    {"reciprocal", ExprKind::reciprocal, 1},
    {"floor", ExprKind::floor, 1},
    {"ceil", ExprKind::ceil, 1},
    {"round_even", ExprKind::round_even, 1},
    {"erf", ExprKind::erf, 1},
    {"tanh", ExprKind::tanh, 1},
    {"sin", ExprKind::sin, 1},
    {"cos", ExprKind::cos, 1},
    {"tan", ExprKind::tan, 1},
    {"asin", ExprKind::asin, 1},
    {"acos", ExprKind::acos, 1},
    {"atan", ExprKind::atan, 1},
    {"sinh", ExprKind::sinh, 1},
    {"cosh", ExprKind::cosh, 1},
    {"asinh", ExprKind::asinh, 1},
    {"acosh", ExprKind::acosh, 1},
    {"atanh", ExprKind::atanh, 1},
    {"sign", ExprKind::sign, 1},
    {"not", ExprKind::logical_not, 1},
    {"is_nan", ExprKind::is_nan, 1},
    {"add", ExprKind::add, 2},
    {"subtract", ExprKind::subtract, 2},
    {"multiply", ExprKind::multiply, 2},
    {"divide", ExprKind::divide, 2},
    {"min", ExprKind::minimum, 2},
    {"max", ExprKind::maximum, 2},
    {"pow", ExprKind::power, 2},
    {"mod_floor", ExprKind::modulo_floor, 2},
    {"mod_trunc", ExprKind::modulo_trunc, 2},
    {"less", ExprKind::less, 2},
    {"less_equal", ExprKind::less_equal, 2},
    {"equal", ExprKind::equal, 2},
    {"not_equal", ExprKind::not_equal, 2},
    {"and", ExprKind::logical_and, 2},
    {"or", ExprKind::logical_or, 2},
    {"select", ExprKind::select, 3},
};

/// Precedence climbing: || < && < comparison < sum < product < unary < primary. Equal subterms are shared.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}
  std::vector<ExprNode> whole() {
    any_or();
    blanks();
    HONE_ASSERT(at_ == text_.size(), "unexpected '{}' in formula '{}'", text_.substr(at_), text_);
    return std::move(nodes_);
  }

 private:
  int emit(ExprNode node) {
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }
  int call(ExprKind kind, std::vector<int> operands) {
    return emit({.kind = kind, .number = 0, .input = 0, .attribute = {}, .operands = std::move(operands)});
  }
  void blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  int any_or() {
    int a = any_and();
    while (take("||")) a = call(ExprKind::logical_or, {a, any_and()});
    return a;
  }
  int any_and() {
    int a = comparison();
    while (take("&&")) a = call(ExprKind::logical_and, {a, comparison()});
    return a;
  }
  int comparison() {
    const int a = sum();
    if (take("<=")) return call(ExprKind::less_equal, {a, sum()});
    if (take(">=")) return swapped(ExprKind::less_equal, a);
    if (take("==")) return call(ExprKind::equal, {a, sum()});
    if (take("!=")) return call(ExprKind::not_equal, {a, sum()});
    if (take("<")) return call(ExprKind::less, {a, sum()});
    if (take(">")) return swapped(ExprKind::less, a);
    return a;
  }
  int swapped(ExprKind kind, int a) {
    const int b = sum();
    return call(kind, {b, a});
  }
  int sum() {
    int a = product();
    while (true) {
      if (take("+")) a = call(ExprKind::add, {a, product()});
      else if (take("-")) a = call(ExprKind::subtract, {a, product()});
      else return a;
    }
  }
  int product() {
    int a = unary();
    while (true) {
      if (take("*")) a = call(ExprKind::multiply, {a, unary()});
      else if (take("/")) a = call(ExprKind::divide, {a, unary()});
      else return a;
    }
  }
  int unary() {
    if (take("-")) return call(ExprKind::negate, {unary()});
    blanks();
    if (at_ < text_.size() && text_[at_] == '!' && !text_.substr(at_).starts_with("!=")) {
      ++at_;
      return call(ExprKind::logical_not, {unary()});
    }
    return primary();
  }
  int primary() {
    if (take("(")) {
      const int a = any_or();
      HONE_ASSERT(take(")"), "')' is missing in formula '{}'", text_);
      return a;
    }
    blanks();
    const size_t start = at_;
    const bool digit =
        at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '.');
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool exponent_sign =
          digit && (c == '-' || c == '+') && at_ > start && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.' && !exponent_sign) break;
      ++at_;
    }
    const std::string word(text_.substr(start, at_ - start));
    HONE_ASSERT(!word.empty(), "operand missing at character {} of formula '{}'", start, text_);
    if (digit) {
      const std::optional<double> number = parse_real(word);
      HONE_ASSERT(number.has_value(), "'{}' is not a number in formula '{}'", word, text_);
      return emit({.kind = ExprKind::number, .number = *number, .input = 0, .attribute = {}, .operands = {}});
    }
    if (take("(")) return function(word);
    if (word == "inf")
      return emit({.kind = ExprKind::number, .number = INFINITY, .input = 0, .attribute = {}, .operands = {}});
    if (word.size() == 1)
      if (const size_t input = std::string_view("xyzw").find(word[0]); input != std::string_view::npos)
        return emit(
            {.kind = ExprKind::input, .number = 0, .input = static_cast<int>(input), .attribute = {}, .operands = {}});
    return emit({.kind = ExprKind::attribute, .number = 0, .input = 0, .attribute = word, .operands = {}});
  }
  int function(const std::string& word) {
    for (const FunctionName& f : kFunctions) {
      if (f.name != word) continue;
      std::vector<int> operands{any_or()};
      while (take(",")) operands.push_back(any_or());
      HONE_ASSERT(take(")") && static_cast<int>(operands.size()) == f.arity, "{} takes {} operands in formula '{}'",
                  word, f.arity, text_);
      return call(f.kind, std::move(operands));
    }
    throw InternalError(fmt::format("unknown function '{}' in formula '{}'", word, text_));
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<ExprNode> nodes_;
};

double modulo_floor(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double apply(ExprKind kind, double a, double b, double c) {
  switch (kind) {
    case ExprKind::negate: return -a;
    case ExprKind::absolute: return std::fabs(a);
    case ExprKind::exp: return std::exp(a);
    case ExprKind::log: return std::log(a);
    case ExprKind::sqrt: return std::sqrt(a);
    case ExprKind::reciprocal: return 1.0 / a;
    case ExprKind::floor: return std::floor(a);
    case ExprKind::ceil: return std::ceil(a);
    case ExprKind::round_even: return std::nearbyint(a);
    case ExprKind::erf: return std::erf(a);
    case ExprKind::tanh: return std::tanh(a);
    case ExprKind::sin: return std::sin(a);
    case ExprKind::cos: return std::cos(a);
    case ExprKind::tan: return std::tan(a);
    case ExprKind::asin: return std::asin(a);
    case ExprKind::acos: return std::acos(a);
    case ExprKind::atan: return std::atan(a);
    case ExprKind::sinh: return std::sinh(a);
    case ExprKind::cosh: return std::cosh(a);
    case ExprKind::asinh: return std::asinh(a);
    case ExprKind::acosh: return std::acosh(a);
    case ExprKind::atanh: return std::atanh(a);
    case ExprKind::sign: return std::isnan(a) ? a : (a > 0) - (a < 0);
    case ExprKind::logical_not: return a == 0;
    case ExprKind::is_nan: return std::isnan(a);
    case ExprKind::add: return a + b;
    case ExprKind::subtract: return a - b;
    case ExprKind::multiply: return a * b;
    case ExprKind::divide: return a / b;
    case ExprKind::minimum: return std::isnan(a) ? a : std::isnan(b) ? b : std::fmin(a, b);
    case ExprKind::maximum: return std::isnan(a) ? a : std::isnan(b) ? b : std::fmax(a, b);
    case ExprKind::power: return std::pow(a, b);
    case ExprKind::modulo_floor: return modulo_floor(a, b);
    case ExprKind::modulo_trunc: return std::fmod(a, b);
    case ExprKind::less: return a < b;
    case ExprKind::less_equal: return a <= b;
    case ExprKind::equal: return a == b;
    case ExprKind::not_equal: return a != b;
    case ExprKind::logical_and: return a != 0 && b != 0;
    case ExprKind::logical_or: return a != 0 || b != 0;
    case ExprKind::select: return a != 0 ? b : c;
    case ExprKind::number:
    case ExprKind::input:
    case ExprKind::attribute: break;
  }
  throw InternalError("formula node is not an operation");
}

int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent >>= 1, factor *= factor)
    if ((exponent & 1) != 0) result *= factor;
  return static_cast<int64_t>(result);
}

/// Wrapping arithmetic; division by zero gives 0 and the smallest number divided by -1 itself, never a trap.
int64_t apply_integer(ExprKind kind, int64_t a, int64_t b, int64_t c) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const bool safe = b != 0 && b != -1;
  switch (kind) {
    case ExprKind::negate: return static_cast<int64_t>(0 - ua);
    case ExprKind::absolute: return a < 0 ? static_cast<int64_t>(0 - ua) : a;
    case ExprKind::floor:
    case ExprKind::ceil:
    case ExprKind::round_even: return a;
    case ExprKind::sign: return (a > 0) - (a < 0);
    case ExprKind::logical_not: return a == 0;
    case ExprKind::is_nan: return 0;
    case ExprKind::add: return static_cast<int64_t>(ua + ub);
    case ExprKind::subtract: return static_cast<int64_t>(ua - ub);
    case ExprKind::multiply: return static_cast<int64_t>(ua * ub);
    case ExprKind::divide: return safe ? a / b : b == 0 ? 0 : static_cast<int64_t>(0 - ua);
    case ExprKind::minimum: return std::min(a, b);
    case ExprKind::maximum: return std::max(a, b);
    case ExprKind::power: return integer_power(a, b);
    case ExprKind::modulo_floor: return safe ? (a % b != 0 && (a < 0) != (b < 0) ? a % b + b : a % b) : 0;
    case ExprKind::modulo_trunc: return safe ? a % b : 0;
    case ExprKind::less: return a < b;
    case ExprKind::less_equal: return a <= b;
    case ExprKind::equal: return a == b;
    case ExprKind::not_equal: return a != b;
    case ExprKind::logical_and: return a != 0 && b != 0;
    case ExprKind::logical_or: return a != 0 || b != 0;
    case ExprKind::select: return a != 0 ? b : c;
    default:
      return saturated<int64_t>(apply(kind, static_cast<double>(a), static_cast<double>(b), static_cast<double>(c)));
  }
}

template <typename T, typename Apply>
T run(const std::vector<ExprNode>& nodes, std::span<const T> inputs, const Apply& op) {
  T values[64];
  HONE_ASSERT(nodes.size() <= std::size(values), "formula of {} nodes is too long", nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ExprNode& node = nodes[i];
    const auto operand = [&](size_t k) { return k < node.operands.size() ? values[node.operands[k]] : T(0); };
    switch (node.kind) {
      case ExprKind::number:
        if constexpr (std::is_integral_v<T>) values[i] = saturated<T>(node.number);
        else values[i] = node.number;
        break;
      case ExprKind::input: values[i] = inputs[static_cast<size_t>(node.input)]; break;
      case ExprKind::attribute: throw InternalError("attribute '" + node.attribute + "' of a formula is not bound");
      default: values[i] = op(node.kind, operand(0), operand(1), operand(2));
    }
  }
  return values[nodes.size() - 1];
}

}  // namespace

Expr Expr::parse(std::string_view formula) { return Expr(Parser(formula).whole()); }

Expr Expr::bind(const Attrs& attrs) const {
  std::vector<ExprNode> nodes = nodes_;
  for (ExprNode& node : nodes)
    if (node.kind == ExprKind::attribute)
      node = {
          .kind = ExprKind::number, .number = attrs.real(node.attribute), .input = 0, .attribute = {}, .operands = {}};
  return Expr(std::move(nodes));
}

double Expr::evaluate(std::span<const double> inputs) const { return run<double>(nodes_, inputs, apply); }
int64_t evaluate_integer(const Expr& expr, std::span<const int64_t> inputs) {
  return run<int64_t>(expr.nodes(), inputs, apply_integer);
}

std::string_view name_of(ExprKind kind) {
  for (const FunctionName& f : kFunctions)
    if (f.kind == kind) return f.name;
  return "";
}

std::string Expr::text() const {
  std::vector<std::string> texts;
  for (const ExprNode& node : nodes_) {
    std::vector<std::string> operands;
    for (const int operand : node.operands) operands.push_back(texts[static_cast<size_t>(operand)]);
    switch (node.kind) {
      case ExprKind::number: texts.push_back(exact(node.number)); break;
      case ExprKind::input: texts.push_back(std::string(1, "xyzw"[node.input])); break;
      case ExprKind::attribute: texts.push_back(node.attribute); break;
      default: texts.push_back(fmt::format("{}({})", name_of(node.kind), join(operands, ", ")));
    }
  }
  return texts.empty() ? "" : texts.back();
}

}  // namespace hone
