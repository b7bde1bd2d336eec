// SPDX-License-Identifier: Apache-2.0
#include "tools/quantize/node_filter.h"

#include <algorithm>
#include <optional>
#include <regex>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "ir/op.h"

namespace hone {
namespace {

using Types = std::set<std::string, std::less<>>;

std::optional<std::regex> pattern_of(const FriendlyLine& line, std::string_view flag, const ImportedModel& model,
                                     const Logger& log) {
  if (!line.has(flag)) return std::nullopt;
  const std::string text = line.value(flag);
  try {
    std::regex pattern(text);
    const auto fits = [&](const OnnxNode& node) { return std::regex_match(node.name, pattern); };
    if (std::ranges::none_of(model.nodes, fits))
      log.warning("{} {}: no node's whole name fits; .*{}.* would take it as a part", flag, text, text);
    return pattern;
  } catch (const std::regex_error&) {
    throw Error(fmt::format("{} takes a regular expression, not '{}'", flag, text),
                "for example --exclude-nodes '/head/.*'");
  }
}

/// Separated by commas or spaces.
Types operators_of(const FriendlyLine& line, std::string_view flag, const ImportedModel& model) {
  std::string text = line.value(flag);
  std::ranges::replace(text, ' ', ',');
  Types types;
  for (const std::string_view type : split(text, ','))
    if (!trim(type).empty()) types.emplace(trim(type));
  std::set<std::string_view> known;
  for (const OnnxNode& node : model.nodes) known.insert(node.operator_type);
  const std::vector<std::string_view> names(known.begin(), known.end());
  for (const std::string& type : types)
    if (!known.contains(type))
      throw Error(fmt::format("{}: the model has no node of type {}", flag, type),
                  fmt::format("did you mean {}? It has {}", nearest(type, names), join(names, ", ")));
  return types;
}

}  // namespace

KeepsFloats kept_nodes(const FriendlyLine& line, const ImportedModel& model, const Logger& log) {
  const auto only = pattern_of(line, "--include-nodes", model, log),
             never = pattern_of(line, "--exclude-nodes", model, log);
  const Types only_types = operators_of(line, "--include-ops", model),
              never_types = operators_of(line, "--exclude-ops", model);
  return [=](std::span<const std::string> names, std::string_view op_type) {
    const auto fits = [&](const std::regex& pattern) {
      return std::ranges::any_of(names, [&](const std::string& name) { return std::regex_match(name, pattern); });
    };
    if ((never && fits(*never)) || never_types.contains(op_type)) return true;
    return (only && !fits(*only)) || (!only_types.empty() && !only_types.contains(op_type));
  };
}

bool keeps_floats(const KeepsFloats& keeps, const Node& node) { return keeps(node.origin, node.op_name()); }

}  // namespace hone
