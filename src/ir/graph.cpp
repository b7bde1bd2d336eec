// SPDX-License-Identifier: Apache-2.0
//
// Ownership and editing of the graph. Nodes and values live in a pool until the graph goes; erasing only unlinks them,
// so handles held by a pass that is walking a snapshot stay readable.
#include "ir/graph.h"

#include <algorithm>
#include <deque>
#include <set>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "base/limits.h"
#include "base/node_error.h"
#include "ir/custom.h"
#include "ir/op.h"

namespace hone {

/// Attributes that hold sizes as texts.
constexpr const char* kSizeTexts[] = {"shape", "values"};

struct Graph::State {
  std::deque<Node> nodes;
  std::deque<Value> values;
  std::set<std::shared_ptr<const OpDef>> brought;  // operators of programs: they live as long as their nodes
  mutable std::unordered_map<std::string, int> name_counters;
};

std::string_view Node::op_name() const { return op == nullptr ? std::string_view("<erased>") : op->name; }

Graph::Graph() : state_(std::make_unique<State>()) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

Value* Graph::new_value() { return &state_->values.emplace_back(); }

Value* Graph::add_input(std::string input_name, TensorType type) {
  HONE_CHECK(type.shape.rank() <= kMaxRank, "'{}' has {} axes; tensors may have {}", input_name, type.shape.rank(),
             kMaxRank);
  Value* value = new_value();
  value->name = std::move(input_name);
  value->type = std::move(type);
  inputs_.push_back(value);
  return value;
}

Value* Graph::add_constant(Tensor tensor, std::string constant_name) {
  Value* value = new_value();
  value->name = std::move(constant_name);
  value->type = tensor.type();
  value->constant = std::move(tensor);
  return value;
}

namespace {

bool has_kind(const AttrValue& value, AttrKind kind) { return value.index() == static_cast<size_t>(kind); }

/// Fills defaults and rejects attributes that the schema does not know or that have another kind.
void complete_attrs(const OpDef& op, Attrs& attrs) {
  for (const AttrSpec& spec : op.attrs) {
    const AttrValue* given = attrs.find(spec.name);
    if (given == nullptr) {
      if (spec.required) throw AttributeError(fmt::format("{} needs the attribute '{}'", op.name, spec.name));
      if (spec.fallback) attrs.set(std::string(spec.name), *spec.fallback);
      continue;
    }
    if (has_kind(*given, spec.kind)) continue;
    if (spec.kind == AttrKind::real && has_kind(*given, AttrKind::integer)) {
      attrs.set(std::string(spec.name), static_cast<double>(std::get<int64_t>(*given)));
      continue;
    }
    // An empty list carries no kind of its own.
    if (spec.kind == AttrKind::reals && std::holds_alternative<std::vector<int64_t>>(*given)) {
      const auto& integers = std::get<std::vector<int64_t>>(*given);
      attrs.set(std::string(spec.name), std::vector<double>(integers.begin(), integers.end()));
      continue;
    }
    throw AttributeError(
        fmt::format("attribute '{}' of {} has the wrong kind: {}", spec.name, op.name, print_value(*given)));
  }
  if (op.custom != nullptr) return;  // they are handed on to the program as they are
  for (const auto& [name, value] : attrs)
    if (std::ranges::find(op.attrs, name, &AttrSpec::name) == op.attrs.end())
      throw AttributeError(fmt::format("{} has no attribute '{}'", op.name, name));
}

void remove_use(Value* value, Node* node, size_t index) {
  if (value == nullptr) return;
  const auto at = std::find(value->uses.begin(), value->uses.end(), Use{node, index});
  HONE_ASSERT(at != value->uses.end(), "use of {} is not recorded", value->label());
  value->uses.erase(at);
}

}  // namespace

Node* Graph::add(const OpDef& op, std::vector<Value*> inputs, Attrs attrs, std::string node_name, size_t outputs,
                 std::vector<std::unique_ptr<Graph>> bodies) {
  return place(nodes_.size(), op, std::move(inputs), std::move(attrs), std::move(node_name), outputs,
               std::move(bodies));
}

Node* Graph::insert(Node* position, const OpDef& op, std::vector<Value*> inputs, Attrs attrs, std::string node_name,
                    size_t outputs) {
  const auto at = std::find(nodes_.begin(), nodes_.end(), position);
  HONE_ASSERT(at != nodes_.end(), "insertion point is not in the graph");
  return place(static_cast<size_t>(at - nodes_.begin()), op, std::move(inputs), std::move(attrs), std::move(node_name),
               outputs, {});
}

/// What inference leaves where an operator has no such result: an optional of nothing.
static const TensorType kNoType = {.dtype = DType::optional, .shape = {}, .layout = Layout::linear};

Node* Graph::place(size_t position, const OpDef& op, std::vector<Value*> inputs, Attrs attrs, std::string node_name,
                   size_t outputs, std::vector<std::unique_ptr<Graph>> bodies) {
  while (!inputs.empty() && inputs.back() == nullptr) inputs.pop_back();
  HONE_CHECK(inputs.size() >= op.min_inputs && inputs.size() <= op.max_inputs, "{} takes {} to {} operands but has {}",
             op.name, op.min_inputs, op.max_inputs, inputs.size());
  for (size_t i = 0; i < op.min_inputs && op.max_inputs != 0xffff; ++i)
    HONE_CHECK(inputs[i] != nullptr, "operand {} of {} is missing", i, op.name);
  complete_attrs(op, attrs);
  Node* node = &state_->nodes.emplace_back();
  node->op = &op;
  if (op.custom != nullptr) state_->brought.insert(op.custom->as_op());
  node->attrs = std::move(attrs);
  node->inputs = std::move(inputs);
  node->name = std::move(node_name);
  node->bodies = std::move(bodies);
  for (size_t i = 0; i < std::max(op.outputs, outputs); ++i) {
    Value* value = new_value();
    value->producer = node;
    value->index = i;
    if (i >= op.outputs) value->type = kNoType;
    node->outputs.push_back(value);
  }
  infer(node);  // before linking: an invalid node leaves no trace
  for (size_t i = op.outputs; i < outputs; ++i)
    HONE_CHECK(node->outputs[i]->type != kNoType, "{} has no output {}", op.name, i);
  for (size_t i = 0; i < node->inputs.size(); ++i)
    if (node->inputs[i] != nullptr) node->inputs[i]->uses.push_back({node, i});
  nodes_.insert(nodes_.begin() + static_cast<std::ptrdiff_t>(position), node);
  return node;
}

std::vector<Node*> Graph::nodes() const { return nodes_; }
bool Graph::is_output(const Value* value) const {
  return std::find(outputs_.begin(), outputs_.end(), value) != outputs_.end();
}

void Graph::replace(Value* from, Value* to) {
  if (from == to) return;
  for (const Use& use : std::vector<Use>(from->uses)) set_input(use.node, use.index, to);
  if (!is_output(from)) {
    if (to->name.empty() && to->producer != nullptr) to->name = std::exchange(from->name, {});
    return;
  }
  // The output's name is part of the interface and moves to the new value, unless that one has an outside name itself.
  const bool outside = is_output(to) || (to->producer == nullptr && !to->is_constant());
  std::replace(outputs_.begin(), outputs_.end(), from, to);
  if (!outside) {
    to->name = from->name;
    from->name.clear();
  }
}

void Graph::set_input(Node* node, size_t index, Value* value) {
  if (index >= node->inputs.size()) node->inputs.resize(index + 1, nullptr);
  remove_use(node->inputs[index], node, index);
  node->inputs[index] = value;
  if (value != nullptr) value->uses.push_back({node, index});
}

void Graph::erase(Node* node) {
  for (const Value* output : node->outputs)
    HONE_ASSERT(output->uses.empty() && !is_output(output), "erasing {} whose result {} is still used", node->name,
                output->label());
  for (size_t i = 0; i < node->inputs.size(); ++i) remove_use(node->inputs[i], node, i);
  node->inputs.clear();
  node->op = nullptr;
  std::erase(nodes_, node);
}

std::set<std::string> symbols_used(const Node& node) {
  std::set<std::string> names;
  for (const Value* output : node.outputs) {
    for (const Dim& dim : output->type.shape) dim.collect_symbols(names);
    if (output->symbolic)
      for (const Dim& dim : *output->symbolic) dim.collect_symbols(names);
  }
  for (const Value* input : node.inputs)
    if (input != nullptr && input->symbolic)
      for (const Dim& dim : *input->symbolic) dim.collect_symbols(names);
  for (const char* list : kSizeTexts)
    if (const AttrValue* attr = node.attrs.find(list);
        attr != nullptr && node.op->custom == nullptr && std::holds_alternative<std::vector<std::string>>(*attr))
      for (const std::string& text : std::get<std::vector<std::string>>(*attr)) Dim::parse(text).collect_symbols(names);
  return names;
}

std::map<std::string, const Node*> Graph::size_deciders() const {
  std::set<std::string> given;
  for (const Value* input : inputs_) {
    for (const Dim& dim : input->type.shape) dim.collect_symbols(given);
    if (input->symbolic)
      for (const Dim& dim : *input->symbolic) dim.collect_symbols(given);
  }
  std::map<std::string, const Node*> deciders;
  for (const Node* node : nodes_)
    for (const Value* output : node->outputs) {
      if (output->type.shape.is_static()) continue;
      std::set<std::string> symbols;
      for (const Dim& dim : output->type.shape) dim.collect_symbols(symbols);
      for (const std::string& symbol : symbols)
        if (!given.contains(symbol)) deciders.emplace(symbol, node);
    }
  return deciders;
}

size_t Graph::erase_dead() {
  std::unordered_set<const Node*> live;
  std::vector<const Node*> work;
  const auto mark = [&](const Value* value) {
    if (value != nullptr && value->producer != nullptr && live.insert(value->producer).second)
      work.push_back(value->producer);
  };
  for (const Value* value : outputs_) mark(value);
  // A node that decides a size lives as long as somebody uses the size, even if nobody reads its data.
  const std::map<std::string, const Node*> deciders = size_deciders();
  while (!work.empty()) {
    const Node* node = work.back();
    work.pop_back();
    for (const Value* value : node->inputs) mark(value);
    if (deciders.empty()) continue;
    for (const std::string& symbol : symbols_used(*node))
      if (const auto at = deciders.find(symbol); at != deciders.end() && live.insert(at->second).second)
        work.push_back(at->second);
  }
  std::vector<Node*> kept;
  size_t removed = 0;
  for (Node* node : nodes_) {
    if (live.contains(node)) {
      kept.push_back(node);
      continue;
    }
    for (size_t i = 0; i < node->inputs.size(); ++i) remove_use(node->inputs[i], node, i);
    node->inputs.clear();
    node->op = nullptr;
    ++removed;
  }
  nodes_ = std::move(kept);
  return removed;
}

void Graph::infer(Node* node) {
  for (Value* output : node->outputs) output->symbolic = nullptr;
  const auto unknown = [](const Value* input) { return input != nullptr && !input->type.ranked; };
  if (!node->op->traits.any_rank && std::any_of(node->inputs.begin(), node->inputs.end(), unknown))
    return infer_unranked(*node);
  InferContext context(*node);
  try {
    if (node->op->infer != nullptr) node->op->infer(context);
    else if (node->op->is_pointwise()) infer_pointwise(context);
    else throw InternalError(fmt::format("{} has no shape inference", node->op->name));
  } catch (const std::out_of_range&) {
    throw Error(fmt::format("the attributes or operands of {} are lists of contradictory lengths", node->op->name),
                "export the model again; `python -m onnx.checker` examines one");
  }
}

void Graph::infer_all() {
  for (Node* node : nodes_) infer(node);
}

void Graph::sort() {
  // Depth-first from the present order keeps nodes where they are unless a producer must move before them.
  enum class Mark : uint8_t { none, open, done };
  std::unordered_map<const Node*, Mark> marks;
  std::vector<Node*> order;
  struct Frame {
    Node* node;
    size_t next;
  };
  std::vector<Frame> stack;
  for (Node* root : nodes_) {
    if (marks[root] == Mark::done) continue;
    stack.push_back({root, 0});
    marks[root] = Mark::open;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.node->inputs.size()) {
        marks[frame.node] = Mark::done;
        order.push_back(frame.node);
        stack.pop_back();
        continue;
      }
      const Value* value = frame.node->inputs[frame.next++];
      Node* producer = value == nullptr ? nullptr : value->producer;
      if (producer == nullptr || marks[producer] == Mark::done) continue;
      HONE_CHECK(marks[producer] != Mark::open, "the graph has a cycle through node {}", producer->name);
      marks[producer] = Mark::open;
      stack.push_back({producer, 0});
    }
  }
  nodes_ = std::move(order);
}

std::string Graph::unique_name(std::string_view base) const {
  std::unordered_set<std::string_view> taken;
  for (const Value& value : state_->values) taken.insert(value.name);
  if (!taken.contains(base)) return std::string(base);
  int& counter = state_->name_counters[std::string(base)];
  while (true)
    if (std::string candidate = fmt::format("{}_{}", base, ++counter); !taken.contains(candidate)) return candidate;
}

void Graph::verify() const {
  std::unordered_set<const Value*> defined(inputs_.begin(), inputs_.end());
  std::set<std::string_view> interface;
  for (const Value* value : inputs_)
    HONE_ASSERT(interface.insert(value->name).second, "two graph inputs are called {}", value->name);
  for (const Node* node : nodes_) {
    HONE_ASSERT(node->op != nullptr, "node {} was erased but is listed", node->name);
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const Value* value = node->inputs[i];
      if (value == nullptr) continue;
      HONE_ASSERT(value->is_constant() || defined.contains(value), "{} ({}) uses {} before it is defined", node->name,
                  node->op->name, value->label());
      HONE_ASSERT(
          std::find(value->uses.begin(), value->uses.end(), Use{const_cast<Node*>(node), i}) != value->uses.end(),
          "use of {} by {} is not recorded", value->label(), node->name);
    }
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      const Value* value = node->outputs[i];
      HONE_ASSERT(value->producer == node && value->index == i, "result {} of {} names another producer",
                  value->label(), node->name);
      HONE_ASSERT(defined.insert(value).second, "{} is defined twice", value->label());
    }
  }
  for (const Value* value : outputs_)
    HONE_ASSERT(value->is_constant() || defined.contains(value), "graph output {} is not defined", value->label());
}

Graph Graph::clone() const {
  Graph copy;
  copy.name = name;
  copy.state_->brought = state_->brought;
  std::unordered_map<const Value*, Value*> map;
  const auto copy_of = [&](const Value* value) -> Value* {
    if (value == nullptr) return nullptr;
    Value*& made = map[value];
    if (made == nullptr) {
      HONE_ASSERT(value->is_constant(), "{} is used before it is defined", value->label());
      made = copy.add_constant(*value->constant, value->name);
    }
    return made;
  };
  for (const Value* value : inputs_) {
    map[value] = copy.add_input(value->name, value->type);
    map[value]->symbolic = value->symbolic;
  }
  for (const Node* node : nodes_) {
    Node* made = &copy.state_->nodes.emplace_back();
    made->op = node->op;
    made->attrs = node->attrs;
    made->name = node->name;
    made->origin = node->origin;
    for (const auto& body : node->bodies) made->bodies.push_back(std::make_unique<Graph>(body->clone()));
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      Value* input = copy_of(node->inputs[i]);
      made->inputs.push_back(input);
      if (input != nullptr) input->uses.push_back({made, i});
    }
    for (const Value* output : node->outputs) {
      Value* value = copy.new_value();
      *value = Value{.name = output->name,
                     .type = output->type,
                     .producer = made,
                     .index = output->index,
                     .uses = {},
                     .constant = {},
                     .symbolic = output->symbolic};
      made->outputs.push_back(value);
      map[output] = value;
    }
    copy.nodes_.push_back(made);
  }
  for (const Value* value : outputs_) copy.outputs_.push_back(copy_of(value));
  return copy;
}

namespace {

TensorType substituted(TensorType type, const SymbolValues& values) {
  type.shape = type.shape.substitute(values);
  if (type.element != nullptr) type.element = std::make_shared<const TensorType>(substituted(*type.element, values));
  return type;
}

/// Inputs of bodies carry the integer contents of what they capture.
void specialize_input(Value& input, const SymbolValues& values) {
  input.type = substituted(std::move(input.type), values);
  if (input.symbolic == nullptr) return;
  SymbolicData data;
  for (const Dim& dim : *input.symbolic) data.push_back(dim.substitute(values));
  input.symbolic = std::make_shared<const SymbolicData>(std::move(data));
}

}  // namespace

Graph Graph::specialize(const SymbolValues& values) const {
  Graph copy = clone();
  for (Value* input : copy.inputs_) specialize_input(*input, values);
  for (Node* node : copy.nodes_) {
    // Sizes written as texts are expressions over the same symbols.
    for (const char* list : kSizeTexts)
      if (const AttrValue* attr = node->attrs.find(list);
          attr != nullptr && node->op->custom == nullptr && std::holds_alternative<std::vector<std::string>>(*attr)) {
        std::vector<std::string> texts;
        for (const std::string& text : std::get<std::vector<std::string>>(*attr))
          texts.push_back(Dim::parse(text).substitute(values).text());
        node->attrs.set(list, std::move(texts));
      }
    for (auto& body : node->bodies) *body = body->specialize(values);
    copy.infer(node);
  }
  return copy;
}

}  // namespace hone
