// SPDX-License-Identifier: Apache-2.0
//
// The walk over a model: inputs, initialisers, nodes in order, outputs; the same for bodies and for functions, which are
// inlined with their names prefixed. What a node becomes is its operator's rule.
#include "onnx/importer.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/limits.h"
#include "base/utf8.h"
#include "onnx/folded_nodes.h"
#include "onnx/node_context.h"
#include "onnx/parse_log.h"
#include "onnx/proto.h"
#include "onnx/required_operands.h"
#include "onnx/rules.h"
#include "onnx/scope.h"
#include "onnx/summary.h"
#include "onnx/symbols.h"
#include "onnx/tensor_data.h"
#include "onnx/walk.h"
#include "ops/ops.h"

namespace hone {
namespace onnx {
namespace {

constexpr int kOldestOpset = 1, kNewestOpset = 28;

std::string text_of(std::string_view view) { return valid_utf8(view); }

/// The condition of an If where the model's structure decides it.
std::optional<bool> known_condition(const Value* condition) {
  if (condition == nullptr) return std::nullopt;
  if (condition->is_constant() && condition->constant->size() == 1) return condition->constant->integer(0) != 0;
  const bool known =
      condition->symbolic && condition->symbolic->size() == 1 && condition->symbolic->front().is_constant();
  return known ? std::optional(condition->symbolic->front().value() != 0) : std::nullopt;
}

void check_operands(const NodeProto& node, const OnnxRule& rule, int opset, const std::vector<Value*>& operands) {
  const uint32_t required = rule.required != 0 ? rule.required : required_operands(node.domain, node.op_type, opset);
  for (size_t i = 0; required >> i != 0; ++i)
    HONE_CHECK((required >> i & 1) == 0 || (i < operands.size() && operands[i] != nullptr), "its operand {} is missing",
               i);
}

/// Converters also write the single value of a key as a list of one.
DType key_of_map(const ValueProto& value) {
  for (const DimProto& dim : value.shape.value_or(std::vector<DimProto>()))
    HONE_CHECK(dim.value == 1, "it is a map to other than single values, which is not supported");
  const std::optional<DType> key = dtype_of_onnx(value.map_key);
  HONE_CHECK(key == DType::i64 || key == DType::string, "its keys are {}; maps have int64 or string keys",
             onnx_type_name(value.map_key));
  return *key;
}

}  // namespace

Graph Importer::run() {
  check_opset();
  rules_.check_all(model_);
  Graph graph;
  graph.name = text_of(model_.graph->name);
  Scope scope(graph);
  Place place{scope, model_.opsets, ""};
  std::unordered_set<std::string_view> initialized;
  for (const TensorProto& tensor : model_.graph->initializers) initialized.insert(tensor.name);
  for (const ValueProto& input : model_.graph->inputs)
    if (!initialized.contains(input.name)) add_input(place, input);
  add_initializers(place, *model_.graph);
  import_nodes(place, model_.graph->nodes);
  add_outputs(place, *model_.graph);
  return graph;
}

void Importer::check_opset() const {
  const auto at = model_.opsets.find("");
  if (at == model_.opsets.end()) {
    const bool needed = std::any_of(model_.graph->nodes.begin(), model_.graph->nodes.end(),
                                    [](const NodeProto& node) { return node.domain.empty(); });
    HONE_CHECK(!needed, "the model does not say which version of the ONNX operator set it uses");
    return;
  }
  if (at->second < kOldestOpset)
    throw Error(fmt::format("the model uses opset {}; the oldest supported is {}", at->second, kOldestOpset),
                "convert it with onnx.version_converter.convert_version(model, 17)");
  if (at->second > kNewestOpset)
    log_.logger().warning("The model uses opset {}, newer than {}; its operators are read as of opset {}", at->second,
                          kNewestOpset, kNewestOpset);
}

void Importer::add_input(Place& place, const ValueProto& input) {
  with_note([&] { return fmt::format("importing the model's input '{}'", input.name); },
            [&] {
              HONE_CHECK(!input.name.empty(), "an input of the graph has no name");
              Value* value = place.scope.graph().add_input(text_of(input.name), type_of(input));
              place.scope.define(input.name, value);
              log_.network_input(*value);
            });
}

/// Of elements of sequences and optionals the sizes are not read: they may differ from one to the next.
TensorType Importer::type_of(const ValueProto& value) {
  if (!value.is_tensor) throw Error("it is a sparse tensor, which is not supported");
  const std::optional<DType> dtype = dtype_of_onnx(value.elem_type);
  HONE_CHECK(dtype, "its element type {} is not supported", onnx_type_name(value.elem_type));
  if (value.containers.empty()) {
    if (!value.shape)
      throw Error("its rank is not given", "run onnx.shape_inference, or set the shape of the input in the model");
    return {*dtype, symbols_.shape(value)};
  }
  const bool map = value.containers.back() == DType::map;
  TensorType type = map ? map_of(key_of_map(value), *dtype) : unranked(*dtype);
  for (size_t i = value.containers.size() - (map ? 1 : 0); i-- > 0;) {
    HONE_CHECK(value.containers[i] != DType::map, "it is a map to other than single values, which is not supported");
    type = container_of(value.containers[i], std::move(type));
  }
  return type;
}

void Importer::add_initializers(Place& place, const GraphProto& graph) {
  if (graph.has_sparse)
    throw Error("the model has sparse initialisers, which are not supported", "export it with dense weights");
  for (const TensorProto& tensor : graph.initializers) {
    HONE_CHECK(!tensor.name.empty(), "an initialiser has no name");
    log_.initializer(tensor.name);
    place.scope.define(tensor.name, place.scope.graph().add_constant(data_.tensor(tensor), text_of(tensor.name)));
  }
}

void Importer::add_outputs(Place& place, const GraphProto& graph) {
  Graph& target = place.scope.graph();
  const OpDef* identity = rules_
                              .find(NodeProto{.name = {},
                                              .op_type = "Identity",
                                              .domain = {},
                                              .overload = {},
                                              .inputs = {},
                                              .outputs = {},
                                              .attributes = {}},
                                    kNewestOpset)
                              .op;
  std::vector<Value*> outputs;
  for (const ValueProto& output : graph.outputs) {
    const std::optional<Value*> found = place.scope.find(output.name);
    if (!found || *found == nullptr)
      throw Error(fmt::format("the graph's output '{}' is not defined by any node, input or initialiser", output.name),
                  "the model is incomplete; export it again");
    Value* value = *found;
    const std::string name = text_of(output.name);
    // Of the model's own outputs each is the result of a node and carries the output's name.
    const bool own = value->producer != nullptr && value->name == name &&
                     std::find(outputs.begin(), outputs.end(), value) == outputs.end();
    HONE_CHECK(std::none_of(outputs.begin(), outputs.end(), [&](const Value* other) { return other->name == name; }) ||
                   &graph != &*model_.graph,
               "the output '{}' is listed twice", name);
    if (!own && &graph == &*model_.graph) {
      Node* copy = target.add(*identity, {value}, {}, unique_node_name(fmt::format("Identity_{}", name)));
      copy->origin = value->producer != nullptr ? value->producer->origin : std::vector<std::string>{copy->name};
      value = copy->output();
      value->name = name;
    }
    outputs.push_back(value);
    if (&graph == &*model_.graph) log_.network_output(output.name);
  }
  HONE_CHECK(!outputs.empty() || &graph != &*model_.graph, "the graph has no outputs");
  target.set_outputs(std::move(outputs));
}

void Importer::import_nodes(Place& place, const std::vector<NodeProto>& nodes) {
  if (depth_ > kMaxNesting)
    throw Error(fmt::format("functions and bodies are nested more than {} deep", kMaxNesting),
                "flatten the functions and the If, Loop and Scan bodies of the model");
  const Level level(depth_);
  for (const size_t i : sorted_order(nodes)) {
    const NodeProto& node = nodes[i];
    if (++node_count_ > kMaxNodes)
      throw Error(fmt::format("the model's functions expand to more than {} nodes", kMaxNodes),
                  "export it without nested functions");
    const std::string name = unique_node_name(place.prefix + display_name(node, i));
    if (found_ != nullptr && depth_ == 1) {
      survey_node(place, node, name);
      continue;
    }
    with_note(
        [&] {
          return fmt::format("importing node {} ({}, opset {})", name, node.op_type,
                             opset_of(place.opsets, node.domain));
        },
        [&] { import_node(place, node, name); });
  }
}

std::string Importer::unique_node_name(std::string name) {
  if (name.size() > kMaxNameBytes)
    throw Error(fmt::format("the calls of functions make a node's name {} bytes long; names may have {}", name.size(),
                            kMaxNameBytes),
                "shorten the names of the functions' nodes");
  std::string candidate = name;
  while (!node_names_.insert(candidate).second) candidate = fmt::format("{}_{}", name, ++name_counters_[name] + 1);
  return candidate;
}

std::vector<Value*> Importer::find_operands(Place& place, const NodeProto& node) {
  std::vector<Value*> operands;
  for (const std::string_view name : node.inputs) {
    if (name.empty()) {
      operands.push_back(nullptr);
      continue;
    }
    log_.searching(name);
    const std::optional<Value*> value = place.scope.find(name);
    if (!value)
      throw Error(fmt::format("its input '{}' is not defined by any node, input or initialiser", name),
                  "the model is incomplete; export it again");
    operands.push_back(*value);
  }
  return operands;
}

void Importer::import_node(Place& place, const NodeProto& node, const std::string& name) {
  log_.node_begins(name, node.op_type);
  if (const FunctionProto* function = rules_.function(node)) return call_function(place, node, *function, name);
  const int opset = opset_of(place.opsets, node.domain);
  const RuleMatch match = rules_.find(node, opset);
  HONE_CHECK(match, "the operator {} is not supported", node.op_type);
  nodes_.push_back({name, node.domain.empty() ? text_of(node.op_type) : fmt::format("{}.{}", node.domain, node.op_type),
                    body_depth_ > 0});
  std::vector<Value*> operands = find_operands(place, node);
  check_operands(node, *match.rule, opset, operands);
  log_.node_inputs(name, node.op_type, node.inputs, operands);
  std::map<std::string_view, const GraphProto*> graphs;
  Attrs attrs = import_attributes(place, node, graphs);
  HONE_CHECK(graphs.empty() || match.op->custom == nullptr, "operators of programs take no graphs as attributes");
  if (node.op_type == "If" && node.domain.empty() && operands.size() == 1)
    if (const std::optional<bool> taken = known_condition(operands[0])) {
      const auto branch = graphs.find(*taken ? "then_branch" : "else_branch");
      HONE_CHECK(branch != graphs.end(), "the node needs then_branch and else_branch");
      return inline_branch(place, node, *branch->second);
    }
  std::vector<std::unique_ptr<Graph>> bodies;
  if (!graphs.empty()) {
    const auto types_of = match.rule->body_types;
    const std::vector<TensorType> formals = types_of == nullptr ? std::vector<TensorType>() : types_of(operands, attrs);
    const size_t given = operands.size();
    ++body_depth_;
    bodies = import_bodies(place, graphs, name, types_of == nullptr ? nullptr : &formals, operands);
    --body_depth_;
    attrs.set("captures", static_cast<int64_t>(operands.size() - given));
  }
  NodeContext context(place.scope, std::min(opset, node.domain.empty() ? kNewestOpset : opset), name,
                      std::move(operands), node.outputs, std::move(attrs), std::move(bodies));
  const std::vector<Value*>& results = context.run(*match.op, *match.rule);
  log_.layer(name);
  define_results(place, node, results);
  log_.node_outputs(name, node.op_type, node.outputs, results);
}

/// Exporters leave both branches of questions that only the rank or a fixed size decides, and the other one may be invalid.
void Importer::inline_branch(Place& place, const NodeProto& node, const GraphProto& branch) {
  HONE_CHECK(node.outputs.size() <= branch.outputs.size(), "the branch has {} results but {} are named",
             branch.outputs.size(), node.outputs.size());
  Scope scope(place.scope.graph(), &place.scope);
  Place inner{scope, place.opsets, place.prefix, place.attributes};
  add_initializers(inner, branch);
  import_nodes(inner, branch.nodes);
  std::vector<Value*> results;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::optional<Value*> value = scope.find(branch.outputs[i].name);
    HONE_CHECK(value && *value != nullptr, "the branch does not define its output '{}'", branch.outputs[i].name);
    results.push_back(*value);
    if (scope.defines(branch.outputs[i].name) && results.back()->producer != nullptr)
      results.back()->name.clear();  // takes the If's name
  }
  define_results(place, node, results);
}

void Importer::define_results(Place& place, const NodeProto& node, const std::vector<Value*>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    place.scope.define(node.outputs[i], values[i]);
    if (values[i]->name.empty()) values[i]->name = place.prefix + text_of(node.outputs[i]);
  }
}

Attrs Importer::import_attributes(const Place& place, const NodeProto& node,
                                  std::map<std::string_view, const GraphProto*>& graphs) {
  Attrs attrs;
  for (const AttributeProto& own : node.attributes) {
    const AttributeProto* value = &own;
    if (!own.reference.empty()) {
      HONE_CHECK(place.attributes != nullptr, "attribute '{}' refers to '{}' outside of a function", own.name,
                 own.reference);
      const auto at = place.attributes->find(own.reference);
      if (at == place.attributes->end()) continue;  // the call leaves it out: the operator's default holds
      value = at->second;
    }
    const std::string name(own.name);
    switch (value->type) {
      case AttributeType::real: attrs.set(name, value->real); break;
      case AttributeType::integer: attrs.set(name, value->integer); break;
      case AttributeType::text: attrs.set(name, std::string(value->text)); break;
      case AttributeType::reals: attrs.set(name, value->reals); break;
      case AttributeType::integers: attrs.set(name, value->integers); break;
      case AttributeType::texts:
        attrs.set(name, std::vector<std::string>(value->texts.begin(), value->texts.end()));
        break;
      case AttributeType::tensor:
        HONE_CHECK(value->tensor, "attribute '{}' holds no tensor", name);
        attrs.set(name, data_.tensor(*value->tensor));
        break;
      case AttributeType::graph:
        HONE_CHECK(value->graph, "attribute '{}' holds no graph", name);
        graphs.emplace(own.name, value->graph.get());
        break;
      case AttributeType::type:
        HONE_CHECK(value->value_type, "attribute '{}' holds no type", name);
        attrs.set(name, type_of(*value->value_type).text());
        break;
      case AttributeType::sparse:
        throw Error(fmt::format("attribute '{}' is a sparse tensor, which is not supported", name),
                    "export the model with dense tensors");
      case AttributeType::tensors:
      case AttributeType::graphs:
      case AttributeType::other:
      case AttributeType::none: throw Error(fmt::format("attribute '{}' has a kind that is not supported", name));
    }
  }
  return attrs;
}

/// Some exporters declare the iteration and the condition of a Loop as lists of one and read them so; Loop gives scalars.
static Value* formal_input(Graph& graph, const ValueProto& formal, const TensorType& type) {
  Value* value = graph.add_input(text_of(formal.name), type);
  const bool scalar = type.ranked && type.element == nullptr && type.shape.rank() == 0;
  if (!scalar || !formal.shape || formal.shape->size() != 1) return value;
  Value* axis = graph.add_constant(Tensor::of<int64_t>({1}, {0}));
  return graph.add(ops::unsqueeze, {value, axis}, {}, text_of(formal.name) + " as a list")->output();
}

std::vector<std::unique_ptr<Graph>> Importer::import_bodies(Place& place,
                                                            const std::map<std::string_view, const GraphProto*>& graphs,
                                                            const std::string& name,
                                                            const std::vector<TensorType>* formals,
                                                            std::vector<Value*>& operands) {
  std::vector<std::unique_ptr<Graph>> bodies;
  std::vector<Value*> captured;  // the same list, in the same order, for every body of the node
  for (const auto& entry : graphs) {
    const std::string_view attribute = entry.first;  // clang 14 captures no structured bindings
    const GraphProto* proto = entry.second;
    with_note([&] { return fmt::format("importing the body '{}' of node {}", attribute, name); },
              [&] {
                auto graph = std::make_unique<Graph>();
                graph->name = text_of(attribute);  // which of the node's bodies it is
                Scope scope(*graph, &place.scope);
                Place inner{scope, place.opsets, place.prefix, place.attributes};
                if (formals != nullptr) {
                  HONE_CHECK(proto->inputs.size() == formals->size(), "the body has {} inputs but the node gives it {}",
                             proto->inputs.size(), formals->size());
                  for (size_t i = 0; i < formals->size(); ++i)
                    scope.define(proto->inputs[i].name, formal_input(*graph, proto->inputs[i], (*formals)[i]));
                } else {
                  for (const ValueProto& input : proto->inputs) add_input(inner, input);
                }
                for (Value* outside : captured) scope.capture(outside);
                add_initializers(inner, *proto);
                import_nodes(inner, proto->nodes);
                add_outputs(inner, *proto);
                for (size_t i = captured.size(); i < scope.captured().size(); ++i) {
                  captured.push_back(scope.captured()[i]);
                  for (const auto& earlier : bodies) earlier->add_input(captured.back()->name, captured.back()->type);
                }
                bodies.push_back(std::move(graph));
              });
  }
  operands.insert(operands.end(), captured.begin(), captured.end());
  return bodies;
}

void Importer::call_function(Place& place, const NodeProto& node, const FunctionProto& function,
                             const std::string& name) {
  if (std::find(calls_.begin(), calls_.end(), &function) != calls_.end())
    throw Error(fmt::format("the function {} calls itself", function.name),
                "ONNX functions must not be recursive; use Loop");
  HONE_CHECK(node.inputs.size() <= function.inputs.size(), "the function {} takes {} inputs but is given {}",
             function.name, function.inputs.size(), node.inputs.size());
  HONE_CHECK(node.outputs.size() <= function.outputs.size(), "the function {} has {} outputs but {} are named",
             function.name, function.outputs.size(), node.outputs.size());

  AttributeValues attributes;
  for (const AttributeProto& fallback : function.defaults) attributes[fallback.name] = &fallback;
  for (const AttributeProto& given : node.attributes) {
    const AttributeProto* value = &given;
    if (!given.reference.empty()) {
      const auto at =
          place.attributes == nullptr ? AttributeValues::const_iterator() : place.attributes->find(given.reference);
      if (place.attributes == nullptr || at == place.attributes->end()) continue;
      value = at->second;
    }
    attributes[given.name] = value;
  }

  std::vector<Value*> operands = find_operands(place, node);
  log_.node_inputs(name, node.op_type, node.inputs, operands);
  operands.resize(function.inputs.size(), nullptr);
  Scope scope(place.scope.graph());
  for (size_t i = 0; i < operands.size(); ++i) scope.define(function.inputs[i], operands[i]);
  calls_.push_back(&function);
  Place inner{scope, function.opsets.empty() ? place.opsets : function.opsets, name + "/", &attributes};
  import_nodes(inner, function.nodes);
  calls_.pop_back();

  std::vector<Value*> results;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::optional<Value*> value = scope.find(function.outputs[i]);
    HONE_CHECK(node.outputs[i].empty() || (value && *value != nullptr),
               "the function {} does not define its output '{}'", function.name, function.outputs[i]);
    results.push_back(node.outputs[i].empty() ? nullptr : *value);
    const bool made_here = results.back() != nullptr && results.back()->producer != nullptr &&
                           std::find(operands.begin(), operands.end(), results.back()) == operands.end();
    if (made_here) results.back()->name.clear();  // takes the name that the caller gives it
  }
  define_results(place, node, results);
  log_.node_outputs(name, node.op_type, node.outputs, results);
}

namespace {

ImportedModel import_from(Bytes bytes, std::shared_ptr<const void> owner, const Logger& log,
                          const std::string& directory, const std::string& name, const OperatorList& operators) {
  const ModelProto model = parse_model(bytes);
  OnnxSummary summary = summarize(model);
  print_summary(name, summary, log);
  ModelData data(std::move(owner), directory);
  Importer importer(model, data, log, operators);
  Graph graph = importer.run();
  std::vector<std::string> live = live_names(*model.graph);  // run() refuses a model without graph
  std::vector<std::string> folded = folded_nodes(live, graph);
  return {std::move(graph), std::move(summary), importer.take_nodes(), std::move(live), std::move(folded)};
}

}  // namespace
}  // namespace onnx

ImportedModel import_onnx(const std::string& path, const Logger& log, const OperatorList& operators) {
  return with_note([&] { return fmt::format("importing {}", path); },
                   [&] {
                     const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
                     const size_t slash = path.rfind('/');
                     return onnx::import_from(file->bytes(), file, log,
                                              slash == std::string::npos ? "." : path.substr(0, slash + 1), path,
                                              operators);
                   });
}

ImportedModel import_onnx_bytes(const Blob& bytes, const Logger& log, const std::string& directory,
                                const OperatorList& operators) {
  return onnx::import_from(bytes.bytes(), std::make_shared<const Blob>(bytes), log, directory, "(memory)", operators);
}

}  // namespace hone
