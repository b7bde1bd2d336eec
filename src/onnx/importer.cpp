// SPDX-License-Identifier: Apache-2.0
//
// The walk over a model: inputs, initialisers, nodes in order, outputs; the same for bodies and for functions, which are
// inlined with their names prefixed. What a node becomes is its operator's rule.
#include <algorithm>
#include <set>

#include "base/limits.h"
#include "onnx/node_context.h"
#include "onnx/required_operands.h"
#include "onnx/walk.h"
#include "ops/ops.h"

namespace hone::onnx {
namespace {

constexpr int kOldestOpset = 1, kNewestOpset = 28;

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

bool Importer::attempt(ProblemKind problem, const std::string& where, const std::function<void()>& body) {
  if (diagnoser_ != nullptr) return diagnoser_->attempt(problem, where, body);
  body();
  return true;
}

Graph Importer::run() {
  if (!attempt(ProblemKind::version, {}, [&] { check_opset(); })) return {};
  if (diagnoser_ == nullptr) rules_.check_all(model_);
  Graph graph;
  graph.name = text_of(model_.graph->name);
  Scope scope(graph);
  Place place{scope, model_.opsets, ""};
  add_edges(place);
  attempt(ProblemKind::graph, {}, [&] { import_nodes(place, model_.graph->nodes); });
  attempt(ProblemKind::graph, {}, [&] { add_outputs(place, *model_.graph); });
  return graph;
}

void Importer::add_edges(Place& place) {
  const GraphProto& graph = *model_.graph;
  std::unordered_set<std::string_view> initialized;
  for (const TensorProto& tensor : graph.initializers) initialized.insert(tensor.name);
  for (const ValueProto& input : graph.inputs)
    if (!initialized.contains(input.name) &&
        !attempt(ProblemKind::type, fmt::format("input '{}'", input.name), [&] { add_input(place, input); }))
      place.scope.define_unread(input.name, Unread::tensor);
  if (diagnoser_ == nullptr) return add_initializers(place, graph);
  for (const TensorProto& tensor : graph.initializers)
    if (!attempt(ProblemKind::weight, fmt::format("initialiser '{}'", tensor.name),
                 [&] { add_initializer(place, tensor); }))
      stand_in(place, tensor);
}

void Importer::check_opset() {
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
  if (at->second <= kNewestOpset) return;
  const std::string text = fmt::format("The model uses opset {}, newer than {}; its operators are read as of opset {}",
                                       at->second, kNewestOpset, kNewestOpset);
  log_.logger().warning("{}", text);
  if (diagnoser_ != nullptr) diagnoser_->warn(ProblemKind::version, text);
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
  for (const TensorProto& tensor : graph.initializers) add_initializer(place, tensor);
}

void Importer::add_initializer(Place& place, const TensorProto& tensor) {
  HONE_CHECK(!tensor.name.empty(), "an initialiser has no name");
  log_.initializer(tensor.name);
  place.scope.define(tensor.name, place.scope.graph().add_constant(data_.tensor(tensor), text_of(tensor.name)));
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
    if (place.scope.unread(output.name) != Unread::none) {
      if (&graph == &*model_.graph) continue;
      require_read(place, output.name);
    }
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
  HONE_CHECK(!graph.outputs.empty() || &graph != &*model_.graph, "the graph has no outputs");
  target.set_outputs(std::move(outputs));
}

void Importer::import_nodes(Place& place, const std::vector<NodeProto>& nodes) {
  if (depth_ > kMaxNesting)
    throw Error(fmt::format("functions and bodies are nested more than {} deep", kMaxNesting),
                "flatten the functions and the If, Loop and Scan bodies of the model");
  const Level level(depth_);
  const std::vector<size_t> order = sorted_order(nodes);
  if (diagnoser_ != nullptr && in_model()) diagnoser_->set_order(order);
  for (const size_t i : order) {
    const NodeProto& node = nodes[i];
    if (++node_count_ > kMaxNodes)
      throw Error(fmt::format("the model's functions expand to more than {} nodes", kMaxNodes),
                  "export it without nested functions");
    const bool told = diagnoser_ != nullptr && in_model();
    if (told) diagnoser_->enter(i);
    const std::string name = unique_node_name(place.prefix + display_name(node, i));
    if (told) diagnoser_->set_name(name);
    with_note(
        [&] {
          return fmt::format("importing node {} ({}, opset {})", name, node.op_type,
                             opset_of(place.opsets, node.domain));
        },
        [&] {
          if (diagnoser_ == nullptr) import_node(place, node, name);
          else diagnose_node(place, node, name);
        });
    if (told) diagnoser_->leave();
  }
}

void Importer::diagnose_node(Place& place, const NodeProto& node, const std::string& name) {
  const size_t calls = calls_.size();
  const int bodies = body_depth_;
  stage_ = ProblemKind::graph;
  diagnoser_->attempt(
      node, name, place.opsets, stage_, [&] { import_node(place, node, name); },
      [&] { return operand_types(place, node); });
  calls_.resize(calls);
  body_depth_ = bodies;
  for (const std::string_view output : node.outputs)
    if (!output.empty() && !place.scope.defines(output)) stand_in(place, output);
}

void Importer::stand_in(Place& place, std::string_view tensor) {
  const ValueProto* type = in_model() ? diagnoser_->type_of(tensor) : nullptr;
  try {
    HONE_CHECK(type != nullptr, "the model does not say the type of {}", tensor);
    place.scope.define(tensor, place.scope.graph().add_input(text_of(tensor), type_of(*type)));
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
    place.scope.define_unread(tensor, Unread::result);
  }
}

/// A weight whose data are not there is an input of its type.
void Importer::stand_in(Place& place, const TensorProto& tensor) {
  const std::optional<DType> dtype = dtype_of_onnx(tensor.data_type);
  const bool sized = std::ranges::all_of(tensor.dims, [](int64_t dim) { return dim >= 0; });
  if (place.scope.defines(tensor.name)) return;
  if (!dtype || !sized || tensor.name.empty() || tensor.dims.size() > kMaxRank)
    return place.scope.define_unread(tensor.name, Unread::tensor);
  const TensorType type{*dtype, Shape(std::span(tensor.dims))};
  place.scope.define(tensor.name, place.scope.graph().add_input(text_of(tensor.name), type));
}

std::vector<std::string> Importer::operand_types(Place& place, const NodeProto& node) const {
  std::vector<std::string> types;
  for (const std::string_view input : node.inputs) {
    const std::optional<Value*> value = place.scope.find(input);
    types.push_back(value && *value != nullptr ? (*value)->type.text() : "?");
  }
  return types;
}

void Importer::require_read(const Place& place, std::string_view tensor) const {
  const Unread why = place.scope.unread(tensor);
  if (why == Unread::result)
    throw Unjudged(fmt::format("it reads '{}', which a node makes that is refused or not judged, and whose type the "
                               "model does not say",
                               tensor),
                   "run onnx.shape_inference: where types are known, nodes are judged by themselves");
  if (why == Unread::tensor) throw Unreadable(fmt::format("its input '{}' cannot be read", tensor));
}

std::string Importer::unique_node_name(std::string name) {
  if (name.size() > kMaxNameBytes)
    throw Error(fmt::format("the calls of functions make a node's name {} bytes long; names may have {}", name.size(),
                            kMaxNameBytes),
                "shorten the names of the functions' nodes");
  std::string candidate = name;
  while (!node_names_.insert(candidate).second) candidate = fmt::format("{}_{}", name, ++name_counters_[name] + 1);
  if (candidate != name && diagnoser_ != nullptr && in_model())
    diagnoser_->warn(ProblemKind::name,
                     fmt::format("two nodes are called {}; this one is {} in logs and plans", name, candidate));
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
    if (*value == nullptr) require_read(place, name);
    operands.push_back(*value);
  }
  return operands;
}

/// For who diagnoses.
std::optional<TypeFault> Importer::type_fault(const NodeProto& node, int opset,
                                              const std::vector<Value*>& operands) const {
  if (diagnoser_ == nullptr || !node.domain.empty()) return std::nullopt;
  std::vector<std::optional<DType>> types;
  for (const Value* operand : operands)
    types.push_back(operand == nullptr || is_container(operand->type.dtype) ? std::nullopt
                                                                            : std::optional(operand->type.dtype));
  return operand_type_fault(node.op_type, opset, types);
}

void Importer::import_node(Place& place, const NodeProto& node, const std::string& name) {
  log_.node_begins(name, node.op_type);
  if (const FunctionProto* function = rules_.function(node)) return call_function(place, node, *function, name);
  const int opset = opset_of(place.opsets, node.domain);
  const RuleMatch match = rules_.require(node, opset);
  nodes_.push_back({name, node.domain.empty() ? text_of(node.op_type) : fmt::format("{}.{}", node.domain, node.op_type),
                    body_depth_ > 0});
  std::vector<Value*> operands = find_operands(place, node);
  const std::optional<TypeFault> fault = type_fault(node, opset, operands);
  stage_ = ProblemKind::operand;
  check_operands(node, *match.rule, opset, operands);
  log_.node_inputs(name, node.op_type, node.inputs, operands);
  std::map<std::string_view, const GraphProto*> graphs;
  stage_ = ProblemKind::attribute;
  Attrs attrs = import_attributes(place, node, graphs);
  HONE_CHECK(graphs.empty() || match.op->custom == nullptr, "operators of programs take no graphs as attributes");
  stage_ = ProblemKind::graph;
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
  stage_ = ProblemKind::operand;
  NodeContext context(place.scope, std::min(opset, node.domain.empty() ? kNewestOpset : opset), name,
                      std::move(operands), node.outputs, std::move(attrs), std::move(bodies));
  const std::vector<Value*>& results = context.run(*match.op, *match.rule);
  log_.layer(name);
  define_results(place, node, results);
  log_.node_outputs(name, node.op_type, node.outputs, results);
  if (fault) diagnoser_->warn_of_types(node, name, operand_types(place, node), Error(fault->text, fault->hint));
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
    if (value && *value == nullptr) require_read(inner, branch.outputs[i].name);
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
  std::optional<Unjudged> unjudged;
  for (const auto& entry : graphs) {
    const std::string_view attribute = entry.first;  // clang 14 captures no structured bindings
    const GraphProto& body = *entry.second;
    try {
      with_note([&] { return fmt::format("importing the body '{}' of node {}", attribute, name); },
                [&] { import_body(place, attribute, body, formals, captured, bodies); });
    } catch (const Unjudged& error) {
      unjudged = error;  // what is wrong with the others is told as well
    }
  }
  if (unjudged) throw Unjudged(*unjudged);
  operands.insert(operands.end(), captured.begin(), captured.end());
  return bodies;
}

void Importer::import_body(Place& place, std::string_view attribute, const GraphProto& body,
                           const std::vector<TensorType>* formals, std::vector<Value*>& captured,
                           std::vector<std::unique_ptr<Graph>>& bodies) {
  auto graph = std::make_unique<Graph>();
  graph->name = text_of(attribute);  // which of the node's bodies it is
  Scope scope(*graph, &place.scope);
  Place inner{scope, place.opsets, place.prefix, place.attributes};
  if (formals != nullptr) {
    HONE_CHECK(body.inputs.size() == formals->size(), "the body has {} inputs but the node gives it {}",
               body.inputs.size(), formals->size());
    for (size_t i = 0; i < formals->size(); ++i)
      scope.define(body.inputs[i].name, formal_input(*graph, body.inputs[i], (*formals)[i]));
  } else {
    for (const ValueProto& input : body.inputs) add_input(inner, input);
  }
  for (Value* outside : captured) scope.capture(outside);
  add_initializers(inner, body);
  import_nodes(inner, body.nodes);
  add_outputs(inner, body);
  for (size_t i = captured.size(); i < scope.captured().size(); ++i) {
    captured.push_back(scope.captured()[i]);
    for (const auto& earlier : bodies) earlier->add_input(captured.back()->name, captured.back()->type);
  }
  bodies.push_back(std::move(graph));
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
    if (value && *value == nullptr) require_read(inner, function.outputs[i]);
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

}  // namespace hone::onnx
