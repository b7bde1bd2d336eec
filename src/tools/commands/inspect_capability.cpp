// SPDX-License-Identifier: Apache-2.0
//
// `hone inspect capability`: for each node of a model which sources have a kernel for it, and why those that have none refuse.
// Asks the sources as a build does and times nothing.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "backends/all.h"
#include "base/text.h"
#include "builder/build.h"
#include "builder/events/log_lines.h"
#include "tools/commands/commands.h"
#include "tools/common/friendly.h"
#include "tools/common/model_shapes.h"
#include "tools/common/terminal.h"
#include "tools/companion/exit_status.h"
#include "tools/model/handles.h"
#include "tools/model/read.h"
#include "tools/surgeon/partitions.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      "inspect capability",
      "MODEL.onnx",
      "Shows which sources have kernels for which nodes of a model. Times nothing.",
      {{"--shapes", "<shapes>", "--optShapes", "sizes of dynamic inputs, name:1x3x224x224[,...] (default: 1 each)"},
       {"--backend", "<own-cpu,own-cuda>", "", "for which devices (default: that of --device)"},
       {"--with-partitioning", "", "", "write the parts that can and that cannot be run as files"},
       {"-o", "<folder>", "", "where those go (default: polygraphy_capability_dumps)"},
       {"--verbose", "", "", "every node, in the model's order"}}};
  return kCommand;
}

/// What the sources said about one node of the model. A node may be part of several layers.
struct NodeReport {
  std::string name, type;
  std::set<std::string> layers, sources;
  std::vector<std::string> reasons;  // where only the reference is left
  bool computed = false, reference_only = false;

  /// Folded: evaluated or merged while building. View: its result is its operand's memory.
  std::string_view state() const {
    if (layers.empty()) return "folded";
    if (!computed) return "view";
    return reference_only ? "reference" : "tuned";
  }
};

std::vector<std::string> reasons_of(const LayerOffers& layer) {
  if (layer.host_only && layer.refusals.empty())
    return {"no other source is asked: its elements are objects, or its shape is data-dependent"};
  std::vector<std::string> reasons;
  for (const Candidates::Refusal& refusal : layer.refusals)
    reasons.push_back(fmt::format("{}: {}", refusal.tactic, refusal.reason));
  if (reasons.empty()) reasons.emplace_back("no other source has kernels of this kind");
  return reasons;
}

void add_layer(const LayerOffers& layer, NodeReport& node) {
  node.layers.insert(layer.name);
  if (layer.is_view) return;
  node.computed = true;
  node.sources.insert(layer.sources.begin(), layer.sources.end());
  if (layer.sources != std::vector<std::string>{"reference"}) return;
  node.reference_only = true;
  for (std::string& reason : reasons_of(layer))
    if (std::find(node.reasons.begin(), node.reasons.end(), reason) == node.reasons.end())
      node.reasons.push_back(std::move(reason));
}

std::vector<NodeReport> examine(const ImportedModel& model, std::span<const LayerOffers> layers) {
  std::vector<NodeReport> nodes;
  std::map<std::string, size_t> by_name;
  for (const OnnxNode& node : model.nodes) {
    if (node.in_body || node.operator_type == "Constant") continue;
    by_name[node.name] = nodes.size();
    nodes.push_back({.name = node.name, .type = node.operator_type, .layers = {}, .sources = {}, .reasons = {}});
  }
  for (const LayerOffers& layer : layers)
    for (const std::string& name : layer.origin)
      if (const auto at = by_name.find(name); at != by_name.end()) add_layer(layer, nodes[at->second]);
  return nodes;
}

struct Counts {
  size_t nodes = 0;
  std::map<std::string_view, size_t> states;
  std::map<std::string, size_t> sources;

  void add(const NodeReport& node) {
    ++nodes;
    ++states[node.state()];
    if (node.computed)
      for (const std::string& source : node.sources) ++sources[source];
  }
  Json json() const {
    Json result{{"nodes", nodes}};
    for (const std::string_view state : {"tuned", "reference", "view", "folded"})
      result[std::string(state)] = states.contains(state) ? states.at(state) : 0;
    result["sources"] = Json::object();
    for (const auto& [source, count] : sources) result["sources"][source] = count;
    return result;
  }
};

/// Operators with nodes left to the reference first, then by how many nodes there are.
std::vector<std::pair<std::string, Counts>> by_operator(std::span<const NodeReport> nodes) {
  std::map<std::string, Counts> counts;
  for (const NodeReport& node : nodes) counts[node.type].add(node);
  std::vector<std::pair<std::string, Counts>> rows(counts.begin(), counts.end());
  const auto left = [](const Counts& c) { return c.states.contains("reference") ? c.states.at("reference") : 0; };
  std::ranges::stable_sort(rows, [&](const auto& a, const auto& b) {
    return std::pair(left(a.second), a.second.nodes) > std::pair(left(b.second), b.second.nodes);
  });
  return rows;
}

Json report_json(const FriendlyLine& line, const Device& device, std::span<const NodeReport> nodes) {
  Json json{{"model", line.file}, {"device", device.info().name}};
  Counts all;
  for (const NodeReport& node : nodes) all.add(node);
  json["summary"] = all.json();
  json["operators"] = Json::object();
  for (const auto& [type, counts] : by_operator(nodes)) json["operators"][type] = counts.json();
  json["nodes"] = Json::array();
  for (const NodeReport& node : nodes)
    json["nodes"].push_back({{"name", node.name},
                             {"operator", node.type},
                             {"state", node.state()},
                             {"sources", node.sources},
                             {"reasons", node.reasons},
                             {"layers", node.layers}});
  return json;
}

void print_summary(const Json& summary, const Page& page) {
  const auto count = [&](const char* name) { return summary[name].get<size_t>(); };
  page.line(
      fmt::format("{} nodes: {} with kernels to choose from, {} by the reference alone, {} need nothing at run time "
                  "({} evaluated or merged, {} only another shape)",
                  count("nodes"), count("tuned"), count("reference"), count("folded") + count("view"), count("folded"),
                  count("view")));
}

void print_operators(const Json& report, const Page& page, bool all) {
  constexpr size_t kShown = 24;
  std::vector<std::string> sources;
  for (const auto& [source, count] : report["summary"]["sources"].items())
    if (source != "reference") sources.push_back(source);
  std::string head = fmt::format("  {:<34} {:>6}", "operator", "nodes");
  for (const std::string& source : sources) head += fmt::format(" {:>8}", source);
  page.title(head + fmt::format(" {:>15} {:>8}", "reference alone", "nothing"));
  const Json& operators = report["operators"];
  size_t shown = 0;
  for (const auto& [type, counts] : operators.items()) {
    if (++shown > kShown && !all) break;
    std::string row = fmt::format("  {:<34} {:>6}", type, counts["nodes"].get<size_t>());
    const auto cell = [](size_t number) { return number == 0 ? std::string("-") : std::to_string(number); };
    for (const std::string& source : sources)
      row += fmt::format(" {:>8}", cell(counts["sources"].value(source, size_t{0})));
    row += fmt::format(" {:>15} {:>8}", cell(counts["reference"].get<size_t>()),
                       cell(counts["folded"].get<size_t>() + counts["view"].get<size_t>()));
    page.line(row);
  }
  if (!all && operators.size() > kShown)
    page.line(fmt::format("  and {} more operators: --verbose", operators.size() - kShown));
}

/// Nodes that share operator and reasons are one entry.
void print_reasons(std::span<const NodeReport> nodes, const Page& page, bool all) {
  std::map<std::pair<std::string, std::vector<std::string>>, std::vector<std::string>> groups;
  for (const NodeReport& node : nodes)
    if (node.reference_only) groups[{node.type, node.reasons}].push_back(node.name);
  if (groups.empty()) return;
  page.title("by the reference alone, because");
  constexpr size_t kShown = 6, kReasons = 3, kNames = 2;
  size_t shown = 0;
  for (const auto& [key, names] : groups) {
    if (++shown > kShown && !all) break;
    const size_t listed = all ? names.size() : std::min(names.size(), kNames);
    std::string text = join(std::span(names).first(listed), ", ");
    if (listed < names.size()) text += fmt::format(" and {} more", names.size() - listed);
    page.line(fmt::format("  {}: {}", key.first, text));
    for (size_t i = 0; i < (all ? key.second.size() : std::min(key.second.size(), kReasons)); ++i)
      page.line("      " + key.second[i]);
  }
  if (!all && groups.size() > kShown) page.line(fmt::format("  and {} more: --verbose", groups.size() - kShown));
}

void print_nodes(std::span<const NodeReport> nodes, const Page& page) {
  page.title(fmt::format("  {:<9} {:<24} {:<20} {}", "state", "operator", "sources", "node"));
  for (const NodeReport& node : nodes)
    page.line(fmt::format("  {:<9} {:<24} {:<20} {}", node.state(), node.type,
                          node.computed ? join(node.sources, ",") : "", node.name));
}

OpenDevice device_named(const std::string& name) {
  try {
    return open_device(name);
  } catch (const Error& error) {
    throw StatusError(ExitStatus::no_backend, fmt::format("there is no device {}: {}", name, error.message()),
                      error.hint());
  }
}

int capability(const FriendlyLine& line) {
  if (line.options.tool.onnx.empty())
    throw Error(
        fmt::format("{} is no ONNX model by its name", line.file),
        "hone inspect capability takes a file that ends in .onnx; hone inspect PLAN --layers shows what a plan uses");
  PartitionRequest parts{.writes_parts = line.has("--with-partitioning"), .json = line.json};
  if (line.has("-o")) parts.folder = line.value("-o");
  if (const std::optional<int> told = tell_refused(line.options.tool.onnx, parts)) return *told;
  const Logger log = quiet_logger();
  ImportedModel model = read_model(line.options.tool.onnx, log);
  OpenDevice device = device_named(line.options.tool.device);
  BuildOptions options = line.options.build;
  options.profiles = model_profiles(tensors_of(model.graph), options.profiles, line.options.tool.shape_arguments, log);
  LogLines lines(log);
  const std::vector<LayerOffers> layers =
      survey(std::move(model.graph), options, *device.backend, *device.device, {&lines});
  const std::vector<NodeReport> nodes = examine(model, layers);
  const Json report = report_json(line, *device.device, nodes);
  if (line.json) {
    fmt::print("{}\n", report.dump(2, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  const bool all = line.has("--verbose");
  const Page page;
  page.title(fmt::format("{} on {}", line.file, device.device->info().name));
  print_summary(report["summary"], page);
  print_operators(report, page, all);
  print_reasons(nodes, page, all);
  if (all) print_nodes(nodes, page);
  return 0;
}

}  // namespace

const FriendlyCommand& describe_inspect_capability() { return command(); }

/// The words without flags of Polygraphy's that say nothing here.
std::vector<std::string> own_words(Words words) {
  constexpr std::string_view kAlone[] = {"-v",
                                         "-vv",
                                         "-vvv",
                                         "-q",
                                         "--quiet",
                                         "--silent",
                                         "--shape-inference",
                                         "--do-shape-inference",
                                         "--no-onnxruntime-shape-inference",
                                         "--ignore-external-data",
                                         "--fp-to-fp16",
                                         "--no-save-all-tensors-to-one-file"};
  constexpr std::string_view kWithValue[] = {
      "--verbosity",          "--log-file",           "--log-format",         "--external-data-dir",           "--ext",
      "--load-external-data", "--external-data-path", "--save-external-data", "--external-data-size-threshold"};
  std::vector<std::string> own;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    const bool joined = name.size() < words[i].size();
    if (std::ranges::find(kAlone, name) != std::end(kAlone)) continue;
    if (std::ranges::find(kWithValue, name) != std::end(kWithValue)) {
      if (!joined) ++i;
    } else if (name == "--output") {
      own.push_back("-o" + words[i].substr(name.size()));
    } else {
      own.push_back(words[i] == "-h" ? "--help" : words[i]);
    }
  }
  return own;
}

/// A report for each of --backend's devices.
int run_inspect_capability(Words given) {
  const std::vector<std::string> words = own_words(given);
  std::vector<std::string> rest, devices;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool joined = words[i].starts_with("--backend=");
    if (!joined && (words[i] != "--backend" || i + 1 == words.size())) {
      rest.push_back(words[i]);
      continue;
    }
    const std::string list = joined ? words[i].substr(10) : words[++i];
    for (const std::string_view name : split(list, ',')) devices.emplace_back(name);
  }
  if (devices.empty()) return run_friendly(command(), rest, {}, capability);
  int status = 0;
  for (const std::string& name : devices) {
    const std::string device = name == "own-cpu" ? "cpu" : name == "own-cuda" ? "cuda:0" : name;
    if (!device.starts_with("cpu") && !device.starts_with("cuda")) {
      fmt::print(stderr, "hone inspect capability: there is no backend {}\n  hint: own-cpu and own-cuda\n", name);
      return static_cast<int>(ExitStatus::no_backend);
    }
    std::vector<std::string> with_device = rest;
    with_device.push_back("--device=" + device);
    status = std::max(status, run_friendly(command(), with_device, {}, capability));
  }
  return status;
}

}  // namespace hone
