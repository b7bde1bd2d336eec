// SPDX-License-Identifier: Apache-2.0
#include "tools/surgeon/plugins.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "edit/changes/change.h"
#include "edit/changes/pattern.h"
#include "edit/file.h"
#include "tools/common/python.h"
#include "tools/files/yaml.h"
#include "tools/surgeon/model_line.h"
#include "tools/surgeon/python_patterns.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

/// What comes from outside, in the order of the text.
void collect_inputs(const edit::Pattern& pattern, const std::string& tensor, std::set<std::string>& seen,
                    std::vector<std::string>& names) {
  if (!seen.insert(tensor).second) return;
  const std::optional<size_t> node = pattern.producer(tensor);
  if (!node) return names.push_back(tensor);
  for (const auto& operand : pattern.nodes[*node].operands) collect_inputs(pattern, operand.tensor, seen, names);
}

std::vector<Plugin> plugins_of(const Arguments& arguments) {
  if (!arguments.has("--plugin-dir"))
    throw UsageError("--plugin-dir is missing", "the folder that holds a folder for each operator");
  if (arguments.has("--include") && arguments.has("--exclude"))
    throw UsageError("--include and --exclude exclude each other");
  const std::string folder = arguments.value("--plugin-dir");
  need_file(folder);
  if (!fs::is_directory(folder)) throw StatusError(ExitStatus::no_file, fmt::format("{} is no folder", folder));
  const std::vector<std::string> include = arguments.values("--include"), exclude = arguments.values("--exclude");
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_directory()) folders.push_back(entry.path());
  std::ranges::sort(folders);
  std::vector<Plugin> plugins;
  for (const fs::path& each : folders) {
    const std::string name = each.filename().string();
    if (!include.empty() && std::ranges::find(include, name) == include.end()) continue;
    if (std::ranges::find(exclude, name) != exclude.end()) continue;
    if (fs::exists(each / "pattern.json")) plugins.push_back(read_plugin((each / "pattern.json").string()));
    else if (fs::exists(each / "pattern.py"))
      plugins.push_back({.folder = name, .script = (each / "pattern.py").string()});
  }
  if (plugins.empty())
    throw UsageError(fmt::format("{} holds no pattern", folder),
                     "it needs a folder for each operator, with pattern.json or pattern.py");
  return plugins;
}

Json instances_of(const Plugin& plugin, const edit::Graph& graph) {
  Json instances = Json::array();
  for (const edit::Match& match : edit::find_matches(graph, plugin.pattern)) {
    Json inputs = Json::array(), outputs = Json::array();
    for (const std::string& name : plugin.inputs) inputs.push_back(match.tensors.at(name));
    for (const std::string& name : plugin.pattern.results) outputs.push_back(match.tensors.at(name));
    instances.push_back({{"inputs", inputs}, {"outputs", outputs}, {"attributes", plugin.attributes}});
  }
  return instances;
}

/// Of a script's answer or of a configuration. The name leads to a folder of scripts: to none elsewhere.
void check_plugin(const Json& plugin) {
  text_member(plugin, "op");
  if (plugin.contains("domain")) text_member(plugin, "domain");
  if (plugin.contains("name") && fs::path(text_member(plugin, "name")).filename() != text_member(plugin, "name"))
    throw Error("'name' is no folder's name");
  for (const Json& instance : list_member(plugin, "instances")) {
    for (const char* side : {"inputs", "outputs"})
      for (const Json& name : list_member(instance, side))
        if (!name.is_string()) throw Error(fmt::format("'{}' holds what is no name", side));
    if (instance.contains("attributes") && !instance["attributes"].is_object() && !instance["attributes"].is_null())
      throw Error("'attributes' is no object");
  }
}

Json match_of(const Plugin& plugin, const edit::Graph& graph, const std::string& model) {
  if (plugin.script.empty()) {
    Json known{{"name", plugin.name}, {"op", plugin.op}};
    if (!plugin.domain.empty()) known["domain"] = plugin.domain;
    known["instances"] = instances_of(plugin, graph);
    return known;
  }
  Json found = python_matches(plugin.script, model);
  try {
    text_member(found, "name");
    check_plugin(found);
  } catch (const Error& error) {
    throw StatusError(ExitStatus::no_file,
                      fmt::format("{} answers what is no match: {}", plugin.script, error.message()));
  }
  return found;
}

edit::AttributeValue attribute_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array() && !value.empty() && value[0].is_string()) return value.get<std::vector<std::string>>();
  return edit::parse_attribute_value(value.dump());
}

size_t insert_nodes(edit::Model& model, const Json& plugin, const std::string& name) {
  size_t count = 0;
  for (const Json& instance : list_member(plugin, "instances")) {
    edit::NewNode node{text_member(plugin, "op"),
                       fmt::format("{}_{}", name, count),
                       plugin.value("domain", std::string()),
                       {},
                       {},
                       {}};
    for (const Json& input : list_member(instance, "inputs")) node.inputs.push_back(input.get<std::string>());
    for (const Json& output : list_member(instance, "outputs")) node.outputs.push_back(output.get<std::string>());
    if (instance.contains("attributes") && instance["attributes"].is_object())
      for (const auto& [key, value] : instance["attributes"].items())
        node.attributes.emplace_back(key, attribute_of(value));
    edit::insert_node(model, node);
    ++count;
  }
  return count;
}

/// By the plugin's own script, where it has one that replaces.
std::optional<size_t> replace_by_script(edit::Model& model, const Json& plugin, const fs::path& script) {
  if (!fs::exists(script)) return std::nullopt;
  const ScratchFolder scratch;
  const std::string before = scratch.file("before.onnx"), after = scratch.file("after.onnx");
  edit::save(model, before, {});
  const std::optional<size_t> count = python_replaces(script.string(), before, plugin, after);
  if (count) model = edit::open_model(after);
  return count;
}

}  // namespace

std::vector<CompanionFlag> with_plugin_choice(std::vector<CompanionFlag> own) {
  const std::vector<CompanionFlag> choice{
      {"--plugin-dir", Takes::one, "<folder>", "holds a folder with pattern.json or pattern.py for each operator"},
      {"--include", Takes::some, "<name...>", "these operators alone"},
      {"--exclude", Takes::some, "<name...>", "all but these"}};
  own.insert(own.begin(), choice.begin(), choice.end());
  return own;
}

Plugin read_plugin(const std::string& file) {
  try {
    const Json json = parse_json(read_file(file), file);
    Plugin plugin{fs::path(file).parent_path().filename().string(),
                  text_member(json, "name"),
                  text_member(json, "op"),
                  edit::parse_pattern(text_member(json, "pattern")),
                  {},
                  {},
                  {}};
    std::set<std::string> seen;
    for (const std::string& result : plugin.pattern.results)
      collect_inputs(plugin.pattern, result, seen, plugin.inputs);
    if (json.contains("inputs")) {
      const std::vector<std::string> known = std::move(plugin.inputs);
      plugin.inputs.clear();
      for (const Json& name : list_member(json, "inputs")) {
        plugin.inputs.push_back(name.get<std::string>());
        if (std::ranges::find(known, plugin.inputs.back()) == known.end())
          throw Error(fmt::format("the pattern has no ${}", plugin.inputs.back()));
      }
    }
    if (json.contains("domain")) plugin.domain = text_member(json, "domain");
    plugin.attributes = json.value("attributes", Json::object());
    if (!plugin.attributes.is_object()) throw Error("'attributes' is no object");
    return plugin;
  } catch (const std::exception& error) {
    throw StatusError(ExitStatus::no_file, fmt::format("{} is no pattern: {}", file, error.what()),
                      R"TEXT(for example {"name": "swish", "op": "Swish", "pattern": "Mul($x, Sigmoid($x))"})TEXT");
  }
}

Json plugin_matches(const Arguments& arguments, const Narrator& narrator) {
  const edit::Model model = load_model(arguments, arguments.file());
  Json found = Json::array(), counts = Json::object();
  for (const Plugin& plugin : plugins_of(arguments)) {
    narrator.info("checking {} in model", plugin.folder);
    Json match = match_of(plugin, model.graph, arguments.file());
    const size_t count = match["instances"].size();
    counts[plugin.folder] = count;
    if (count > 0) found.push_back(std::move(match));
  }
  std::string text;
  for (const auto& [name, count] : counts.items())
    text += fmt::format("{}'{}': {}", text.empty() ? "" : ", ", name, count.get<size_t>());
  narrator.info("the following plugins matched:");
  narrator.info("{{{}}}", text);
  write_json_result(arguments,
                    Json{{"counts", counts}, {"plugins", found}}.dump(2, ' ', false, Json::error_handler_t::replace));
  return found;
}

std::vector<Json> read_plugin_config(const std::string& path) {
  need_file(path);
  std::vector<Json> plugins;
  try {
    plugins = parse_yaml(read_file(path));
    for (const Json& plugin : plugins) check_plugin(plugin);
  } catch (const std::exception& error) {
    throw StatusError(ExitStatus::no_file, fmt::format("{} does not say where operators go: {}", path, error.what()),
                      "hone plugin match and Polygraphy's plugin match write such a file");
  }
  return plugins;
}

void put_plugin(edit::Model& model, const Json& plugin, const std::string& folder, const Narrator& narrator) {
  const std::string name = plugin.value("name", text_member(plugin, "op"));
  std::optional<size_t> count;
  if (!folder.empty()) count = replace_by_script(model, plugin, fs::path(folder) / name / "pattern.py");
  if (!count) count = insert_nodes(model, plugin, name);
  narrator.info("replaced {} instances of {} plugin", *count, name);
  if (const size_t wanted = list_member(plugin, "instances").size(); *count != wanted)
    narrator.warning("not all {} instances of {} were replaced", wanted, name);
}

}  // namespace hone
