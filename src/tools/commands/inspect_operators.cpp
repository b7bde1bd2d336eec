// SPDX-License-Identifier: Apache-2.0
//
// `hone inspect operators`: the ONNX operators that models may use, by domain, with the versions of the operator set they are
// read in.
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "onnx/rules.h"
#include "tools/commands/commands.h"
#include "tools/common/terminal.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;
using Range = std::pair<int, int>;  // both ends included

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      "inspect operators",
      "",
      "Lists the ONNX operators that models may use, with the versions of the operator set.",
      {},
      false};
  return kCommand;
}

/// Neighbouring ranges become one.
std::vector<Range> joined(std::vector<Range> ranges) {
  std::ranges::sort(ranges);
  std::vector<Range> result;
  for (const Range& range : ranges) {
    if (!result.empty() && range.first <= result.back().second + 1)
      result.back().second = std::max(result.back().second, range.second);
    else result.push_back(range);
  }
  return result;
}

std::string range_text(const Range& range) {
  if (range.second >= kEveryLater) return fmt::format("{}+", range.first);
  return range.first == range.second ? std::to_string(range.first) : fmt::format("{}-{}", range.first, range.second);
}

Json list_operators() {
  std::map<std::pair<std::string, std::string>, std::vector<Range>> found;
  for (const onnx::RuleMatch& match : onnx::all_rules()) {
    const std::string_view domain = onnx::canonical_domain(match.rule->domain);
    found[{std::string(domain.empty() ? "ai.onnx" : domain), std::string(match.rule->op_type)}].emplace_back(
        match.rule->since, match.rule->until);
  }
  Json rows = Json::array();
  for (const auto& [key, ranges] : found) {
    std::vector<std::string> texts;
    for (const Range& range : joined(ranges)) texts.push_back(range_text(range));
    rows.push_back({{"domain", key.first}, {"operator", key.second}, {"opsets", join(texts, ", ")}});
  }
  return rows;
}

}  // namespace

const FriendlyCommand& describe_inspect_operators() { return command(); }

int run_inspect_operators(Words words) {
  const bool json = words.size() == 1 && words[0] == "--json";
  if (!words.empty() && !json) {
    const bool asked = words[0] == "--help" || words[0] == "-h";
    fmt::print(asked ? stdout : stderr, "{}", friendly_help(command()));
    return asked ? 0 : 1;
  }
  const Json rows = list_operators();
  if (json) {
    fmt::print("{}\n", rows.dump(2));
    return 0;
  }
  const Page page;
  std::string domain;
  for (const Json& row : rows) {
    if (row["domain"] != domain) page.title(domain = row["domain"]);
    page.pair(row["operator"].get<std::string>(), fmt::format("opset {}", row["opsets"].get<std::string>()));
  }
  return 0;
}

}  // namespace hone
