// SPDX-License-Identifier: Apache-2.0
//
// The surgeon's commands about nodes: insert, remove, replace, set-attr.
#include <algorithm>

#include "base/text.h"
#include "edit/changes/change.h"
#include "edit/changes/pattern.h"
#include "edit/infer.h"
#include "edit/names.h"
#include "tools/commands/commands.h"
#include "tools/surgeon/model_line.h"

namespace hone {
namespace {

const CompanionCommand& insert_command() {
  static const CompanionCommand kCommand{
      "surgeon insert", "MODEL.onnx", "Puts one node between tensors; what lay between them goes.",
      with_model_flags({{"--inputs", Takes::some, "<tensor...>", "what the node reads"},
                        {"--outputs", Takes::some, "<tensor...>",
                         "what it makes; a tensor that it also reads is replaced for all other readers"},
                        {"--op", Takes::one, "<op>", "the node's operator"},
                        {"--name", Takes::one, "<name>", "the node's name"},
                        {"--domain", Takes::one, "<domain>", "the operator's domain"},
                        {"--attrs", Takes::some, "<name=value...>", "attributes: 1, 0.1, \"text\", [1,2]"},
                        {"--new-outputs", Takes::nothing, "", "the outputs are new tensors; nothing is replaced"}})};
  return kCommand;
}

std::pair<std::string, edit::AttributeValue> parse_assignment(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError(fmt::format("'{}' gives no attribute a value", text),
                     "write name=value, as axis=1 or pads=[1,1,1,1]");
  return {text.substr(0, equals), edit::parse_attribute_value(text.substr(equals + 1))};
}

ExitStatus insert(const Arguments& arguments) {
  if (!arguments.has("--op") || !arguments.has("--outputs"))
    throw UsageError("insert needs --op and --outputs", "--inputs a --outputs b --op Relu --name relu");
  return edit_model(arguments, [&](edit::Model& model, const Narrator&) {
    edit::NewNode node{arguments.value("--op"),      arguments.value("--name"),     arguments.value("--domain"),
                       arguments.values("--inputs"), arguments.values("--outputs"), {}};
    for (const std::string& text : arguments.values("--attrs")) node.attributes.push_back(parse_assignment(text));
    if (arguments.has("--new-outputs")) edit::add_node(model, node);
    else edit::insert_node(model, node);
    edit::infer_shapes(model, false);
  });
}

const CompanionCommand& remove_command() {
  static const CompanionCommand kCommand{
      "surgeon remove", "MODEL.onnx", "Takes nodes out: who read their results reads their inputs.",
      with_model_flags(
          {{"--node", Takes::some, "<name...>", "these nodes, by name or by a tensor that they make", "--nodes"},
           {"--op", Takes::some, "<op...>", "all nodes of these operators", "--ops"}})};
  return kCommand;
}

ExitStatus remove(const Arguments& arguments) {
  if (!arguments.has("--node") && !arguments.has("--op"))
    throw UsageError("nothing says which nodes to remove", "--node NAME or --op OP");
  return edit_model(arguments, [&](edit::Model& model, const Narrator&) {
    for (const std::string& name : arguments.values("--node"))
      edit::remove_node(model, edit::find_node(model.graph, name));
    for (const std::string& op : arguments.values("--op")) {
      const auto is_it = [&](const edit::Node& node) { return node.op_type == op; };
      if (std::ranges::none_of(model.graph.nodes, is_it)) {
        std::vector<std::string_view> known;
        for (const edit::Node& node : model.graph.nodes) known.push_back(node.op_type);
        throw edit::UnknownName(fmt::format("the model has no {} node", op),
                                fmt::format("did you mean {}?", nearest(op, known)));
      }
      for (auto at = std::ranges::find_if(model.graph.nodes, is_it); at != model.graph.nodes.end();
           at = std::ranges::find_if(model.graph.nodes, is_it))
        edit::remove_node(model, static_cast<size_t>(at - model.graph.nodes.begin()));
    }
    edit::infer_shapes(model, false);
  });
}

const CompanionCommand& replace_command() {
  static const CompanionCommand kCommand{
      "surgeon replace", "MODEL.onnx",
      "Replaces a subgraph wherever it is found. $name stands for any tensor, #name for a weight, Op[axis=1](...) for "
      "an attribute; what is "
      "computed inside must have no reader outside.",
      with_model_flags({{"--pattern", Takes::one, "<pattern>", "what is looked for: 'Max(Min($x, $hi), $lo)'"},
                        {"--with", Takes::one, "<pattern>", "what takes its place: 'Clip($x, $lo, $hi)'"}})};
  return kCommand;
}

ExitStatus replace(const Arguments& arguments) {
  if (!arguments.has("--pattern") || !arguments.has("--with"))
    throw UsageError("replace needs --pattern and --with",
                     "--pattern 'Max(Min($x, $hi), $lo)' --with 'Clip($x, $lo, $hi)'");
  return edit_model(arguments, [&](edit::Model& model, const Narrator& narrator) {
    const size_t count = edit::replace_matches(model, edit::parse_pattern(arguments.value("--pattern")),
                                               edit::parse_pattern(arguments.value("--with")));
    if (count == 0)
      throw edit::UnknownName("the pattern is nowhere in the model",
                              "hone inspect model --show layers prints its nodes");
    narrator.info("Replaced {} match(es)", count);
    edit::infer_shapes(model, false);
  });
}

const CompanionCommand& set_attr_command() {
  static const CompanionCommand kCommand{
      "surgeon set-attr",
      "MODEL.onnx name=value...",
      "Sets attributes of a node, its operator or name; shapes are inferred anew.",
      with_model_flags({{"--node", Takes::one, "<name>", "the node, by name or by a tensor that it makes"},
                        {"--op", Takes::one, "<op>", "give it another operator"},
                        {"--remove", Takes::some, "<name...>", "take attributes away"}}),
      1,
      1000};
  return kCommand;
}

ExitStatus set_attr(const Arguments& arguments) {
  if (!arguments.has("--node")) throw UsageError("nothing says which node", "--node NAME");
  if (arguments.files().size() < 2 && !arguments.has("--op") && !arguments.has("--remove"))
    throw UsageError("no attribute is given a value", "write name=value, as pads=[1,1,1,1]");
  return edit_model(arguments, [&](edit::Model& model, const Narrator&) {
    edit::Node& node = model.graph.nodes[edit::find_node(model.graph, arguments.value("--node"))];
    for (size_t i = 1; i < arguments.files().size(); ++i) {
      const auto [name, value] = parse_assignment(arguments.files()[i]);
      edit::set_attribute(model, node, name, value);
    }
    if (arguments.has("--op")) node.op_type = arguments.value("--op");
    for (const std::string& name : arguments.values("--remove"))
      if (std::erase_if(node.attributes, [&](const edit::Attribute& each) { return each.name == name; }) == 0)
        throw edit::UnknownName(fmt::format("the node has no attribute {}", name));
    edit::infer_shapes(model, false);
  });
}

}  // namespace

const FriendlyCommand& describe_surgeon_insert() { return friendly<insert_command>(); }
int run_surgeon_insert(Words words) { return run_companion(insert_command(), words, insert); }
const FriendlyCommand& describe_surgeon_remove() { return friendly<remove_command>(); }
int run_surgeon_remove(Words words) { return run_companion(remove_command(), words, remove); }
const FriendlyCommand& describe_surgeon_replace() { return friendly<replace_command>(); }
int run_surgeon_replace(Words words) { return run_companion(replace_command(), words, replace); }
const FriendlyCommand& describe_surgeon_set_attr() { return friendly<set_attr_command>(); }
int run_surgeon_set_attr(Words words) { return run_companion(set_attr_command(), words, set_attr); }

}  // namespace hone
