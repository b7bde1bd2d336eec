// SPDX-License-Identifier: Apache-2.0
//
// ONNX models that are edited, beside hone.hpp:
//
//   hone::Graph graph = hone::Graph::load("model.onnx");
//   graph.replace("Max(Min($x, $hi), $lo)", "Clip($x, $lo, $hi)");
//   graph.fold();
//   graph.cleanup();
//   graph.sort();                                    // throws Error with the nodes of a cycle
//   graph.save("new.onnx");
//
//   hone::Graph made(17);
//   made.declare(HONE_GRAPH_INPUTS, {"x", HONE_ONNX_FLOAT, {{"batch", 4}}});
//   made.set_weight("w", hone::Value::tensor({4, 8}, std::span<const float>(weights)));
//   made.add("MatMul", {"x", "w"}, {"y"});
//   made.declare(HONE_GRAPH_OUTPUTS, {"y", HONE_ONNX_FLOAT});
//
// Tensors are known by their names, nodes by their position. Bodies and functions are graphs of their own: values, that are put back.
#pragma once

#include <algorithm>
#include <optional>
#include <variant>

#include "hone/graph.h"
#include "hone/hone.hpp"

namespace hone {

/// ONNX's numbers of element types that programs use most; any other is an int, too.
enum OnnxType {
  HONE_ONNX_FLOAT = 1,
  HONE_ONNX_UINT8 = 2,
  HONE_ONNX_INT8 = 3,
  HONE_ONNX_INT32 = 6,
  HONE_ONNX_INT64 = 7,
  HONE_ONNX_BOOL = 9,
  HONE_ONNX_FLOAT16 = 10,
  HONE_ONNX_BFLOAT16 = 16
};

/// A number, a name, or "" for what is open.
using GraphSize = std::variant<int64_t, std::string>;

/// hone_graph_tensor with texts of its own.
struct GraphTensor {
  std::string name;
  int type = 0;
  std::optional<std::vector<GraphSize>> sizes = {};
  std::string location = {};  // of the file that holds a weight's elements, where that is not the model
};

/// The function's parameter whose value an attribute takes; `kind` is ONNX's number.
struct GraphReference {
  std::string parameter;
  int kind = 1;
};

class Graph;

/// An attribute. A tensor or a body has to stay until it has been set.
struct GraphAttribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, std::vector<std::string>,
               const Value*, const Graph*, GraphReference>
      value;
};

/// hone_graph_node with texts of its own; `attributes` are those that variants above hold, others are in the graph alone.
struct GraphNode {
  std::string op, name, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<GraphAttribute> attributes;

  /// The attribute, if the node has it and it is a T.
  template <typename T>
  std::optional<T> get(std::string_view attribute) const {
    for (const GraphAttribute& each : attributes)
      if (each.name == attribute)
        if (const T* value = std::get_if<T>(&each.value)) return *value;
    return std::nullopt;
  }
};

struct GraphMatch {
  std::vector<size_t> nodes;  // the one that makes the result first
};

class Graph {
 public:
  explicit Graph(int64_t opset = 17) : Graph(hone_graph_create, opset) {}
  static Graph load(const std::string& onnx_path) { return Graph(hone_graph_create_from_file, onnx_path.c_str()); }
  /// External data lie in `folder`.
  static Graph parse(std::span<const std::byte> bytes, const std::string& folder = {}) {
    return Graph(hone_graph_create_from_memory, static_cast<const void*>(bytes.data()), bytes.size(),
                 folder.empty() ? nullptr : folder.c_str());
  }
  static Graph function(const std::string& domain, const std::string& name, int64_t opset = 17) {
    return Graph(hone_graph_create_function, domain.c_str(), name.c_str(), opset);
  }
  Graph copy() const { return Graph(hone_graph_create_copy, constant(), 1); }
  hone_graph* get() const noexcept { return handle_.get(); }

  /// The model as a file; of this object, until the next call.
  std::span<const std::byte> bytes() {
    const void* bytes = nullptr;
    size_t size = 0;
    check(hone_graph_bytes(get(), &bytes, &size));
    return {static_cast<const std::byte*>(bytes), size};
  }
  void save(const std::string& onnx_path) const { check(hone_graph_save(get(), onnx_path.c_str(), nullptr)); }
  /// Weights of at least so many bytes go into a file beside the model; "": one that is named after it.
  void save(const std::string& onnx_path, const std::string& data_file, int64_t threshold = 1024) const {
    auto options = detail::sized<hone_graph_save_options>();
    options.data_file = data_file.c_str();
    options.threshold = threshold;
    check(hone_graph_save(get(), onnx_path.c_str(), &options));
  }

  std::string text(hone_graph_word word) const {
    const char* text = nullptr;
    check(hone_graph_text(get(), word, &text));
    return text;
  }
  void set_text(hone_graph_word word, const std::string& text) {
    check(hone_graph_set_text(get(), word, text.c_str()));
  }
  /// 0: the operator set is not imported.
  int64_t opset(std::string_view of = "") const {
    for (size_t i = 0; i < hone_graph_opsets(get()); ++i) {
      const char* domain = nullptr;
      int64_t version = 0;
      check(hone_graph_opset(get(), i, &domain, &version));
      if (domain == of) return version;
    }
    return 0;
  }
  void set_opset(const std::string& domain, int64_t version) {
    check(hone_graph_set_opset(get(), domain.c_str(), version));
  }

  size_t size() const { return hone_graph_nodes(get()); }
  GraphNode node(size_t index) const {
    auto raw = detail::sized<hone_graph_node>();
    check(hone_graph_node_at(get(), index, &raw));
    GraphNode node{raw.op,
                   raw.name,
                   raw.domain,
                   {raw.inputs, raw.inputs + raw.input_count},
                   {raw.outputs, raw.outputs + raw.output_count},
                   {}};
    for (size_t i = 0; i < raw.attribute_count; ++i) {
      auto attribute = detail::sized<hone_graph_attribute>();
      check(hone_graph_attribute_at(get(), index, i, &attribute));
      if (auto value = value_of(attribute)) node.attributes.push_back({attribute.name, std::move(*value)});
    }
    return node;
  }
  std::vector<GraphNode> nodes() const {
    std::vector<GraphNode> all;
    for (size_t i = 0; i < size(); ++i) all.push_back(node(i));
    return all;
  }
  /// Of the node that makes a tensor.
  std::optional<size_t> producer(std::string_view tensor) const {
    return find([&](const GraphNode& node) { return std::ranges::find(node.outputs, tensor) != node.outputs.end(); });
  }
  /// Of the first node of this name.
  std::optional<size_t> find_node(std::string_view name) const {
    return find([&](const GraphNode& node) { return node.name == name; });
  }
  /// Behind the last; its position. "" among inputs and outputs stands for one that is left out.
  size_t add(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
             const std::vector<GraphAttribute>& attributes = {}, const std::string& name = {},
             const std::string& domain = {}) {
    const size_t at = size();
    put(at, {op, name, domain, inputs, outputs, attributes});
    return at;
  }
  /// In the place of another one, whose attributes it does not keep.
  void put(size_t index, const GraphNode& node) {
    const std::vector<const char*> in = pointers(node.inputs), out = pointers(node.outputs);
    auto raw = detail::sized<hone_graph_node>();
    raw.op = node.op.c_str();
    raw.name = node.name.c_str();
    raw.domain = node.domain.c_str();
    raw.inputs = in.data();
    raw.input_count = in.size();
    raw.outputs = out.data();
    raw.output_count = out.size();
    check(hone_graph_put_node(get(), index, &raw));
    for (const GraphAttribute& attribute : node.attributes) set(index, attribute);
  }
  /// Sets or adds an attribute.
  void set(size_t node, const GraphAttribute& attribute) {
    const RawAttribute raw(attribute);
    check(hone_graph_set_attribute(get(), node, &raw.raw));
  }
  void unset(size_t node, const std::string& attribute) {
    check(hone_graph_remove_attribute(get(), node, attribute.c_str()));
  }
  /// Nothing else is changed.
  void erase(size_t node) { check(hone_graph_remove_node(get(), node)); }
  /// A copy of a body of a node; set() with a const Graph* puts one back.
  Graph body(size_t node, std::string_view attribute, size_t index = 0) const {
    auto raw = detail::sized<hone_graph_node>();
    check(hone_graph_node_at(get(), node, &raw));
    const size_t count = raw.attribute_count;
    for (size_t i = 0; i < count; ++i) {
      auto found = detail::sized<hone_graph_attribute>();
      check(hone_graph_attribute_at(get(), node, i, &found));
      if (found.name == attribute) return Graph(hone_graph_create_from_body, constant(), node, i, index);
    }
    throw Error(HONE_ERROR, "the node has no attribute " + std::string(attribute), "node() lists those that it has");
  }

  std::vector<GraphTensor> tensors(hone_graph_list list) const {
    std::vector<GraphTensor> all;
    for (size_t i = 0; i < hone_graph_tensors(get(), list); ++i) {
      auto raw = detail::sized<hone_graph_tensor>();
      check(hone_graph_tensor_at(get(), list, i, &raw));
      GraphTensor& tensor = all.emplace_back(GraphTensor{raw.name, raw.type});
      if (raw.location != nullptr) tensor.location = raw.location;
      if (raw.rank >= 0) tensor.sizes.emplace();
      for (int axis = 0; axis < raw.rank; ++axis)
        if (raw.dims[axis] >= 0) tensor.sizes->emplace_back(raw.dims[axis]);
        else tensor.sizes->emplace_back(std::string(raw.symbols[axis] == nullptr ? "" : raw.symbols[axis]));
    }
    return all;
  }
  /// Of inputs, outputs and values: in the place of the one of its name, or behind the last.
  void declare(hone_graph_list list, const GraphTensor& tensor) {
    std::vector<int64_t> dims;
    std::vector<const char*> symbols;
    auto raw = detail::sized<hone_graph_tensor>();
    raw.name = tensor.name.c_str();
    raw.type = tensor.type;
    raw.rank = tensor.sizes ? static_cast<int>(tensor.sizes->size()) : -1;
    for (int axis = 0; axis < raw.rank; ++axis) {
      const GraphSize& size = (*tensor.sizes)[static_cast<size_t>(axis)];
      const auto* number = std::get_if<int64_t>(&size);
      const auto* called = std::get_if<std::string>(&size);
      dims.push_back(number == nullptr ? -1 : *number);
      symbols.push_back(called == nullptr || called->empty() ? nullptr : called->c_str());
    }
    raw.dims = dims.data();
    raw.symbols = symbols.data();
    check(hone_graph_put_tensor(get(), list, &raw));
  }
  void remove(hone_graph_list list, const std::string& name) {
    check(hone_graph_remove_tensor(get(), list, name.c_str()));
  }
  void set_weight(const std::string& name, const Value& value) {
    check(hone_graph_put_weight(get(), name.c_str(), value.get()));
  }
  /// The elements of a weight: read(value, elements) of what is made for the call.
  template <typename Read>
  void read_weight(std::string_view name, const Read& read) const {
    for (size_t i = 0; i < hone_graph_tensors(get(), HONE_GRAPH_WEIGHTS); ++i) {
      auto raw = detail::sized<hone_graph_tensor>();
      check(hone_graph_tensor_at(get(), HONE_GRAPH_WEIGHTS, i, &raw));
      if (raw.name != name) continue;
      hone_value* value = nullptr;
      check(hone_graph_elements(get(), &raw, &value));
      const std::unique_ptr<hone_value, detail::Destroy> owner(value);
      read(static_cast<const hone_value*>(value));
      return;
    }
    throw Error(HONE_ERROR, "the graph has no weight " + std::string(name), "tensors(HONE_GRAPH_WEIGHTS) lists them");
  }

  std::vector<Graph> functions() const {
    std::vector<Graph> all;
    for (size_t i = 0; i < hone_graph_functions(get()); ++i)
      all.push_back(Graph(hone_graph_create_from_function, constant(), i));
    return all;
  }
  void put_function(const Graph& function) { check(hone_graph_put_function(get(), function.get())); }
  /// Of a function: an attribute with the value that holds where a call gives none.
  void put_parameter(const GraphAttribute& parameter) {
    const RawAttribute raw(parameter);
    check(hone_graph_put_parameter(get(), &raw.raw));
  }
  /// ... and one that every call has to give.
  void require_parameter(const std::string& name) {
    auto raw = detail::sized<hone_graph_attribute>();
    raw.name = name.c_str();
    check(hone_graph_put_parameter(get(), &raw));
  }

  void rename(const std::string& from, const std::string& to) {
    check(hone_graph_rename(get(), from.c_str(), to.c_str()));
  }
  void replace_uses(const std::string& from, const std::string& to) {
    check(hone_graph_replace_uses(get(), from.c_str(), to.c_str()));
  }
  /// How many nodes were removed.
  size_t cleanup() { return counted(hone_graph_cleanup); }
  void sort() { check(hone_graph_sort(get())); }
  /// Until nothing is left to fold; how many nodes. 0 bytes: results may be of any size.
  size_t fold(bool shapes = true, int64_t most_bytes = 0) {
    auto options = detail::sized<hone_graph_fold_options>();
    options.keep_shapes = !shapes;
    options.most_bytes = most_bytes;
    size_t all = 0, folded = 0;
    do {
      check(hone_graph_fold(get(), &options, &folded));
      all += folded;
    } while (folded != 0);
    return all;
  }
  /// How many declared types changed; `values`: of results inside, too.
  size_t infer_shapes(bool values = false) {
    size_t changed = 0;
    check(hone_graph_infer_shapes(get(), values, &changed));
    return changed;
  }
  std::vector<GraphMatch> match(const std::string& pattern) {
    size_t count = 0;
    check(hone_graph_match(get(), pattern.c_str(), &count));
    std::vector<GraphMatch> all(count);
    for (size_t i = 0; i < count; ++i) {
      const size_t* nodes = nullptr;
      size_t members = 0;
      check(hone_graph_match_nodes(get(), i, &nodes, &members));
      all[i].nodes.assign(nodes, nodes + members);
    }
    return all;
  }
  /// The tensor that a name of the pattern that was looked for last stands for.
  std::string matched(size_t match, const std::string& name) const {
    const char* tensor = nullptr;
    check(hone_graph_match_tensor(get(), match, name.c_str(), &tensor));
    return tensor;
  }
  /// How many places were changed.
  size_t replace(const std::string& pattern, const std::string& by) {
    size_t count = 0;
    check(hone_graph_replace(get(), pattern.c_str(), by.c_str(), &count));
    return count;
  }

 private:
  using Attributed = decltype(GraphAttribute::value);

  struct Destroy {
    void operator()(hone_graph* graph) const noexcept { hone_graph_destroy(graph); }
  };

  /// What the C interface's struct points to.
  struct RawAttribute {
    explicit RawAttribute(const GraphAttribute& from) {
      constexpr int kKinds[] = {2, 1, 3, 7, 6, 8, 4, 5};
      raw.name = from.name.c_str();
      if (const auto* reference = std::get_if<GraphReference>(&from.value)) {
        raw.kind = reference->kind;
        raw.reference = reference->parameter.c_str();
        return;
      }
      raw.kind = kKinds[from.value.index()];
      if (const auto* integer = std::get_if<int64_t>(&from.value)) raw.integer = *integer;
      if (const auto* real = std::get_if<float>(&from.value)) raw.real = *real;
      if (const auto* text = std::get_if<std::string>(&from.value)) add(*text);
      if (const auto* list = std::get_if<std::vector<std::string>>(&from.value))
        for (const std::string& text : *list) add(text);
      if (const auto* integers = std::get_if<std::vector<int64_t>>(&from.value)) {
        raw.integers = integers->data();
        raw.count = integers->size();
      }
      if (const auto* reals = std::get_if<std::vector<float>>(&from.value)) {
        raw.reals = reals->data();
        raw.count = reals->size();
      }
      if (const auto* value = std::get_if<const Value*>(&from.value)) {
        tensor.name = "";
        tensor.value = (*value)->get();
        raw.tensor = &tensor;
      }
      if (const auto* body = std::get_if<const Graph*>(&from.value)) {
        graph = (*body)->get();
        raw.bodies = &graph;
        raw.count = 1;
      }
      if (!texts.empty()) {
        raw.texts = texts.data();
        raw.lengths = lengths.data();
        raw.count = texts.size();
      }
    }
    RawAttribute(const RawAttribute&) = delete;
    RawAttribute& operator=(const RawAttribute&) = delete;
    void add(const std::string& text) {
      texts.push_back(text.c_str());
      lengths.push_back(text.size());
    }

    std::vector<const char*> texts;
    std::vector<size_t> lengths;
    hone_graph_tensor tensor = detail::sized<hone_graph_tensor>();
    const hone_graph* graph = nullptr;
    hone_graph_attribute raw = detail::sized<hone_graph_attribute>();
  };

  template <typename Function, typename... Arguments>
  explicit Graph(Function* function, const Arguments&... arguments) {
    hone_graph* made = nullptr;
    check(function(arguments..., &made));
    handle_.reset(made);
  }
  const hone_graph* constant() const { return handle_.get(); }
  size_t counted(hone_status (*function)(hone_graph*, size_t*)) {
    size_t count = 0;
    check(function(get(), &count));
    return count;
  }
  template <typename Wanted>
  std::optional<size_t> find(const Wanted& wanted) const {
    for (size_t i = 0; i < size(); ++i)
      if (wanted(node(i))) return i;
    return std::nullopt;
  }
  static std::vector<const char*> pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> result;
    for (const std::string& text : texts) result.push_back(text.c_str());
    return result;
  }
  static std::optional<Attributed> value_of(const hone_graph_attribute& raw) {
    if (raw.reference != nullptr) return GraphReference{raw.reference, raw.kind};
    const auto text = [&](size_t i) { return std::string(raw.texts[i], raw.lengths[i]); };
    switch (raw.kind) {
      case 1: return raw.real;
      case 2: return raw.integer;
      case 3: return text(0);
      case 6: return std::vector<float>(raw.reals, raw.reals + raw.count);
      case 7: return std::vector<int64_t>(raw.integers, raw.integers + raw.count);
      case 8: {
        std::vector<std::string> texts;
        for (size_t i = 0; i < raw.count; ++i) texts.push_back(text(i));
        return texts;
      }
      default: return std::nullopt;
    }
  }

  std::unique_ptr<hone_graph, Destroy> handle_;
};

}  // namespace hone
