// SPDX-License-Identifier: Apache-2.0
//
// Lookup of rules, the list of what is missing, and the order of nodes.
#include "onnx/rules.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "ir/custom.h"
#include "ops/all.h"
#include "ops/expansions.h"
#include "ops/ops.h"

namespace hone::onnx {

struct Rules::Missing {
  std::map<std::string, std::vector<std::string>> nodes;  // by operator
  std::set<const FunctionProto*> seen;
  std::vector<const FunctionProto*> called;  // whose nodes are still to be looked at
  std::set<std::string_view> op_types;
};

std::vector<RuleMatch> all_rules() {
  std::vector<RuleMatch> rules;
  for (const OpDef* op : all_ops())
    for (const OnnxRule& rule : op->onnx) rules.push_back({op, &rule});
  for (const std::span<const OnnxRule> expansions :
       {microsoft_fused_rules(), microsoft_attention_rules(), microsoft_quantized_rules(), gradient_rules()})
    for (const OnnxRule& rule : expansions) rules.push_back({&ops::identity, &rule});
  return rules;
}

Rules::Rules(const ModelProto& model, const OperatorList& operators) {
  for (const RuleMatch& match : all_rules())
    rules_[{canonical_domain(match.rule->domain), match.rule->op_type}].push_back(match);
  for (const FunctionProto& function : model.functions)
    if (!functions_.emplace(FunctionKey{function.domain, function.name, function.overload}, &function).second)
      throw Error(fmt::format("the model-local function {}::{} is defined twice", function.domain, function.name));
  add_brought(operators);
}

void Rules::add_brought(const OperatorList& operators) {
  for (const std::shared_ptr<const OpDef>& op : operators) {
    const OnnxRule& rule = op->onnx.front();
    std::vector<RuleMatch>& matches = rules_[{canonical_domain(rule.domain), rule.op_type}];
    if (!matches.empty() && !op->custom->replaces) continue;
    matches = {{op.get(), &rule}};
    std::erase_if(functions_, [&](const auto& function) {
      return std::get<0>(function.first) == canonical_domain(rule.domain) &&
             std::get<1>(function.first) == rule.op_type;
    });
  }
}

const FunctionProto* Rules::function(const NodeProto& node) const {
  const auto at = functions_.find(key_of(node));
  return at == functions_.end() ? nullptr : at->second;
}

RuleMatch Rules::find(const NodeProto& node, int opset) const {
  const auto at = rules_.find({node.domain, node.op_type});
  if (at == rules_.end()) return {};
  for (const RuleMatch& match : at->second)
    if (match.rule->since <= opset && opset <= match.rule->until) return match;
  return {};
}

void Rules::collect(const std::vector<NodeProto>& nodes, const OpsetVersions& opsets, Missing& missing) const {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeProto& node = nodes[i];
    for (const AttributeProto& attribute : node.attributes)
      if (attribute.graph) collect(attribute.graph->nodes, opsets, missing);
    if (const FunctionProto* called = function(node)) {
      if (missing.seen.insert(called).second) missing.called.push_back(called);
      continue;
    }
    const int opset = opset_of(opsets, node.domain);
    if (find(node, opset)) continue;
    const std::string name = (node.domain.empty() ? "" : std::string(node.domain) + "::") + std::string(node.op_type) +
                             fmt::format(" (opset {})", opset);
    missing.nodes[name].push_back(display_name(node, i));
    missing.op_types.insert(node.op_type);
  }
}

std::string Rules::hint_for(const Missing& missing) const {
  for (const auto& [key, matches] : rules_)
    if (missing.op_types.contains(key.second))
      return "the operator exists in another operator set; convert the model with onnx.version_converter";
  std::vector<std::string_view> known;
  for (const auto& [key, matches] : rules_) known.push_back(key.second);
  const std::string_view wanted = *missing.op_types.begin(), close = nearest(wanted, known);
  return fmt::format(
      "rewrite the model without them, define them as model-local functions, or bring them as operators of your own "
      "(--staticPlugins, hone_operator_register); the nearest known name to {} is {}",
      wanted, close);
}

RuleMatch Rules::require(const NodeProto& node, int opset) const {
  const RuleMatch match = find(node, opset);
  if (match) return match;
  Missing missing;
  missing.op_types.insert(node.op_type);
  if (rules_.contains({node.domain, node.op_type}))
    throw OtherVersion(fmt::format("the operator {} of opset {} is not supported", node.op_type, opset),
                       hint_for(missing));
  throw UnknownOperator(fmt::format("the operator {}{} is not known",
                                    node.domain.empty() ? "" : std::string(node.domain) + "::", node.op_type),
                        hint_for(missing));
}

void Rules::check_all(const ModelProto& model) const {
  Missing missing;
  collect(model.graph->nodes, model.opsets, missing);
  while (!missing.called.empty()) {
    const FunctionProto* function = missing.called.back();
    missing.called.pop_back();
    collect(function->nodes, function->opsets, missing);
  }
  if (missing.nodes.empty()) return;
  constexpr size_t kShown = 5;
  std::vector<std::string> parts;
  for (const auto& [op, nodes] : missing.nodes) {
    std::vector<std::string> shown(nodes.begin(),
                                   nodes.begin() + static_cast<std::ptrdiff_t>(std::min(nodes.size(), kShown)));
    if (nodes.size() > kShown) shown.push_back(fmt::format("and {} more", nodes.size() - kShown));
    parts.push_back(fmt::format("{} at {}", op, join(shown, ", ")));
  }
  throw Error(fmt::format("{} operator{} of the model {} not supported: {}", parts.size(), parts.size() == 1 ? "" : "s",
                          parts.size() == 1 ? "is" : "are", join(parts, "; ")),
              hint_for(missing));
}

int opset_of(const OpsetVersions& opsets, std::string_view domain) {
  const auto at = opsets.find(domain);
  return at == opsets.end() ? 1 : at->second;
}

std::vector<std::string_view> names_read(const NodeProto& node) {
  std::vector<std::string_view> names = node.inputs;
  if (node.op_type != "Gradient" || node.domain != "ai.onnx.preview.training") return names;
  for (const AttributeProto& attribute : node.attributes) {
    if (attribute.name == "y") names.push_back(attribute.text);
    if (attribute.name == "xs" || attribute.name == "zs")
      names.insert(names.end(), attribute.texts.begin(), attribute.texts.end());
  }
  return names;
}

std::string display_name(const NodeProto& node, size_t index) {
  return valid_utf8(node.name.empty() ? fmt::format("{}_{}", node.op_type, index) : std::string(node.name));
}

namespace {

/// Names that a body takes from around it.
void collect_free(const GraphProto& graph, std::unordered_set<std::string_view>& free) {
  std::unordered_set<std::string_view> used, own;
  for (const ValueProto& input : graph.inputs) own.insert(input.name);
  for (const TensorProto& tensor : graph.initializers) own.insert(tensor.name);
  for (const NodeProto& node : graph.nodes) {
    own.insert(node.outputs.begin(), node.outputs.end());
    for (const std::string_view name : names_read(node)) used.insert(name);
    for (const AttributeProto& attribute : node.attributes)
      if (attribute.graph) collect_free(*attribute.graph, used);
  }
  for (const ValueProto& output : graph.outputs) used.insert(output.name);
  for (const std::string_view name : used)
    if (!name.empty() && !own.contains(name)) free.insert(name);
}

class Sorter {
 public:
  explicit Sorter(const std::vector<NodeProto>& nodes) : nodes_(nodes), needs_(nodes.size()) {
    std::unordered_map<std::string_view, size_t> producers;
    for (size_t i = 0; i < nodes.size(); ++i)
      for (const std::string_view name : nodes[i].outputs)
        if (const auto [at, fresh] = producers.emplace(name, i); !name.empty() && !fresh)
          throw Error(fmt::format("nodes {} and {} both produce '{}'", display_name(nodes[at->second], at->second),
                                  display_name(nodes[i], i), name),
                      "every node output needs a name of its own");
    for (size_t i = 0; i < nodes.size(); ++i) {
      const std::vector<std::string_view> read = names_read(nodes[i]);
      std::unordered_set<std::string_view> names(read.begin(), read.end());
      for (const AttributeProto& attribute : nodes[i].attributes)
        if (attribute.graph) collect_free(*attribute.graph, names);
      for (const std::string_view name : names)
        if (const auto at = producers.find(name); !name.empty() && at != producers.end())
          needs_[i].push_back(at->second);
      std::sort(needs_[i].begin(), needs_[i].end());
    }
  }

  std::vector<size_t> order() {
    std::vector<size_t> result;
    bool in_order = true;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      result.push_back(i);
      for (const size_t need : needs_[i]) in_order &= need < i;
    }
    return in_order ? result : depth_first();
  }

 private:
  std::vector<size_t> depth_first() const {
    enum class Mark : uint8_t { none, open, done };
    std::vector<Mark> marks(nodes_.size(), Mark::none);
    std::vector<size_t> result;
    std::vector<std::pair<size_t, size_t>> stack;  // node, next need
    for (size_t root = 0; root < nodes_.size(); ++root) {
      if (marks[root] != Mark::none) continue;
      stack.emplace_back(root, 0);
      marks[root] = Mark::open;
      while (!stack.empty()) {
        auto& [node, next] = stack.back();
        if (next == needs_[node].size()) {
          marks[node] = Mark::done;
          result.push_back(node);
          stack.pop_back();
          continue;
        }
        const size_t need = needs_[node][next++];
        if (marks[need] == Mark::open)
          throw Error(fmt::format("the graph has a cycle: node {} ({}) needs its own result",
                                  display_name(nodes_[need], need), nodes_[need].op_type),
                      "an ONNX graph must be acyclic; repair the exporter's output");
        if (marks[need] == Mark::done) continue;
        marks[need] = Mark::open;
        stack.emplace_back(need, 0);
      }
    }
    return result;
  }

  const std::vector<NodeProto>& nodes_;
  std::vector<std::vector<size_t>> needs_;
};

}  // namespace

std::vector<size_t> sorted_order(const std::vector<NodeProto>& nodes) { return Sorter(nodes).order(); }

}  // namespace hone::onnx
