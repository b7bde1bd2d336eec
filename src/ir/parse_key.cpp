// SPDX-License-Identifier: Apache-2.0
//
// A key is rewritten in the text form of graphs, which has a parser.
#include "ir/key.h"

#include "base/text.h"

namespace hone {
namespace {

class KeyReader {
 public:
  explicit KeyReader(std::string_view key) : key_(key) {}

  std::string graph_text() {
    const std::string inputs = read_inputs();
    while (take("; ")) node();
    if (!take(" ->")) fail("'; ' and a node, or ' ->' and the results");
    std::vector<std::string> results;
    while (take(" ")) results.push_back(operand());
    if (at_ < key_.size()) fail("the end");
    return fmt::format("({}) {{\n{}return {}\n}}", inputs, statements_, join(results, ", "));
  }

 private:
  [[noreturn]] void fail(std::string_view wanted) const {
    throw Error(
        fmt::format("no problem's key: {} is expected at column {}", wanted, at_ + 1),
        "a key looks like (%0:f32[1,64] ); %1 = Softmax(%0, ){axis=1} -> %1; `hone cache list --keys FILE` shows "
        "those of a timing cache");
  }
  std::string_view rest() const { return key_.substr(at_); }
  bool take(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  std::string until(char end, std::string_view what) {
    const size_t found = key_.find(end, at_);
    if (found == std::string_view::npos) fail(what);
    std::string text(key_.substr(at_, found - at_));
    at_ = found + 1;
    return text;
  }
  /// From an opening bracket to its partner, quoted text passed over.
  std::string bracketed(char open, char close) {
    const size_t begin = at_;
    int depth = 0;
    for (bool quoted = false; at_ < key_.size(); ++at_) {
      const char c = key_[at_];
      if (c == '"' && key_[at_ - 1] != '\\') quoted = !quoted;
      if (quoted) continue;
      depth += c == open ? 1 : c == close ? -1 : 0;
      if (depth == 0) return std::string(key_.substr(begin, ++at_ - begin));
    }
    fail(fmt::format("'{}'", close));
  }
  std::string value() {
    if (!take("%")) fail("a value such as %0");
    const size_t begin = at_;
    while (at_ < key_.size() && key_[at_] >= '0' && key_[at_] <= '9') ++at_;
    return "%" + std::string(key_.substr(begin, at_ - begin));
  }

  std::string read_inputs() {
    if (!take("(")) fail("'('");
    std::vector<std::string> inputs;
    while (!take(")")) {
      std::string name = value();
      if (!take(":")) fail("':' and a type");
      inputs.push_back(fmt::format("{}: {}", name, until(' ', "a blank after the type")));
    }
    return join(inputs, ", ");
  }

  /// A constant becomes a statement of its own.
  std::string operand() {
    if (take("_")) return "_";
    if (!take("const ")) return value();
    const size_t type = at_;
    while (at_ < key_.size() && std::isalnum(static_cast<unsigned char>(key_[at_])) != 0) ++at_;
    if (rest().starts_with("[")) bracketed('[', ']');
    const std::string text(key_.substr(type, at_ - type));
    std::string name = fmt::format("%c{}", constants_++);
    const std::string data =
        rest().starts_with("{") ? bracketed('{', '}') : fmt::format("!{}{}", constants_, of_codes_ ? "*0.01" : "");
    statements_ += fmt::format("{} = constant {}{}\n", name, text, data);
    return name;
  }

  void node() {
    std::vector<std::string> results, operands;
    while (!take("= ")) {
      results.push_back(value());
      if (!take(" ")) fail("a blank");
    }
    const std::string name = until('(', "'(' after the operator");
    while (!take(")")) {
      operands.push_back(operand());
      if (!take(", ")) fail("', ' after an operand");
    }
    const std::string attrs = rest().starts_with("{") ? " " + bracketed('{', '}') : "";
    if (rest().starts_with(" {")) fail("a node without bodies");
    statements_ += fmt::format("{} = {}({}){}\n", join(results, ", "), name, join(operands, ", "), attrs);
  }

  std::string_view key_;
  size_t at_ = 0;
  int constants_ = 0;
  const bool of_codes_ = key_.find("= Decode(") != std::string_view::npos;  // its weights are codes, too
  std::string statements_;
};

}  // namespace

Graph parse_key(std::string_view key, const OpLookup& lookup) {
  return parse_graph(KeyReader(key).graph_text(), lookup);
}

}  // namespace hone
