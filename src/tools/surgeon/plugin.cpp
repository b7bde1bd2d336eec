// SPDX-License-Identifier: Apache-2.0
//
// `hone plugin list`, `match` and `replace`: where nodes of a program's own operators could take the place of parts of a model.
#include <filesystem>

#include "base/file.h"
#include "tools/commands/commands.h"
#include "tools/commands/group.h"
#include "tools/files/yaml.h"
#include "tools/surgeon/model_line.h"
#include "tools/surgeon/plugins.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

const CompanionCommand& list_command() {
  static const CompanionCommand kCommand{"plugin list", "MODEL.onnx",
                                         "Counts where operators of a folder of patterns would fit into a model.",
                                         with_load_flags(with_plugin_choice({}))};
  return kCommand;
}
const CompanionCommand& match_command() {
  static const CompanionCommand kCommand{
      "plugin match", "MODEL.onnx",
      "Writes where operators of a folder of patterns would fit, for hone plugin replace; lines can be taken out by "
      "hand before.",
      with_load_flags(
          with_plugin_choice({{"--output", Takes::one, "<file>", "default: config.yaml beside the model", "-o"}}))};
  return kCommand;
}
const CompanionCommand& replace_command() {
  static const CompanionCommand kCommand{
      "plugin replace", "MODEL.onnx", "Puts the operators where a file of hone plugin match says.",
      with_model_flags({{"--config", Takes::one, "<file>", "default: config.yaml beside the model"},
                        {"--plugin-dir", Takes::one, "<folder>", "where a pattern.py replaces in a way of its own"}})};
  return kCommand;
}
const CompanionCommand& plugin_command() {
  static const CompanionCommand kCommand{
      "plugin", "COMMAND", "Puts operators of one's own into models: list, match, replace, autotune.", {}, 0, 1000};
  return kCommand;
}

std::string config_path(const Arguments& arguments, std::string_view flag) {
  return arguments.value(flag, (fs::path(arguments.file()).parent_path() / "config.yaml").string());
}

ExitStatus list(const Arguments& arguments) {
  const Narrator narrator(arguments);
  plugin_matches(arguments, narrator);
  return ExitStatus::passed;
}

ExitStatus match(const Arguments& arguments) {
  const Narrator narrator(arguments);
  const std::vector<Json> plugins = plugin_matches(arguments, narrator);
  const std::string path = config_path(arguments, "--output");
  write_file(path, yaml_text(plugins));
  narrator.info("Matching subgraphs saved to {}", path);
  return ExitStatus::passed;
}

ExitStatus replace(const Arguments& arguments) {
  return edit_model(arguments, [&](edit::Model& model, const Narrator& narrator) {
    for (const Json& plugin : read_plugin_config(config_path(arguments, "--config")))
      put_plugin(model, plugin, arguments.value("--plugin-dir"), narrator);
  });
}

}  // namespace

const FriendlyCommand& describe_plugin_list() { return friendly<list_command>(); }
int run_plugin_list(Words words) { return run_companion(list_command(), words, list); }
const FriendlyCommand& describe_plugin_match() { return friendly<match_command>(); }
int run_plugin_match(Words words) { return run_companion(match_command(), words, match); }
const FriendlyCommand& describe_plugin_replace() { return friendly<replace_command>(); }
int run_plugin_replace(Words words) { return run_companion(replace_command(), words, replace); }
const FriendlyCommand& describe_plugin() { return friendly<plugin_command>(); }
int run_plugin(Words words) { return run_group(plugin_command(), words); }

}  // namespace hone
