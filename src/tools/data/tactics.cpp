// SPDX-License-Identifier: Apache-2.0
//
// `hone inspect tactics`: which tactic each layer of an engine has. `hone inspect diff-tactics`: the tactics that engines which fail have
// and engines which pass do not.
#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "tools/commands/commands.h"
#include "tools/companion/narrator.h"
#include "tools/compare/tactics.h"
#include "tools/compare/values.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

const CompanionCommand& tactics_command() {
  static const CompanionCommand kCommand{
      "inspect tactics", "REPLAY.json", "Shows the tactics in a file of --save-tactics, layer by layer.", {}};
  return kCommand;
}

ExitStatus tactics(const Arguments& arguments) {
  const Narrator narrator(arguments);
  const TacticReplay replay = read_replay(arguments.file());
  Json json = Json::object();
  std::vector<std::string> lines;
  for (const auto& [layer, tactic] : replay) {
    lines.push_back(fmt::format("Layer: {}\n    Algorithm: {}", layer, tactic.text()));
    json[layer] = {{"implementation", tactic.implementation},
                   {"tactic", tactic.tactic},
                   {"inputs", tactic.inputs},
                   {"outputs", tactic.outputs}};
  }
  narrator.info("{}", join(lines, "\n"));
  write_json_result(arguments, json.dump(2, ' ', false, Json::error_handler_t::replace));
  return ExitStatus::passed;
}

const CompanionCommand& diff_command() {
  static const CompanionCommand kCommand{
      "inspect diff-tactics",
      "",
      "Names the tactics that occur in bad engines' replays and in no good one's: those that may be faulty.",
      {{"--dir", Takes::one, "<folder>",
        "holds the folders good and bad, as hone debug build leaves them (polygraphy_artifacts)"},
       {"--good", Takes::one, "<folder|file>", "replays of engines that pass"},
       {"--bad", Takes::one, "<folder|file>", "replays of engines that fail"}},
      0,
      0};
  return kCommand;
}

using LayerTactics = std::map<std::string, std::vector<LayerTactic>>;

LayerTactics load(const std::string& path, std::string_view kind, const Narrator& narrator) {
  need_file(path);
  std::vector<std::string> files;
  if (!fs::is_directory(path)) files.push_back(path);
  else
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path().string());
  std::ranges::sort(files);
  LayerTactics tactics;
  size_t loaded = 0;
  for (const std::string& file : files) {
    TacticReplay replay;
    try {
      replay = read_replay(file);
    } catch (const Error& error) {
      if (!fs::is_directory(path)) throw;
      narrator.verbose("{} is no tactic replay and is left out", file);
      continue;
    }
    ++loaded;
    for (const auto& [layer, tactic] : replay)
      if (std::ranges::find(tactics[layer], tactic) == tactics[layer].end()) tactics[layer].push_back(tactic);
  }
  narrator.info("Loaded {} {} tactic replays.", loaded, kind);
  return tactics;
}

ExitStatus diff(const Arguments& arguments) {
  const Narrator narrator(arguments);
  if (!arguments.has("--dir") && !(arguments.has("--good") && arguments.has("--bad")))
    throw UsageError("neither --dir nor --good and --bad are given", "--dir polygraphy_artifacts");
  const fs::path folder = arguments.value("--dir");
  const LayerTactics good = load(arguments.value("--good", (folder / "good").string()), "good", narrator);
  LayerTactics bad = load(arguments.value("--bad", (folder / "bad").string()), "bad", narrator);
  Json json = Json::object();
  std::vector<std::string> lines;
  for (auto& [layer, list] : bad) {
    if (const auto known = good.find(layer); known != good.end())
      std::erase_if(list, [&known = known](const LayerTactic& each) {
        return std::ranges::find(known->second, each) != known->second.end();
      });
    std::vector<std::string> texts;
    for (const LayerTactic& each : list) texts.push_back(each.text());
    if (texts.empty()) continue;
    lines.push_back(fmt::format("Layer: {}\n    Algorithms: {}", layer, names_text(texts)));
    json[layer] = texts;
  }
  if (lines.empty()) narrator.info("Could not determine potentially bad tactics: more replays may help");
  else narrator.info("Found potentially bad tactics:\n{}", join(lines, "\n"));
  write_json_result(arguments, json.dump(2, ' ', false, Json::error_handler_t::replace));
  return ExitStatus::passed;
}

const CompanionCommand& debug_command() {
  static const CompanionCommand kCommand = [] {
    CompanionCommand made = diff_command();
    made.name = "debug diff-tactics";
    return made;
  }();
  return kCommand;
}

}  // namespace

const FriendlyCommand& describe_inspect_tactics() { return friendly<tactics_command>(); }
int run_inspect_tactics(Words words) { return run_companion(tactics_command(), words, tactics); }
const FriendlyCommand& describe_inspect_diff_tactics() { return friendly<diff_command>(); }
int run_inspect_diff_tactics(Words words) { return run_companion(diff_command(), words, diff); }
const FriendlyCommand& describe_debug_diff_tactics() { return friendly<debug_command>(); }
int run_debug_diff_tactics(Words words) { return run_companion(debug_command(), words, diff); }

}  // namespace hone
