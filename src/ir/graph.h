// SPDX-License-Identifier: Apache-2.0
//
// The IR: a Graph owns Nodes and Values. A Value has one producer (or is an input or a constant) and knows its uses.
// Nodes are kept in a stable topological order: same graph, same order. Handles stay valid until erased.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/attrs.h"
#include "tensor/tensor.h"

namespace hone {

struct OpDef;
/// Operators that a program brought (ir/custom.h), as they are handed on to whoever reads nodes by name.
using OperatorList = std::vector<std::shared_ptr<const OpDef>>;
struct Node;
class Graph;

struct Use {
  Node* node;
  size_t index;  // which operand
  friend bool operator==(const Use&, const Use&) = default;
};

/// The contents of an integer tensor as expressions, row-major: how shapes travel through Shape, Gather, Concat, ….
using SymbolicData = std::vector<Dim>;

struct Value {
  std::string name;
  TensorType type;
  Node* producer = nullptr;  // null for inputs and constants
  size_t index = 0;          // which output of the producer
  std::vector<Use> uses;     // graph outputs are not counted as uses
  std::optional<Tensor> constant;
  std::shared_ptr<const SymbolicData> symbolic;  // set by inference when every element is known

  bool is_constant() const { return constant.has_value(); }
  std::string label() const { return name.empty() ? "?" : name; }
};

struct Node {
  const OpDef* op = nullptr;
  Attrs attrs;                 // complete: defaults are filled in
  std::vector<Value*> inputs;  // null: an optional operand that is not given
  std::vector<Value*> outputs;
  std::string name;                            // the layer's name
  std::vector<std::string> origin;             // ONNX nodes it came from; survives every rewrite
  std::vector<std::unique_ptr<Graph>> bodies;  // If/Loop/Scan; empty otherwise

  Value* input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  Value* output(size_t i = 0) const { return outputs[i]; }
  bool is(const OpDef& other) const { return op == &other; }
  std::string_view op_name() const;
};

class Graph {
 public:
  Graph();
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;

  std::string name;

  Value* add_input(std::string name, TensorType type);
  Value* add_constant(Tensor tensor, std::string name = {});
  /// Appends a node; fills attribute defaults, infers output types (throws Error when the node is invalid).
  /// `outputs` is the number of outputs; 0 means as many as the operator always has.
  Node* add(const OpDef& op, std::vector<Value*> inputs, Attrs attrs = {}, std::string name = {}, size_t outputs = 0,
            std::vector<std::unique_ptr<Graph>> bodies = {});
  /// The same, placed directly before `position` in the order.
  Node* insert(Node* position, const OpDef& op, std::vector<Value*> inputs, Attrs attrs = {}, std::string name = {},
               size_t outputs = 0);
  void set_outputs(std::vector<Value*> outputs) { outputs_ = std::move(outputs); }

  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  /// Topological, stable. A snapshot: safe to edit the graph while walking it (erased nodes stay allocated, marked).
  std::vector<Node*> nodes() const;
  size_t node_count() const { return nodes_.size(); }
  bool is_output(const Value* value) const;

  /// Redirects every use of `from` (and graph outputs) to `to`. When `from` was a graph output its name moves along, and so it does
  /// to a computed value that has none.
  void replace(Value* from, Value* to);
  void set_input(Node* node, size_t index, Value* value);
  /// Removes a node without uses of its outputs.
  void erase(Node* node);
  /// Removes all nodes and constants that no graph output needs; graph inputs stay. Returns the number of nodes removed.
  size_t erase_dead();
  /// By symbol: the first node with that symbol in a result's size. Symbols of the graph's inputs are not among them.
  std::map<std::string, const Node*> size_deciders() const;
  /// Re-runs inference of one node, or of all (after types of inputs changed).
  void infer(Node* node);
  void infer_all();
  /// Orders nodes so that producers come first, keeping the present order where it may stay. Throws Error on a cycle.
  void sort();
  /// A name not used by any value yet, made from `base`.
  std::string unique_name(std::string_view base) const;
  /// The written rules of the IR; throws InternalError.
  void verify() const;
  Graph clone() const;
  /// A copy whose symbols that have a value are replaced by it, types inferred anew.
  Graph specialize(const SymbolValues& values) const;

 private:
  struct State;
  Node* place(size_t position, const OpDef& op, std::vector<Value*> inputs, Attrs attrs, std::string name,
              size_t outputs, std::vector<std::unique_ptr<Graph>> bodies);
  Value* new_value();

  std::vector<Value*> inputs_, outputs_;
  std::vector<Node*> nodes_;
  std::unique_ptr<State> state_;  // owns nodes and values
};

/// The symbols in the sizes of a node's results, in the integer contents it reads or gives, and in its attributes.
std::set<std::string> symbols_used(const Node& node);

/// Null where there is no operator of the name.
using OpLookup = std::function<const OpDef*(std::string_view name)>;

/// Exact inverses of each other. Constants of up to 16 elements print their values; larger ones print a content hash and
/// `parse` fills them with deterministic values drawn from it.
std::string print(const Graph& graph);
Graph parse_graph(std::string_view text, const OpLookup& lookup);
/// Canonical text: values numbered, names, origins and weight values left out. Equal keys: the same problem to solve.
std::string structure_key(const Graph& graph);

/// The meaning of a graph by the operators' reference code. Throws Error for invalid data (for example a bad index).
std::vector<Tensor> evaluate(const Graph& graph, std::span<const Tensor> inputs);
/// The graph as bytes with all constants, and back: what the reference backend stores in a plan.
Blob serialize(const Graph& graph);
Graph deserialize(const Blob& bytes, const OpLookup& lookup);

/// Deterministic inputs for tests, checks and timing: floats uniform in [-1, 1]; integers small and valid as indices and
/// lengths (0 … limit-1, where `limit` follows from the consumers, else 2); bools mixed.
std::vector<Tensor> random_inputs(const Graph& graph, uint64_t seed);
Tensor random_tensor(DType dtype, const Dims& dims, uint64_t seed, double low = -1, double high = 1);
/// Floats that are multiples of `step`, by all numbers of `codes`, i8 without -128 or f8e4m3fn: weights that were quantised. For tests.
Tensor random_steps(DType dtype, const Dims& dims, uint64_t seed, double step, DType codes = DType::i8);

}  // namespace hone
