// SPDX-License-Identifier: Apache-2.0
//
// Patterns: parsing, matching, replacing. A pattern is matched from its root upwards; commutative operators make
// several ways of pairing operands, which are tried one by one (bit k of a mask swaps the operands of the k-th such
// line). Patterns are a few lines long, and nearly all attempts end at the first or second node.
#include "passes/rewrite.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "ops/all.h"
#include "passes/edit.h"

namespace hone {
namespace {

struct Operand {
  enum class Kind : uint8_t { value, constant, number, missing } kind = Kind::value;
  std::string name;
  double number = 0;
};

struct Line {
  std::vector<std::string> results;
  const OpDef* op = nullptr;
  std::vector<Operand> operands;
  Attrs attrs;
};

/// Lines of IR text. The last line is the root.
struct Pattern {
  std::vector<Line> lines;
  std::map<std::string, std::pair<size_t, size_t>, std::less<>> definitions;  // name: line and result
  const Line& root() const { return lines.back(); }
};

class PatternParser {
 public:
  PatternParser(std::string_view text, std::string_view rewrite) : text_(text), rewrite_(rewrite) {}

  Pattern parse() {
    Pattern pattern;
    while (peek() != '\0') {
      pattern.lines.push_back(line());
      const std::vector<std::string>& results = pattern.lines.back().results;
      for (size_t i = 0; i < results.size(); ++i)
        if (!pattern.definitions.emplace(results[i], std::pair(pattern.lines.size() - 1, i)).second)
          fail("%" + results[i] + " is defined twice");
    }
    if (pattern.lines.empty()) fail("the pattern is empty");
    return pattern;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InternalError(fmt::format("rewrite {}: {} before '{}'", rewrite_, what, text_.substr(at_, 24)));
  }

  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("'{}' expected", c));
  }
  std::string word() {
    peek();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    if (at_ == start) fail("a name is missing");
    return std::string(text_.substr(start, at_ - start));
  }
  std::string_view number_text() {
    peek();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  std::string_view("+-.").find(text_[at_]) != std::string_view::npos))
      ++at_;
    return text_.substr(start, at_ - start);
  }

  Line line() {
    Line line;
    do {
      expect('%');
      line.results.push_back(word());
    } while (take(','));
    expect('=');
    const std::string name = word();
    line.op = find_op(name);
    if (line.op == nullptr) fail("unknown operator " + name);
    expect('(');
    while (!take(')')) {
      line.operands.push_back(operand());
      take(',');
    }
    if (take('{'))
      while (!take('}')) {
        attribute(line);
        take(',');
      }
    return line;
  }

  Operand operand() {
    Operand operand;
    if (take('%')) {
      operand.name = word();
      if (take(':')) {
        if (word() != "const") fail("only :const is known");
        operand.kind = Operand::Kind::constant;
      }
    } else if (take('_')) {
      operand.kind = Operand::Kind::missing;
    } else {
      const std::optional<double> number = parse_real(number_text());
      if (!number) fail("a number is expected");
      operand.kind = Operand::Kind::number;
      operand.number = *number;
    }
    return operand;
  }

  void attribute(Line& line) {
    const std::string name = word();
    const auto spec =
        std::find_if(line.op->attrs.begin(), line.op->attrs.end(), [&](const AttrSpec& s) { return s.name == name; });
    if (spec == line.op->attrs.end()) fail(fmt::format("{} has no attribute {}", line.op->name, name));
    expect('=');
    if (take('"')) {
      const size_t end = text_.find('"', at_);
      if (end == std::string_view::npos) fail("a text is not closed");
      line.attrs.set(name, std::string(text_.substr(at_, end - at_)));
      at_ = end + 1;
    } else if (take('[')) {
      std::vector<int64_t> list;
      while (!take(']')) {
        list.push_back(integer());
        take(',');
      }
      line.attrs.set(name, std::move(list));
    } else if (spec->kind == AttrKind::real) {
      line.attrs.set(name, parse_real(number_text()).value_or(0));
    } else {
      line.attrs.set(name, integer());
    }
  }

  int64_t integer() {
    const std::optional<int64_t> value = parse_integer(number_text());
    if (!value) fail("an integer is expected");
    return *value;
  }

  std::string_view text_, rewrite_;
  size_t at_ = 0;
};

bool same_attr(const AttrValue* found, const AttrValue& wanted) {
  if (found == nullptr) return false;
  if (const auto* number = std::get_if<double>(&wanted)) {
    const auto* real = std::get_if<double>(found);
    return real != nullptr && std::abs(*real - *number) <= 1e-4 * std::abs(*number);
  }
  return print_value(*found) == print_value(wanted);
}

/// One attempt: binds names from the root upwards with a given choice of operand orders.
class Matcher {
 public:
  Matcher(const Pattern& pattern, uint32_t swaps) : pattern_(pattern), swaps_(swaps) {}

  bool match_root(Node* node) {
    if (node->outputs.size() != pattern_.root().results.size()) return false;
    return match_node(node, pattern_.lines.size() - 1);
  }
  std::map<std::string, Value*, std::less<>>& values() { return values_; }
  const std::unordered_map<size_t, Node*>& nodes() const { return nodes_; }
  bool met_choice() const { return met_choice_; }

 private:
  bool match_node(Node* node, size_t index) {
    const Line& line = pattern_.lines[index];
    if (node == nullptr || node->op != line.op || node->inputs.size() > line.operands.size()) return false;
    for (const auto& [name, wanted] : line.attrs)
      if (!same_attr(node->attrs.find(name), wanted)) return false;
    nodes_[index] = node;
    for (size_t i = 0; i < line.results.size() && i < node->outputs.size(); ++i)
      if (!bind(line.results[i], node->outputs[i])) return false;
    const bool commutative = line.op->traits.commutative && line.operands.size() == 2;
    met_choice_ |= commutative;
    const bool swap = commutative && ((swaps_ >> choice(index)) & 1) != 0;
    for (size_t i = 0; i < line.operands.size(); ++i)
      if (!match_operand(node->input(swap ? 1 - i : i), line.operands[i])) return false;
    return true;
  }

  size_t choice(size_t index) const {
    size_t count = 0;
    for (size_t i = 0; i < index; ++i) count += pattern_.lines[i].op->traits.commutative ? 1 : 0;
    return count;
  }

  bool match_operand(Value* value, const Operand& operand) {
    if (operand.kind == Operand::Kind::missing) return value == nullptr;
    if (value == nullptr) return false;
    if (operand.kind == Operand::Kind::number) return is_splat(value, operand.number);
    if (operand.kind == Operand::Kind::constant && !value->is_constant()) return false;
    const auto definition = pattern_.definitions.find(operand.name);
    if (definition == pattern_.definitions.end()) return bind(operand.name, value);
    const auto [line, result] = definition->second;
    if (value->producer == nullptr || value->index != result) return false;
    if (const auto known = nodes_.find(line); known != nodes_.end()) return known->second == value->producer;
    return match_node(value->producer, line);
  }

  bool bind(const std::string& name, Value* value) {
    const auto [at, inserted] = values_.emplace(name, value);
    return inserted || at->second == value;
  }

  const Pattern& pattern_;
  uint32_t swaps_;
  bool met_choice_ = false;
  std::map<std::string, Value*, std::less<>> values_;
  std::unordered_map<size_t, Node*> nodes_;
};

bool inner_values_are_private(const Graph& graph, const std::unordered_map<size_t, Node*>& nodes, const Node* root) {
  std::unordered_set<const Node*> matched;
  for (const auto& [line, node] : nodes) matched.insert(node);
  for (const Node* node : matched) {
    if (node == root) continue;
    for (const Value* output : node->outputs) {
      if (graph.is_output(output)) return false;
      for (const Use& use : output->uses)
        if (!matched.contains(use.node)) return false;
    }
  }
  return true;
}

/// A rewrite with its texts parsed.
struct CompiledRewrite {
  const Rewrite* rewrite;
  Pattern match;
  std::optional<Pattern> replace;
  uint32_t orders;  // number of operand orders to try

  explicit CompiledRewrite(const Rewrite& r) : rewrite(&r), match(PatternParser(r.match, r.name).parse()) {
    if (!r.replace.empty()) replace = PatternParser(r.replace, r.name).parse();
    orders = 1;
    for (const Line& line : match.lines)
      if (line.op->traits.commutative) orders *= 2;
  }

  std::optional<Match> find(Graph& graph, Node* root) const {
    if (root->op != match.root().op) return std::nullopt;
    for (uint32_t swaps = 0; swaps < orders; ++swaps) {
      Matcher matcher(match, swaps);
      if (matcher.match_root(root) && matcher.nodes().size() == match.lines.size() &&
          inner_values_are_private(graph, matcher.nodes(), root)) {
        std::vector<Node*> nodes;
        for (size_t i = 0; i < match.lines.size(); ++i) nodes.push_back(matcher.nodes().at(i));
        Match found(graph, root, std::move(matcher.values()), std::move(nodes));
        if (rewrite->when == nullptr || rewrite->when(found)) return found;
      }
      if (!matcher.met_choice()) break;
    }
    return std::nullopt;
  }

  void perform(const Match& found) const {
    if (rewrite->build != nullptr) {
      rewrite->build(found);
      return;
    }
    std::map<std::string, Value*, std::less<>> made;
    Node* last = nullptr;
    for (const Line& line : replace->lines) {
      std::vector<Value*> inputs;
      for (const Operand& operand : line.operands) inputs.push_back(value_of(found, made, operand));
      last = found.add(*line.op, std::move(inputs), line.attrs);
      for (size_t i = 0; i < line.results.size(); ++i) made[line.results[i]] = last->outputs[i];
    }
    found.replace(last->output());
  }

  static Value* value_of(const Match& found, const std::map<std::string, Value*, std::less<>>& made,
                         const Operand& operand) {
    if (operand.kind == Operand::Kind::missing) return nullptr;
    if (operand.kind == Operand::Kind::number)
      return scalar(found.graph(), found.root()->output()->type.dtype, operand.number);
    const auto at = made.find(operand.name);
    return at != made.end() ? at->second : found[operand.name];
  }
};

/// Removes the matched nodes that nothing reads any more, users first.
void erase_unused(Graph& graph, std::vector<Node*> nodes) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Node*& node : nodes) {
      if (node == nullptr || node->op == nullptr) continue;
      const bool unused = std::all_of(node->outputs.begin(), node->outputs.end(),
                                      [&](const Value* v) { return v->uses.empty() && !graph.is_output(v); });
      if (!unused) continue;
      graph.erase(node);
      node = nullptr;
      changed = true;
    }
  }
}

std::string describe(const Node* node) { return node->name.empty() ? std::string(node->op_name()) : node->name; }

}  // namespace

Value* Match::operator[](std::string_view name) const {
  const auto at = values_.find(name);
  HONE_ASSERT(at != values_.end(), "the pattern has no value %{}", name);
  return at->second;
}

Node* Match::add(const OpDef& op, std::vector<Value*> inputs, Attrs attrs) const {
  return insert_for(graph_, root_, op, std::move(inputs), std::move(attrs),
                    std::vector<const Node*>(nodes_.begin(), nodes_.end()));
}

void Match::replace(Value* value) const {
  const Value* result = root_->output();
  HONE_ASSERT(value->type.dtype == result->type.dtype && value->type.shape.rank() == result->type.shape.rank(),
              "a rewrite of {} changes its type from {} to {}", root_->name, result->type.text(), value->type.text());
  graph_.replace(root_->output(), value);
}

size_t apply(Graph& graph, std::span<const Rewrite> rewrites, const PassContext& context) {
  if (rewrites.empty()) return 0;
  std::vector<CompiledRewrite> compiled;
  for (const Rewrite& rewrite : rewrites) compiled.emplace_back(rewrite);
  size_t count = 0;
  for (Node* node : graph.nodes()) {
    for (const CompiledRewrite& candidate : compiled) {
      if (node->op == nullptr) break;
      const std::optional<Match> found = candidate.find(graph, node);
      if (!found) continue;
      const std::vector<Node*>& parts = found->nodes();
      if (parts.size() > 1) context.report_fusion(describe(parts.front()), describe(parts.back()));
      candidate.perform(*found);
      erase_unused(graph, parts);
      ++count;
    }
  }
  return count;
}

void check_rewrite(const Rewrite& rewrite) {
  const CompiledRewrite compiled(rewrite);
  HONE_ASSERT((rewrite.replace.empty()) == (rewrite.build != nullptr),
              "rewrite {} needs either a replacement or a build function", rewrite.name);
  std::unordered_set<std::string> used;
  for (const Line& line : compiled.match.lines)
    for (const Operand& operand : line.operands) used.insert(operand.name);
  for (size_t i = 0; i + 1 < compiled.match.lines.size(); ++i) {
    const std::vector<std::string>& results = compiled.match.lines[i].results;
    HONE_ASSERT(std::any_of(results.begin(), results.end(), [&](const std::string& r) { return used.contains(r); }),
                "rewrite {}: line %{} leads nowhere", rewrite.name, results.front());
  }
  if (!compiled.replace) return;
  std::unordered_set<std::string> known = used;
  for (const Line& line : compiled.replace->lines) {
    for (const Operand& operand : line.operands)
      HONE_ASSERT(operand.name.empty() || known.contains(operand.name), "rewrite {}: %{} is not defined", rewrite.name,
                  operand.name);
    known.insert(line.results.begin(), line.results.end());
  }
  HONE_ASSERT(compiled.replace->root().results.front() == compiled.match.root().results.front(),
              "rewrite {} does not define %{}", rewrite.name, compiled.match.root().results.front());
}

}  // namespace hone
