// SPDX-License-Identifier: Apache-2.0
#include "edit/changes/context_parallel.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "edit/changes/change.h"
#include "edit/changes/clean.h"
#include "edit/changes/pattern.h"
#include "edit/infer.h"
#include "edit/names.h"

namespace hone::edit {
namespace {

Pattern pattern_of(AttentionForm form) {
  if (form == AttentionForm::plain) return parse_pattern("MatMul(Softmax(MatMul($q, $k)), $v)");
  return parse_pattern(
      "$s = Cast(Div($one, Cast(Sqrt(Cast(Slice(Shape($q), $from, $to)))))); "
      "MatMul(Softmax(MatMul(Mul($q, Sqrt($s)), Mul($k, Sqrt($s)))), $v)");
}

struct Attention {
  std::string q, k, v;    // as the pattern calls them
  size_t scores, result;  // positions of the two MatMuls
};

std::vector<Attention> attentions(const Graph& graph, AttentionForm form) {
  const Index index(graph);
  std::vector<Attention> found;
  for (const Match& match : find_matches(graph, pattern_of(form))) {
    const size_t result = match.nodes[0], softmax = index.producer.at(graph.nodes[result].inputs[0]);
    found.push_back({match.tensors.at("q"), match.tensors.at("k"), match.tensors.at("v"),
                     index.producer.at(graph.nodes[softmax].inputs[0]), result});
  }
  return found;
}

/// Inputs of the graph that nodes depend on, and outputs that depend on them: up to the first output of each path.
class Ends {
 public:
  explicit Ends(const Graph& graph) : graph_(graph), index_(graph) {}

  void add(size_t node) {
    go(node, before_, [&](const Node& at, std::vector<size_t>& next) {
      for (const std::string& tensor : reads_of(at))
        if (index_.inputs.contains(tensor)) inputs_.insert(tensor);
        else if (const auto producer = index_.producer.find(tensor); producer != index_.producer.end())
          next.push_back(producer->second);
    });
    go(node, behind_, [&](const Node& at, std::vector<size_t>& next) {
      for (const std::string& tensor : at.outputs)
        if (index_.outputs.contains(tensor)) outputs_.insert(tensor);
        else if (const auto readers = index_.consumers.find(tensor); readers != index_.consumers.end())
          next.insert(next.end(), readers->second.begin(), readers->second.end());
    });
  }
  std::vector<std::string> inputs() const { return ordered(graph_.inputs, inputs_); }
  std::vector<std::string> outputs() const { return ordered(graph_.outputs, outputs_); }

 private:
  template <typename Step>
  void go(size_t node, std::set<size_t>& seen, const Step& step) const {
    std::vector<size_t> waiting{node};
    while (!waiting.empty()) {
      const size_t at = waiting.back();
      waiting.pop_back();
      if (seen.insert(at).second) step(graph_.nodes[at], waiting);
    }
  }
  static std::vector<std::string> ordered(const std::vector<Value>& values, const std::set<std::string>& chosen) {
    std::vector<std::string> names;
    for (const Value& value : values)
      if (chosen.contains(value.name)) names.push_back(value.name);
    return names;
  }

  const Graph& graph_;
  const Index index_;
  std::set<size_t> before_, behind_;
  std::set<std::string> inputs_, outputs_;
};

std::optional<int64_t> rank_of(const KnownTypes& known, const std::string& tensor) {
  const std::optional<ValueType> type = known.of(tensor);
  if (!type || !type->sizes || type->sizes->empty()) return std::nullopt;
  return static_cast<int64_t>(type->sizes->size());
}

ShardedTensor hint_of(const KnownTypes& known, const std::string& tensor, int64_t axis, std::optional<int64_t> rank) {
  ShardedTensor hint{tensor, axis, rank_of(known, tensor)};
  if (!hint.rank) hint.rank = rank;
  if (const std::optional<ValueType> type = known.of(tensor); type && type->sizes)
    for (size_t i = 0; i < type->sizes->size(); ++i)
      if (const std::string& name = (*type->sizes)[i].name; name == "sequence_length" || name == "seq_len") {
        hint.axis = static_cast<int64_t>(i);
        break;
      }
  return hint;
}

class Sharder {
 public:
  Sharder(Model& model, const ShardHints& hints)
      : model_(model), hints_(hints), known_(model), taken_(tensor_names(model.graph)) {}

  size_t run(AttentionForm form) {
    std::map<std::string, std::string> now;  // inputs, by what they are called behind their scattering
    for (const ShardedTensor& input : hints_.inputs) {
      need(input.name);
      now[input.name] = moved(input.name, "reduce_scatter", hints_.collective.reduce, input.axis, input.rank);
    }
    size_t count = 0;
    bool whole = false;  // what comes out is no part of a sequence
    const std::vector<Attention> all = attentions(model_.graph, form);
    for (const ShardedAttention& layer : hints_.layers) {
      whole |= layer.gather_q;
      need(layer.q);
      const auto scattered = now.find(layer.q);
      for (const Attention& attention : all) {
        if (attention.q != (scattered == now.end() ? layer.q : scattered->second)) continue;
        if (layer.replace) fuse(attention, *layer.replace);
        else whole |= gather(attention, layer);
        ++count;
      }
    }
    if (!whole)
      for (const ShardedTensor& output : hints_.outputs) {
        need(output.name);
        gathered(output.name, output.axis, output.rank);
      }
    model_.graph.values.clear();  // sizes of what is a part now
    clean(model_);
    sort_nodes(model_);
    return count;
  }

 private:
  void need(const std::string& tensor) const { need_tensor(model_.graph, Index(model_.graph), tensor); }

  std::string fresh() { return fresh_name(taken_, "shard"); }

  void add(const std::string& op, const std::string& input, const std::string& output,
           const std::vector<std::pair<std::string, AttributeValue>>& attributes) {
    Node node;
    node.name = output + "_" + op;
    node.op_type = op;
    node.inputs = {input};
    node.outputs = {output};
    for (const auto& [name, value] : attributes) node.attributes.push_back(make_attribute(model_, name, value));
    model_.graph.nodes.push_back(std::move(node));
  }

  /// Who reads the tensor reads what the node makes of it; an output of the graph keeps its name. What it is called then.
  std::string behind(const std::string& tensor, const std::string& op,
                     const std::vector<std::pair<std::string, AttributeValue>>& attributes) {
    std::string other = fresh();
    if (std::ranges::find(model_.graph.outputs, tensor, &Value::name) == model_.graph.outputs.end()) {
      replace_uses(model_.graph, tensor, other);
      add(op, tensor, other, attributes);
      return other;
    }
    bool made = false;
    for (Node& node : model_.graph.nodes)
      for (std::string& output : node.outputs)
        if (output == tensor) {
          output = other;
          made = true;
        }
    if (!made) throw Error(fmt::format("{} is an output that no node makes: there is nothing to gather", tensor));
    add(op, other, tensor, attributes);
    return tensor;
  }

  /// Collectives work on the first axis: another one is exchanged with it before and back behind.
  std::string moved(const std::string& tensor, const std::string& operation, const std::string& reduce, int64_t axis,
                    std::optional<int64_t> rank) {
    const Collective& with = hints_.collective;
    const std::vector<std::pair<std::string, AttributeValue>> collective{
        {"group_size", with.group_size},     {"root", with.root},    {"nb_rank", with.ranks}, {"reduce_op", reduce},
        {"collective_operation", operation}, {"groups", with.groups}};
    if (axis == 0) return behind(tensor, "DistCollective", collective);
    if (!rank) rank = rank_of(known_, tensor);
    if (!rank)
      throw Error(
          fmt::format("the rank of {} is not known, and its axis {} is to be exchanged with the first", tensor, axis),
          "give the rank in the hints: \"rank\" of inputs and outputs, \"kv_rank\" of keys and values");
    if (axis < 0 || axis >= *rank || *rank > 64)
      throw Error(fmt::format("{} is said to have {} axes; there is none with number {}", tensor, *rank, axis),
                  "correct seq_len_idx or the rank in the hints");
    std::vector<int64_t> order(static_cast<size_t>(*rank));
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[0], order[static_cast<size_t>(axis)]);
    const std::string first = behind(tensor, "Transpose", {{"perm", order}});
    return behind(behind(first, "DistCollective", collective), "Transpose", {{"perm", order}});
  }
  void gathered(const std::string& tensor, int64_t axis, std::optional<int64_t> rank) {
    complete_.insert(moved(tensor, "all_gather", "none", axis, rank));
  }

  /// Whether queries are whole, too, because they are the keys or the values.
  bool gather(const Attention& attention, const ShardedAttention& layer) {
    const auto operand = [&](size_t node, size_t i) { return model_.graph.nodes[node].inputs[i]; };
    const std::string q = operand(attention.scores, 0), k = operand(attention.scores, 1),
                      v = operand(attention.result, 1);
    const auto one = [&](bool wanted, const std::string& tensor, int64_t axis, std::optional<int64_t> rank) {
      if (wanted && !complete_.contains(tensor)) gathered(tensor, axis, rank);
    };
    one(layer.gather_q, q, 0, std::nullopt);
    // What was gathered has another name now.
    one(layer.gather_kv, operand(attention.scores, 1), hints_.k_axis, hints_.kv_rank);
    one(layer.gather_kv, operand(attention.result, 1), hints_.v_axis, hints_.kv_rank);
    return layer.gather_kv && (q == k || q == v);
  }

  /// One operator in the place of the layer; the nodes that only it read go when the graph is cleaned.
  void fuse(const Attention& attention, const FusedAttention& fused) {
    Node& result = model_.graph.nodes[attention.result];
    result.op_type = "Attention";
    result.attributes.clear();
    for (const auto& [name, value] :
         std::initializer_list<std::pair<const char*, AttributeValue>>{{"is_causal", int64_t{fused.causal}},
                                                                       {"scale", 1.0},
                                                                       {"TRT_decomposable", int64_t{0}},
                                                                       {"nb_rank", fused.ranks}})
      result.attributes.push_back(make_attribute(model_, name, value));
    result.inputs = {attention.q, attention.k, attention.v};
    const std::vector<int64_t>* shuffles[] = {&fused.q_shuffle, &fused.k_shuffle, &fused.v_shuffle};
    for (size_t i = 0; i < 3; ++i) {
      if (shuffles[i]->empty()) continue;
      const std::string turned = fresh(), from = model_.graph.nodes[attention.result].inputs[i];
      add("Transpose", from, turned, {{"perm", *shuffles[i]}});
      model_.graph.nodes[attention.result].inputs[i] = turned;
    }
  }

  Model& model_;
  const ShardHints& hints_;
  const KnownTypes known_;
  std::unordered_set<std::string> taken_;
  std::set<std::string> complete_;  // what was gathered
};

}  // namespace

ShardHints shard_hints(const Model& model, const HintRequest& request) {
  const KnownTypes known(model);
  ShardHints hints;
  hints.collective = request.collective;
  hints.k_axis = request.k_axis;
  hints.v_axis = request.v_axis;
  Ends ends(model.graph);
  for (const Attention& attention : attentions(model.graph, request.form)) {
    hints.layers.push_back({attention.q, !request.replace.has_value(), false, request.replace});
    if (!hints.kv_rank) hints.kv_rank = rank_of(known, attention.k);
    if (!hints.kv_rank) hints.kv_rank = rank_of(known, attention.v);
    if (request.suggests_ends) ends.add(attention.result);
  }
  if (!hints.kv_rank) hints.kv_rank = request.kv_rank;
  for (const std::string& input : ends.inputs())
    hints.inputs.push_back(hint_of(known, input, request.input_axis, request.input_rank));
  for (const std::string& output : ends.outputs())
    hints.outputs.push_back(hint_of(known, output, request.output_axis, request.output_rank));
  return hints;
}

size_t shard(Model& model, const ShardHints& hints, AttentionForm form) { return Sharder(model, hints).run(form); }

}  // namespace hone::edit
