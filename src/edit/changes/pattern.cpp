// SPDX-License-Identifier: Apache-2.0
#include "edit/changes/pattern.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "edit/changes/clean.h"

namespace hone::edit {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Pattern whole() {
    do {
      statement();
      blanks();
    } while (take(';'));
    if (at_ != text_.size()) refuse("nothing more is expected");
    for (const std::string& result : pattern_.results)
      if (!pattern_.producer(result)) refuse("a pattern is a node: Op($x)");
    if (pattern_.results.empty()) refuse("a result is expected: a node, or a name, without =");
    return std::move(pattern_);
  }

 private:
  /// "$a, $b = Op(...)" names tensors, "Op(...)" and "$a" are results.
  void statement() {
    const size_t start = at_;
    std::vector<std::string> names;
    for (blanks(); at_ < text_.size() && text_[at_] == '$'; blanks()) {
      ++at_;
      names.push_back(word());
      blanks();
      if (!take(',')) break;
    }
    blanks();
    if (!names.empty() && take('=')) {
      blanks();
      if (at_ < text_.size() && (text_[at_] == '$' || text_[at_] == '#')) refuse("a node is expected: Op($x)");
      for (const std::string& name : names)
        if (pattern_.producer(name)) refuse("the tensor has been made already");
      const std::string made = expression().tensor;
      pattern_.nodes[*pattern_.producer(made)].results = names;
      return;
    }
    at_ = start;
    pattern_.results.push_back(expression().tensor);
  }
  /// The tensor that it stands for; of a node the one that it makes.
  PatternNode::Operand expression() {
    blanks();
    if (at_ < text_.size() && (text_[at_] == '$' || text_[at_] == '#')) {
      const bool weight = text_[at_++] == '#';
      return {word(), weight};
    }
    PatternNode node;
    node.op_type = word();
    if (text_.substr(at_).starts_with("::")) {
      at_ += 2;
      node.domain = std::exchange(node.op_type, word());
    }
    blanks();
    if (take('[')) attributes(node);
    blanks();
    if (!take('(')) refuse("an operator's operands are expected: (");
    blanks();
    while (!take(')')) {
      node.operands.push_back(expression());
      blanks();
      if (!take(',') && !(at_ < text_.size() && text_[at_] == ')')) refuse("a comma or ) is expected");
      blanks();
    }
    node.results = {fmt::format("={}", pattern_.nodes.size())};
    pattern_.nodes.push_back(std::move(node));
    return {pattern_.nodes.back().results[0], false};
  }
  void attributes(PatternNode& node) {
    while (!take(']')) {
      const std::string name = word();
      if (!take('=')) refuse("= and a value are expected");
      const size_t start = at_;
      for (int depth = 0; at_ < text_.size(); ++at_) {
        if (text_[at_] == '[') ++depth;
        if ((text_[at_] == ']' || text_[at_] == ',') && depth == 0) break;
        if (text_[at_] == ']') --depth;
      }
      node.attributes.emplace_back(name, text_.substr(start, at_ - start));
      take(',');
      if (at_ == text_.size()) refuse("] is expected");
    }
  }
  std::string word() {
    blanks();
    const size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    if (start == at_) refuse("a name is expected");
    return std::string(text_.substr(start, at_ - start));
  }
  void blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char sign) {
    if (at_ == text_.size() || text_[at_] != sign) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void refuse(std::string_view why) const {
    throw Error(fmt::format("the pattern '{}' cannot be read at '{}': {}", text_, text_.substr(at_), why),
                "write it like Max(Min($x, $hi), $lo)");
  }

  std::string_view text_;
  size_t at_ = 0;
  Pattern pattern_;
};

bool swaps(const PatternNode& node) {
  constexpr std::string_view kCommutative[] = {"Add", "Mul", "Min", "Max", "And", "Or", "Xor", "Equal"};
  return node.operands.size() == 2 && std::ranges::find(kCommutative, node.op_type) != std::end(kCommutative);
}

/// Where the operands that are there end: trailing ones may be left out.
size_t given(const std::vector<std::string>& names) {
  size_t count = names.size();
  while (count > 0 && names[count - 1].empty()) --count;
  return count;
}

class Matcher {
 public:
  Matcher(const Graph& graph, const Index& index, const Pattern& pattern)
      : graph_(graph), index_(index), pattern_(pattern) {}

  /// The match whose first result the node makes.
  std::optional<Match> at(size_t node) const {
    State found;
    const size_t first = *pattern_.producer(pattern_.results[0]);
    if (!solve({}, {{first, node}}, found)) return std::nullopt;
    Match match;
    match.nodes.push_back(node);
    for (const auto& [part, at] : found.nodes)
      if (part != first) match.nodes.push_back(at);
    match.tensors = std::move(found.tensors);
    return match;
  }

 private:
  struct State {
    std::map<std::string, std::string> tensors;
    std::map<size_t, size_t> nodes;  // the graph's, by the pattern's
  };
  using Waiting =
      std::vector<std::pair<size_t, size_t>>;  // a node of the pattern, and which one of the graph it shall be

  bool solve(State state, Waiting waiting, State& found) const {
    if (waiting.empty()) return next(std::move(state), found);
    const auto [part, at] = waiting.back();
    waiting.pop_back();
    if (const auto known = state.nodes.find(part); known != state.nodes.end())
      return known->second == at && solve(std::move(state), std::move(waiting), found);
    if (std::ranges::any_of(state.nodes, [&at = at](const auto& each) { return each.second == at; })) return false;
    const PatternNode& wanted = pattern_.nodes[part];
    const Node& node = graph_.nodes[at];
    if (!fits(wanted, node)) return false;
    state.nodes.emplace(part, at);
    for (const bool swapped : {false, true}) {
      if (swapped && !swaps(wanted)) continue;
      State tried = state;
      Waiting more = waiting;
      if (bind(wanted, node, swapped, tried, more) && solve(std::move(tried), std::move(more), found)) return true;
    }
    return false;
  }
  static bool fits(const PatternNode& wanted, const Node& node) {
    if (node.op_type != wanted.op_type || node.domain != wanted.domain ||
        given(node.outputs) != wanted.results.size() || given(node.inputs) != wanted.operands.size())
      return false;
    return std::ranges::all_of(wanted.attributes, [&](const auto& asked) {
      const Attribute* attribute = node.attribute(asked.first);
      return attribute != nullptr &&
             (attribute_text(*attribute) == asked.second || attribute_text(*attribute) == spaced(asked.second));
    });
  }
  static std::string spaced(const std::string& text) {
    std::string out;
    for (const char c : text) out += c == ',' ? std::string(", ") : std::string(1, c);
    return out;
  }
  /// Gives names of the pattern to the node's tensors; producers of what the pattern makes are to be looked at.
  bool bind(const PatternNode& wanted, const Node& node, bool swapped, State& state, Waiting& waiting) const {
    const auto same = [&](const std::string& name, const std::string& tensor) {
      return !tensor.empty() && state.tensors.emplace(name, tensor).first->second == tensor;
    };
    for (size_t i = 0; i < wanted.results.size(); ++i)
      if (!same(wanted.results[i], node.outputs[i])) return false;
    for (size_t i = 0; i < wanted.operands.size(); ++i) {
      const PatternNode::Operand& operand = wanted.operands[i];
      const std::string& tensor = node.inputs[swapped ? wanted.operands.size() - 1 - i : i];
      if (!same(operand.tensor, tensor) || (operand.weight && !index_.weight.contains(tensor))) return false;
      const std::optional<size_t> part = pattern_.producer(operand.tensor);
      if (!part) continue;
      const auto producer = index_.producer.find(tensor);
      if (producer == index_.producer.end()) return false;
      waiting.emplace_back(*part, producer->second);
    }
    return true;
  }
  /// A part of the pattern that no node stands for yet reads something that is known: each reader of it is tried.
  bool next(State state, State& found) const {
    if (state.nodes.size() == pattern_.nodes.size()) {
      if (!is_closed(state)) return false;
      found = std::move(state);
      return true;
    }
    for (size_t part = 0; part < pattern_.nodes.size(); ++part) {
      if (state.nodes.contains(part)) continue;
      for (const PatternNode::Operand& operand : pattern_.nodes[part].operands) {
        const auto known = state.tensors.find(operand.tensor);
        if (known == state.tensors.end()) continue;
        const auto readers = index_.consumers.find(known->second);
        if (readers == index_.consumers.end()) return false;
        return std::ranges::any_of(readers->second, [&](size_t reader) {
          return solve(state, {{part, reader}}, found);
        });
      }
    }
    return false;
  }
  bool is_closed(const State& state) const {
    const auto inside = [&](size_t reader) {
      return std::ranges::any_of(state.nodes, [&](const auto& each) { return each.second == reader; });
    };
    for (const PatternNode& node : pattern_.nodes)
      for (const std::string& result : node.results) {
        if (std::ranges::find(pattern_.results, result) != pattern_.results.end()) continue;
        const std::string& tensor = state.tensors.at(result);
        const auto readers = index_.consumers.find(tensor);
        if (index_.outputs.contains(tensor) ||
            (readers != index_.consumers.end() && !std::ranges::all_of(readers->second, inside)))
          return false;
      }
    return true;
  }

  const Graph& graph_;
  const Index& index_;
  const Pattern& pattern_;
};

/// The nodes that compute what the pattern says; results have the names of what was found.
std::vector<Node> build(Model& model, const Pattern& by, const Pattern& pattern, const Match& match,
                        std::unordered_set<std::string>& taken) {
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < by.results.size(); ++i)
    names.insert_or_assign(by.results[i], match.tensors.at(pattern.results[i]));
  std::vector<Node> made;
  for (const PatternNode& part : by.nodes) {
    Node& node = made.emplace_back();
    node.op_type = part.op_type;
    node.domain = part.domain;
    for (const PatternNode::Operand& operand : part.operands) {
      if (const auto own = names.find(operand.tensor); own != names.end()) {
        node.inputs.push_back(own->second);
        continue;
      }
      const auto at = match.tensors.find(operand.tensor);
      if (at == match.tensors.end() || operand.tensor.starts_with('='))
        throw Error(fmt::format("${} is in the replacement but not in the pattern", operand.tensor),
                    "name what the pattern finds");
      node.inputs.push_back(at->second);
    }
    for (const std::string& result : part.results) {
      if (!names.contains(result)) names.emplace(result, fresh_name(taken, fmt::format("{}_out", part.op_type)));
      node.outputs.push_back(names.at(result));
    }
    node.name = node.outputs[0] + "_" + part.op_type;
    for (const auto& [name, text] : part.attributes)
      node.attributes.push_back(make_attribute(model, name, parse_attribute_value(text)));
  }
  return made;
}

}  // namespace

std::optional<size_t> Pattern::producer(const std::string& tensor) const {
  for (size_t i = 0; i < nodes.size(); ++i)
    if (std::ranges::find(nodes[i].results, tensor) != nodes[i].results.end()) return i;
  return std::nullopt;
}

Pattern parse_pattern(std::string_view text) { return Parser(text).whole(); }

std::vector<Match> find_matches(const Graph& graph, const Pattern& pattern) {
  const Index index(graph);
  const Matcher matcher(graph, index, pattern);
  std::vector<Match> found;
  std::vector<bool> used(graph.nodes.size(), false);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    std::optional<Match> match = matcher.at(i);
    if (!match || std::ranges::any_of(match->nodes, [&](size_t at) { return used[at]; })) continue;
    for (const size_t at : match->nodes) used[at] = true;
    found.push_back(std::move(*match));
  }
  return found;
}

size_t replace_matches(Model& model, const Pattern& pattern, const Pattern& by) {
  if (pattern.results.size() != by.results.size())
    throw Error(
        fmt::format("the pattern has {} result(s), the replacement {}", pattern.results.size(), by.results.size()),
        "results are the parts between ; that name nothing with =");
  Graph& graph = model.graph;
  const std::vector<Match> matches = find_matches(graph, pattern);
  std::unordered_set<std::string> taken = tensor_names(graph);
  std::vector<bool> gone(graph.nodes.size(), false);
  std::map<size_t, std::vector<Node>> instead;
  for (const Match& match : matches) {
    instead[match.nodes[0]] = build(model, by, pattern, match, taken);
    for (const size_t at : match.nodes) gone[at] = true;
  }
  std::vector<Node> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!gone[i]) nodes.push_back(std::move(graph.nodes[i]));
    if (const auto at = instead.find(i); at != instead.end()) std::ranges::move(at->second, std::back_inserter(nodes));
  }
  graph.nodes = std::move(nodes);
  sort_nodes(model);
  clean(model);
  return matches.size();
}

}  // namespace hone::edit
