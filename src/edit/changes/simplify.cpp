// SPDX-License-Identifier: Apache-2.0
#include "edit/changes/simplify.h"

#include <algorithm>
#include <cmath>

#include "edit/changes/change.h"
#include "edit/changes/clean.h"
#include "edit/names.h"
#include "edit/parts.h"
#include "onnx/proto.h"

namespace hone::edit {
namespace {

constexpr int64_t kInt32 = 6, kInt64 = 7;

/// Which values a type holds: bits beside the sign, of floats those of the significand, and how far exponents go.
struct Range {
  int64_t type;
  bool is_signed;
  int bits, exponent;  // exponent 0: integers
};
constexpr Range kRanges[] = {{2, false, 8, 0},  {3, true, 7, 0},  {4, false, 16, 0},  {5, true, 15, 0},
                             {6, true, 31, 0},  {7, true, 63, 0}, {12, false, 32, 0}, {13, false, 64, 0},
                             {10, true, 11, 5}, {16, true, 8, 8}, {1, true, 24, 8},   {11, true, 53, 11}};

const Range* range_of(int64_t type) {
  const auto at = std::ranges::find(kRanges, type, &Range::type);
  return at == std::end(kRanges) ? nullptr : at;
}

/// Whether each value of one type is one of another type's.
bool holds(int64_t wide, int64_t narrow) {
  if (wide == narrow) return true;
  const Range *to = range_of(wide), *from = range_of(narrow);
  if (to == nullptr || from == nullptr || (from->is_signed && !to->is_signed) || to->bits < from->bits) return false;
  if (from->exponent != 0) return to->exponent >= from->exponent;
  return to->exponent == 0 || to->exponent > 5;  // the exponents of f16 end below 2^16
}

int64_t target_of(const Node& cast) {
  const Attribute* to = cast.attribute("to");
  return to == nullptr ? 0
                       : onnx::parse_attribute(std::as_bytes(std::span(to->bytes.data(), to->bytes.size()))).integer;
}

bool is_cast(const Node& node) {
  return node.op_type == "Cast" && node.domain.empty() && node.inputs.size() == 1 && node.outputs.size() == 1;
}

class Casts {
 public:
  explicit Casts(Model& model) : model_(model), graph_(model.graph), known_(model) {}

  size_t drop() {
    const auto casts = [&] { return static_cast<size_t>(std::ranges::count_if(graph_.nodes, is_cast)); };
    const size_t before = casts();
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (computes_integers(graph_.nodes[i])) leave_integers(i);
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (is_cast(graph_.nodes[i])) skip_one_before(i);
    remove_unread();
    return before - casts();
  }

 private:
  static bool computes_integers(const Node& node) {
    constexpr std::string_view kOps[] = {"Add", "Sub", "Mul", "Max", "Min", "Concat"};
    return node.domain.empty() && node.outputs.size() == 1 && std::ranges::find(kOps, node.op_type) != std::end(kOps);
  }
  int64_t type_of(const std::string& tensor) const {
    const std::optional<ValueType> type = known_.of(tensor);
    return type && type->is_tensor ? type->element : 0;
  }
  const Node* cast_before(const Index& index, const std::string& tensor) const {
    const auto at = index.producer.find(tensor);
    return at != index.producer.end() && is_cast(graph_.nodes[at->second]) ? &graph_.nodes[at->second] : nullptr;
  }
  void skip_one_before(size_t at) {
    const Index index(graph_);
    const Node* first = cast_before(index, graph_.nodes[at].inputs[0]);
    if (first == nullptr) return;
    const std::string source = first->inputs[0], result = graph_.nodes[at].outputs[0];
    const int64_t type = type_of(source);
    if (type == 0 || !holds(target_of(*first), type)) return;
    if (target_of(graph_.nodes[at]) == type && !index.outputs.contains(result)) replace_uses(graph_, result, source);
    else graph_.nodes[at].inputs[0] = source;
  }

  /// The operands as integers, where each is one or a whole number; nothing otherwise.
  std::optional<std::vector<std::string>> integer_operands(const Node& node, const Index& index, int64_t type) {
    std::vector<std::string> operands;
    bool any = false;
    for (const std::string& input : node.inputs) {
      const Node* cast = cast_before(index, input);
      const Range* through = cast == nullptr ? nullptr : range_of(target_of(*cast));
      if (through != nullptr && through->exponent != 0 && type_of(cast->inputs[0]) == type) {
        operands.push_back(cast->inputs[0]);
        any = true;
      } else if (const auto at = index.weight.find(input); at != index.weight.end() && !index.inputs.contains(input)) {
        const std::optional<std::string> whole = whole_weight(graph_.weights[at->second], type);
        if (!whole) return std::nullopt;
        operands.push_back(*whole);
      } else {
        return std::nullopt;
      }
    }
    return any ? std::optional(operands) : std::nullopt;
  }
  /// The name of a weight of the same numbers as integers.
  std::optional<std::string> whole_weight(const Weight& weight, int64_t type) {
    constexpr int64_t kMost = 1 << 16;  // elements
    constexpr double kExact = 1 << 24;
    if ((weight.type != 1 && weight.type != 11) || element_count(weight) > kMost || !has_elements(weight))
      return std::nullopt;
    const Tensor floats = tensor_of(model_, weight);
    std::vector<int64_t> values;
    for (int64_t i = 0; i < floats.size(); ++i) {
      const double value = floats.real(i);
      if (!(std::fabs(value) <= kExact) || value != std::rint(value)) return std::nullopt;
      values.push_back(static_cast<int64_t>(value));
    }
    std::unordered_set<std::string> taken = tensor_names(graph_);
    const std::string name = fresh_name(taken, weight.name + "_whole");
    Tensor whole = Tensor::of<int64_t>(floats.dims(), values);
    if (type == kInt32) whole = Tensor::of<int32_t>(floats.dims(), std::vector<int32_t>(values.begin(), values.end()));
    graph_.weights.push_back(make_weight(model_, name, whole));
    return name;
  }
  void leave_integers(size_t at) {
    const Index index(graph_);
    const std::string result = graph_.nodes[at].outputs[0];
    const auto readers = index.consumers.find(result);
    if (index.outputs.contains(result) || readers == index.consumers.end()) return;
    int64_t type = 0;
    for (const size_t reader : readers->second) {
      const Node& cast = graph_.nodes[reader];
      if (!is_cast(cast) || (type != 0 && target_of(cast) != type)) return;
      type = target_of(cast);
    }
    if (type != kInt32 && type != kInt64) return;
    const std::optional<std::vector<std::string>> operands = integer_operands(graph_.nodes[at], index, type);
    if (!operands) return;
    graph_.nodes[at].inputs = *operands;
    std::erase_if(graph_.values, [&](const Value& value) { return value.name == result; });  // it was declared a float
    for (const size_t reader : readers->second)
      if (const std::string& cast = graph_.nodes[reader].outputs[0]; !index.outputs.contains(cast))
        replace_uses(graph_, std::string(cast), result);
  }
  void remove_unread() {
    for (bool any = true; any;) {
      const Index index(graph_);
      std::vector<bool> gone;
      for (const Node& node : graph_.nodes)
        gone.push_back(is_cast(node) && !index.consumers.contains(node.outputs[0]) &&
                       !index.outputs.contains(node.outputs[0]));
      any = std::ranges::find(gone, true) != gone.end();
      remove_nodes(graph_, gone);
    }
  }

  Model& model_;
  Graph& graph_;
  const KnownTypes known_;
};

/// Every name in a graph and in the bodies inside of it.
void all_names(const Graph& graph, std::unordered_set<std::string>& names) {
  names.merge(tensor_names(graph));
  for (const Node& node : graph.nodes)
    for (const Attribute& attribute : node.attributes)
      for (const auto& body : attribute.bodies) all_names(*body, names);
}

/// What an If does, as nodes that make its results. The graph does not hold the If any more.
std::vector<Node> taken_branch(Graph& graph, const Node& choice, Graph branch) {
  std::unordered_set<std::string> taken(choice.outputs.begin(), choice.outputs.end()), every;
  all_names(graph, taken);
  all_names(branch, every);
  every.insert(taken.begin(), taken.end());
  std::unordered_set<std::string> made;
  for (const Node& node : branch.nodes) made.insert(node.outputs.begin(), node.outputs.end());
  made.erase("");
  std::vector<std::string> own(made.begin(), made.end());
  for (const Weight& weight : branch.weights) own.push_back(weight.name);
  for (const Value& sparse : branch.sparse) own.push_back(sparse.name);
  std::ranges::sort(own);
  const auto rename = [&](const std::string& from, const std::string& to) {
    rename_tensor(branch, from, to);
    if (made.erase(from) != 0) made.insert(to);
  };
  for (const std::string& name : own)
    if (!taken.insert(name).second) rename(name, fresh_name(every, name));
  std::vector<Node> aliases;
  for (size_t i = 0; i < choice.outputs.size() && i < branch.outputs.size(); ++i) {
    const std::string result = choice.outputs[i], from = branch.outputs[i].name;
    if (result.empty()) continue;
    if (made.contains(from)) {
      rename(from, result);
      made.erase(result);  // a second result of this name is another tensor
    } else {
      Node& alias = aliases.emplace_back();
      alias.name = result + "_Identity";
      alias.op_type = "Identity";
      alias.inputs = {from};
      alias.outputs = {result};
    }
  }
  const auto known = [&](const Value& value) {
    return std::ranges::find(choice.outputs, value.name) == choice.outputs.end();
  };
  std::ranges::move(branch.weights, std::back_inserter(graph.weights));
  std::ranges::move(branch.sparse, std::back_inserter(graph.sparse));
  std::ranges::copy_if(branch.values, std::back_inserter(graph.values), known);
  std::ranges::move(aliases, std::back_inserter(branch.nodes));
  return std::move(branch.nodes);
}

/// The branch that is taken; null where the condition is not known.
const Graph* known_branch(const Model& model, const Index& index, const Node& node) {
  if (node.op_type != "If" || !node.domain.empty() || node.inputs.size() != 1 || index.inputs.contains(node.inputs[0]))
    return nullptr;
  const auto at = index.weight.find(node.inputs[0]);
  if (at == index.weight.end() || !has_elements(model.graph.weights[at->second])) return nullptr;
  const Tensor condition = tensor_of(model, model.graph.weights[at->second]);
  if (condition.size() != 1 || condition.dtype() != DType::boolean) return nullptr;
  const Attribute* branch = node.attribute(condition.real(0) != 0 ? "then_branch" : "else_branch");
  if (branch == nullptr || branch->bodies.size() != 1 || branch->bodies[0]->outputs.size() < node.outputs.size())
    return nullptr;
  return branch->bodies[0].get();
}

}  // namespace

size_t drop_casts(Model& model) {
  if (std::ranges::none_of(model.graph.nodes, is_cast)) return 0;
  return Casts(model).drop();
}

size_t flatten_ifs(Model& model) {
  size_t count = 0;
  for (size_t i = 0; i < model.graph.nodes.size(); ++i) {
    if (model.graph.nodes[i].op_type != "If") continue;
    const Index index(model.graph);
    const Node choice = model.graph.nodes[i];  // holds its bodies once the graph does not
    const Graph* branch = known_branch(model, index, choice);
    if (branch == nullptr) continue;
    model.graph.nodes.erase(model.graph.nodes.begin() + static_cast<std::ptrdiff_t>(i));
    std::vector<Node> nodes = taken_branch(model.graph, choice, deep_copy(*branch));
    model.graph.nodes.insert(model.graph.nodes.begin() + static_cast<std::ptrdiff_t>(i),
                             std::make_move_iterator(nodes.begin()), std::make_move_iterator(nodes.end()));
    ++count;
    --i;  // the branch may hold Ifs, too
  }
  return count;
}

}  // namespace hone::edit
