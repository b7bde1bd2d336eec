// SPDX-License-Identifier: Apache-2.0
//
// `hone surgeon diff`: how two models differ; and `hone surgeon`, which lists what there is.
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "edit/changes/compare.h"
#include "tools/commands/commands.h"
#include "tools/commands/group.h"
#include "tools/surgeon/model_line.h"

namespace hone {
namespace {

const CompanionCommand& command() {
  static const CompanionCommand kCommand{
      "surgeon diff",
      "OLD.onnx NEW.onnx",
      "Tells which nodes were added, removed and changed, and what else differs; exit status 1 where something does.",
      with_load_flags({}),
      2,
      2};
  return kCommand;
}

ExitStatus diff(const Arguments& arguments) {
  const Narrator narrator(arguments);
  const edit::Model before = load_model(arguments, arguments.files()[0]),
                    after = load_model(arguments, arguments.files()[1]);
  const edit::ModelDifference found = edit::compare(before, after);
  for (const std::string& node : found.removed) narrator.info("- {}", node);
  for (const std::string& node : found.added) narrator.info("+ {}", node);
  for (const auto& [node, how] : found.changed) narrator.info("~ {}: {}", node, how);
  for (const std::string& other : found.others) narrator.info("~ {}", other);
  narrator.info("{} node(s) added, {} removed, {} changed; {} other difference(s)", found.added.size(),
                found.removed.size(), found.changed.size(), found.others.size());
  nlohmann::ordered_json json{
      {"same", found.empty()}, {"added", found.added}, {"removed", found.removed}, {"others", found.others}};
  for (const auto& [node, how] : found.changed) json["changed"].push_back({{"node", node}, {"how", how}});
  write_json_result(arguments, json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  return found.empty() ? ExitStatus::passed : ExitStatus::failed;
}

const CompanionCommand& surgeon_command() {
  static const CompanionCommand kCommand{"surgeon",
                                         "COMMAND",
                                         "Edits ONNX models without losing anything that is not edited: extract, "
                                         "sanitize, insert, remove, replace, rename, set-attr, set-weight, "
                                         "set-dynamic, prune, weight-strip, weight-reconstruct, copy, diff.",
                                         {},
                                         0,
                                         1000};
  return kCommand;
}

}  // namespace

const FriendlyCommand& describe_surgeon_diff() {
  static const FriendlyCommand kFriendly = friendly_of(command());
  return kFriendly;
}
int run_surgeon_diff(Words words) { return run_companion(command(), words, diff); }

const FriendlyCommand& describe_surgeon() {
  static const FriendlyCommand kFriendly = friendly_of(surgeon_command());
  return kFriendly;
}
int run_surgeon(Words words) { return run_group(surgeon_command(), words); }

}  // namespace hone
