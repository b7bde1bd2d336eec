// SPDX-License-Identifier: Apache-2.0
//
// `hone check lint`: what is wrong with a model, node by node, from its types and shapes alone; and what in it does nothing.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "edit/changes/clean.h"
#include "edit/infer.h"
#include "edit/names.h"
#include "tools/commands/commands.h"
#include "tools/surgeon/model_line.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

const CompanionCommand& command() {
  static const CompanionCommand kCommand{
      "check lint", "MODEL.onnx",
      "Checks a model without running it: names, order, types and shapes of each node; tells what can be removed. "
      "Nodes that read what a faulty "
      "node makes are skipped. Exit status 1 where something is faulty.",
      with_load_flags({{"--output", Takes::one, "<file>", "write the report there as JSON", "-o"},
                       {"--input-shapes", Takes::some, "<input:shape...>",
                        "accepted; shapes are checked as far as they are declared"},
                       {"--iterations", Takes::one, "<n>", "accepted"},
                       {"--seed", Takes::one, "<n>", "accepted"},
                       {"--val-range", Takes::some, "<range...>", "accepted"}})};
  return kCommand;
}

class Report {
 public:
  void add(std::string_view level, std::string_view source, const std::string& message,
           const std::vector<std::string>& nodes = {}) {
    const bool bad = level == "exception";
    failed_ |= bad;
    entries_.push_back({{"level", level}, {"source", source}, {"message", message}, {"nodes", nodes}});
    if (bad) failing_.insert(nodes.begin(), nodes.end());
  }
  bool failed() const { return failed_; }
  const Json& entries() const { return entries_; }
  const std::set<std::string>& failing() const { return failing_; }
  Json json(const std::vector<std::string>& passing) const {
    return {{"summary", {{"passing", passing}, {"failing", failing_}}}, {"lint_entries", entries_}};
  }

 private:
  Json entries_ = Json::array();
  std::set<std::string> failing_;
  bool failed_ = false;
};

/// "f32[1,3]" as "[1,3]": the element type is left out where all operands share it.
std::string operands_text(const std::vector<std::string>& types) {
  std::set<std::string> elements;
  for (const std::string& type : types) elements.insert(type.substr(0, type.find('[')));
  std::vector<std::string> texts;
  for (const std::string& type : types)
    texts.push_back(elements.size() == 1 && type.find('[') != std::string::npos ? type.substr(type.find('[')) : type);
  return join(texts, " x ");
}

/// What ONNX asks of a model as a whole.
void check_structure(const edit::Model& model, Report& report) {
  const std::string_view source = "onnx_checker";
  if (model.graph.name.empty()) report.add("exception", source, "Field 'name' of 'graph' is required to be non-empty.");
  if (model.ir_version == 0) report.add("exception", source, "Field 'ir_version' of 'model' is required to be given.");
  if (model.opsets.empty())
    report.add("exception", source, "The model imports no operator set (opset_import is empty).");
  if (model.graph.outputs.empty()) report.add("exception", source, "The graph has no outputs.");
  std::set<std::string> names;
  for (size_t i = 0; i < model.graph.nodes.size(); ++i)
    if (const std::string& name = model.graph.nodes[i].name; !name.empty() && !names.insert(name).second)
      report.add("warning", source, fmt::format("Several nodes are called '{}'.", name), {name});
  std::set<std::string> made;
  for (const edit::Value& input : model.graph.inputs) made.insert(input.name);
  for (const edit::Weight& weight : model.graph.weights) made.insert(weight.name);
  bool sorted = true;
  std::set<std::string> everything = made;
  for (const edit::Node& node : model.graph.nodes) everything.insert(node.outputs.begin(), node.outputs.end());
  for (const edit::Node& node : model.graph.nodes) {
    for (const std::string& name : edit::reads_of(node)) sorted &= made.contains(name) || !everything.contains(name);
    made.insert(node.outputs.begin(), node.outputs.end());
  }
  if (!sorted)
    report.add(
        "exception", source,
        "Nodes are not sorted: some read results of nodes behind them. hone surgeon sanitize --toposort sorts them.");
  for (const edit::Value& output : model.graph.outputs)
    if (!everything.contains(output.name))
      report.add("exception", source,
                 fmt::format("The output '{}' is not made by any node, input or initialiser.", output.name));
}

/// What could be taken away without changing an output.
void check_use(const edit::Model& model, Report& report) {
  edit::Model cleaned = model;
  edit::clean(cleaned.graph);
  const edit::Index before(model.graph), after(cleaned.graph);
  const auto unused = [&](const std::string& name) {
    return !after.consumers.contains(name) && !after.outputs.contains(name);
  };
  for (const edit::Value& input : model.graph.inputs)
    if (!before.weight.contains(input.name) && unused(input.name))
      report.add("warning", "onnx_graphsurgeon",
                 fmt::format("Input: '{}' does not affect outputs, can be removed.", input.name));
  for (const edit::Weight& weight : model.graph.weights)
    if (unused(weight.name))
      report.add("warning", "onnx_graphsurgeon",
                 fmt::format("Initializer: '{}' does not affect outputs, can be removed.", weight.name));
  std::set<std::string> live;
  for (const edit::Node& node : cleaned.graph.nodes) live.insert(node.outputs.begin(), node.outputs.end());
  for (size_t i = 0; i < model.graph.nodes.size(); ++i) {
    const edit::Node& node = model.graph.nodes[i];
    const bool dead = std::ranges::none_of(
        node.outputs, [&](const std::string& name) { return !name.empty() && live.contains(name); });
    if (dead && !node.outputs.empty()) {
      const std::string name = edit::label_of(node, i);
      report.add("warning", "onnx_graphsurgeon",
                 fmt::format("Node: '{}' does not affect outputs, can be removed.", name), {name});
    }
  }
}

void add_problem(const onnx::Problem& problem, std::string_view source, Report& report) {
  if (problem.node.empty()) return report.add("exception", source, problem.message);
  std::string message = fmt::format("Node: {} | Op: {} | {}: {} | {}", problem.node, problem.op_type, problem.node,
                                    operands_text(problem.operands), problem.message);
  if (!problem.hint.empty()) message += fmt::format(" ({})", problem.hint);
  report.add("exception", source, message, {problem.node});
}

/// The names of nodes that were read without a problem.
std::vector<std::string> check_nodes(const edit::Model& model, bool missing_data_is_a_problem, Report& report) {
  std::vector<std::string> passing;
  try {
    const onnx::Survey found = edit::survey(model, edit::WeightData::small, missing_data_is_a_problem);
    for (const onnx::Problem& problem : found.problems) add_problem(problem, "hone", report);
    for (const onnx::Problem& problem : found.forbidden) add_problem(problem, "onnx_checker", report);
    const std::set<std::string> skipped(found.skipped.begin(), found.skipped.end());
    for (const std::string& node : skipped)
      report.add("info", "hone", fmt::format("Node: {} was not checked: it reads what a faulty node makes.", node),
                 {node});
    for (size_t i = 0; i < model.graph.nodes.size(); ++i)
      if (const std::string name = edit::label_of(model.graph.nodes[i], i);
          !report.failing().contains(name) && !skipped.contains(name))
        passing.push_back(name);
  } catch (const Error& error) {  // a cycle, two producers of one name
    report.add("exception", "hone", error.message());
  }
  return passing;
}

ExitStatus lint(const Arguments& arguments) {
  const Narrator narrator(arguments);
  narrator.info("RUNNING | Command: hone {} {}", arguments.command().name, join(arguments.words(), " "));
  const edit::Model model = load_model(arguments, arguments.file());
  Report report;
  check_structure(model, report);
  const std::vector<std::string> passing = check_nodes(model, !arguments.has("--ignore-external-data"), report);
  check_use(model, report);
  for (const Json& entry : report.entries()) {
    const std::string level = entry["level"];
    const std::string text = fmt::format("LINT | {}", entry["message"].get<std::string>());
    narrator.write(level == "exception" ? Narrator::Level::error
                   : level == "warning" ? Narrator::Level::warning
                                        : Narrator::Level::verbose,
                   text);
  }
  narrator.info("Summary: {} node(s) pass, {} fail", passing.size(), report.failing().size());
  const std::string json = report.json(passing).dump(2, ' ', false, Json::error_handler_t::replace);
  if (arguments.has("--output")) {
    write_file(arguments.value("--output"), json + "\n");
    narrator.info("Saving linting report to: {}", arguments.value("--output"));
  }
  write_json_result(arguments, json);
  if (report.failed())
    narrator.error("FAILED | Command: hone {} {}", arguments.command().name, join(arguments.words(), " "));
  else narrator.info("PASSED | Command: hone {} {}", arguments.command().name, join(arguments.words(), " "));
  return report.failed() ? ExitStatus::failed : ExitStatus::passed;
}

}  // namespace

const FriendlyCommand& describe_check_lint() {
  static const FriendlyCommand kFriendly = friendly_of(command());
  return kFriendly;
}
int run_check_lint(Words words) { return run_companion(command(), words, lint); }

}  // namespace hone
