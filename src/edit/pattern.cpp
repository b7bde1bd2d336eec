// SPDX-License-Identifier: Apache-2.0
#include "edit/pattern.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "edit/clean.h"

namespace hone::edit {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Pattern whole() {
    Pattern pattern = expression();
    blanks();
    if (at_ != text_.size()) refuse("nothing more is expected");
    if (pattern.op_type.empty()) refuse("a pattern is a node: Op($x)");
    return pattern;
  }

 private:
  Pattern expression() {
    blanks();
    Pattern pattern;
    if (at_ < text_.size() && (text_[at_] == '$' || text_[at_] == '#')) {
      pattern.weight = text_[at_++] == '#';
      pattern.tensor = word();
      return pattern;
    }
    pattern.op_type = word();
    if (text_.substr(at_).starts_with("::")) {
      at_ += 2;
      pattern.domain = std::exchange(pattern.op_type, word());
    }
    blanks();
    if (take('[')) attributes(pattern);
    blanks();
    if (!take('(')) refuse("an operator's operands are expected: (");
    blanks();
    while (!take(')')) {
      pattern.operands.push_back(expression());
      blanks();
      if (!take(',') && !(at_ < text_.size() && text_[at_] == ')')) refuse("a comma or ) is expected");
      blanks();
    }
    return pattern;
  }
  void attributes(Pattern& pattern) {
    while (!take(']')) {
      const std::string name = word();
      if (!take('=')) refuse("= and a value are expected");
      const size_t start = at_;
      for (int depth = 0; at_ < text_.size(); ++at_) {
        if (text_[at_] == '[') ++depth;
        if ((text_[at_] == ']' || text_[at_] == ',') && depth == 0) break;
        if (text_[at_] == ']') --depth;
      }
      pattern.attributes.emplace_back(name, text_.substr(start, at_ - start));
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
};

bool swaps(const Pattern& pattern) {
  constexpr std::string_view kCommutative[] = {"Add", "Mul", "Min", "Max", "And", "Or", "Xor", "Equal"};
  return pattern.operands.size() == 2 && std::ranges::find(kCommutative, pattern.op_type) != std::end(kCommutative);
}

class Matcher {
 public:
  Matcher(const Graph& graph, const Index& index) : graph_(graph), index_(index) {}

  bool node(const Pattern& pattern, size_t at, Match& match) const {
    const Node& node = graph_.nodes[at];
    if (node.op_type != pattern.op_type || node.domain != pattern.domain) return false;
    for (const auto& [name, text] : pattern.attributes) {
      const Attribute* attribute = node.attribute(name);
      if (attribute == nullptr || (attribute_text(*attribute) != text && attribute_text(*attribute) != spaced(text)))
        return false;
    }
    match.nodes.push_back(at);
    Match straight = match;
    if (operands(pattern, node, {}, straight)) {
      match = std::move(straight);
      return true;
    }
    return swaps(pattern) && operands(pattern, node, {1, 0}, match);
  }

 private:
  static std::string spaced(const std::string& text) {
    std::string out;
    for (const char c : text) out += c == ',' ? std::string(", ") : std::string(1, c);
    return out;
  }
  bool operands(const Pattern& pattern, const Node& node, const std::vector<size_t>& order, Match& match) const {
    size_t given = node.inputs.size();
    while (given > pattern.operands.size() && node.inputs[given - 1].empty()) --given;
    if (given != pattern.operands.size()) return false;
    for (size_t i = 0; i < given; ++i)
      if (!operand(pattern.operands[i], node.inputs[order.empty() ? i : order[i]], match)) return false;
    return true;
  }
  bool operand(const Pattern& pattern, const std::string& tensor, Match& match) const {
    if (tensor.empty()) return false;
    if (pattern.op_type.empty()) {
      if (pattern.weight && !index_.weight.contains(tensor)) return false;
      return match.tensors.emplace(pattern.tensor, tensor).first->second == tensor;
    }
    const auto producer = index_.producer.find(tensor);
    if (producer == index_.producer.end() || index_.outputs.contains(tensor)) return false;
    if (index_.consumers.at(tensor).size() != 1 || graph_.nodes[producer->second].outputs.size() != 1) return false;
    return node(pattern, producer->second, match);
  }

  const Graph& graph_;
  const Index& index_;
};

/// The tensor that the pattern computes.
std::string build(Model& model, const Pattern& pattern, const Match& match, const std::string& result,
                  std::unordered_set<std::string>& taken, std::vector<Node>& made) {
  if (pattern.op_type.empty()) {
    const auto at = match.tensors.find(pattern.tensor);
    if (at == match.tensors.end())
      throw Error(fmt::format("${} is in the replacement but not in the pattern", pattern.tensor),
                  "name what the pattern finds");
    return at->second;
  }
  Node node;
  node.op_type = pattern.op_type;
  node.domain = pattern.domain;
  for (const Pattern& operand : pattern.operands) node.inputs.push_back(build(model, operand, match, "", taken, made));
  node.outputs = {result.empty() ? fresh_name(taken, fmt::format("{}_out", pattern.op_type)) : result};
  node.name = node.outputs[0] + "_" + pattern.op_type;
  for (const auto& [name, text] : pattern.attributes)
    node.attributes.push_back(make_attribute(model, name, parse_attribute_value(text)));
  made.push_back(node);
  return node.outputs[0];
}

}  // namespace

Pattern parse_pattern(std::string_view text) { return Parser(text).whole(); }

std::vector<Match> find_matches(const Graph& graph, const Pattern& pattern) {
  const Index index(graph);
  const Matcher matcher(graph, index);
  std::vector<Match> found;
  std::vector<bool> used(graph.nodes.size(), false);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Match match;
    if (graph.nodes[i].outputs.size() != 1 || !matcher.node(pattern, i, match)) continue;
    if (std::ranges::any_of(match.nodes, [&](size_t at) { return used[at]; })) continue;
    for (const size_t at : match.nodes) used[at] = true;
    found.push_back(std::move(match));
  }
  return found;
}

size_t replace_matches(Model& model, const Pattern& pattern, const Pattern& by) {
  Graph& graph = model.graph;
  const std::vector<Match> matches = find_matches(graph, pattern);
  std::unordered_set<std::string> taken = tensor_names(graph);
  std::vector<bool> gone(graph.nodes.size(), false);
  std::map<size_t, std::vector<Node>> instead;
  for (const Match& match : matches) {
    build(model, by, match, graph.nodes[match.nodes[0]].outputs[0], taken, instead[match.nodes[0]]);
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
