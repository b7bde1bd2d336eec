// SPDX-License-Identifier: Apache-2.0
//
// OpDef: everything the project knows about one operator - schema, shape inference, reference meaning, ONNX rule.
// Operators are plain constants listed in ops/all.cpp; nothing registers itself.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/expr.h"
#include "ir/graph.h"

namespace hone {

/// What inference of one node sees and sets.
class InferContext {
 public:
  InferContext(Node& node) : node_(node) {}

  const Attrs& attrs() const { return node_.attrs; }
  const Node& node() const { return node_; }
  size_t inputs() const { return node_.inputs.size(); }
  size_t outputs() const { return node_.outputs.size(); }
  bool has(size_t i) const { return node_.input(i) != nullptr; }
  /// Type of an operand that must be given; throws Error naming its position otherwise.
  const TensorType& type(size_t i) const;
  const Shape& shape(size_t i) const { return type(i).shape; }
  DType dtype(size_t i) const { return type(i).dtype; }
  size_t rank(size_t i) const { return shape(i).rank(); }
  /// The operand's contents when it is a constant, else null.
  const Tensor* constant(size_t i) const;
  /// The operand's integer contents as expressions when known (constants included), else nothing.
  std::optional<SymbolicData> symbolic(size_t i) const;
  /// Whether the operand's rank is known; it always is unless the operator has the trait `any_rank`.
  bool ranked(size_t i) const { return type(i).ranked; }

  void set(size_t output, TensorType type);
  void set(size_t output, DType dtype, Shape shape);
  void set_symbolic(size_t output, SymbolicData data);
  /// A size that only the data decide (NonZero, …): a symbol named after the node, the same at every inference.
  Dim data_dependent(size_t output, size_t axis) const;

 private:
  Node& node_;
};

/// What the reference meaning of one node sees and sets.
class EvalContext {
 public:
  EvalContext(const Node& node, std::vector<const Tensor*> inputs)
      : node_(node), inputs_(std::move(inputs)), results_(node.outputs.size()) {}

  const Attrs& attrs() const { return node_.attrs; }
  const Node& node() const { return node_; }
  size_t inputs() const { return inputs_.size(); }
  size_t outputs() const { return results_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const Tensor& input(size_t i) const;
  void set(size_t output, Tensor tensor) { results_[output] = std::move(tensor); }
  std::vector<Tensor>& results() { return results_; }

 private:
  const Node& node_;
  std::vector<const Tensor*> inputs_;
  std::vector<Tensor> results_;
};

/// What an ONNX rule sees: the ONNX node with its operands already imported. The rule adds nodes and sets the outputs.
class ImportContext {
 public:
  virtual ~ImportContext() = default;
  virtual Graph& graph() = 0;
  virtual int opset() const = 0;
  virtual std::string_view node_name() const = 0;
  virtual size_t inputs() const = 0;
  virtual Value* input(size_t i) const = 0;                   ///< null when not given
  virtual Value* named(std::string_view name) = 0;            ///< any value of the graph by ONNX's name; null: none
  virtual size_t outputs() const = 0;                         ///< number of outputs, trailing missing ones cut
  virtual bool output_used(size_t i) const = 0;               ///< false for an empty output name
  virtual Attrs& attrs() = 0;                                 ///< the ONNX attributes (graphs are in `bodies`)
  virtual std::vector<std::unique_ptr<Graph>>& bodies() = 0;  ///< graph attributes in order of name
  virtual const OpDef& op(std::string_view name) const = 0;   ///< any operator by name
  /// Adds a node that carries this ONNX node's name and origin.
  virtual Node* add(std::string_view op, std::vector<Value*> inputs, Attrs attrs = {}, size_t outputs = 0) = 0;
  Value* constant(Tensor tensor) { return graph().add_constant(std::move(tensor)); }
  virtual void set_output(size_t i, Value* value) = 0;
};

struct OnnxRule {
  std::string_view op_type;
  int since = 1, until = 1 << 20;            // opset range in which the rule applies, inclusive
  void (*import)(ImportContext&) = nullptr;  // null: same operands, attributes and outputs
  std::string_view domain = "";
};

enum class AttrKind : uint8_t { integer, real, text, integers, reals, texts, tensor };
struct AttrSpec {
  std::string_view name;
  AttrKind kind;
  std::optional<AttrValue> fallback;  // nothing: optional without default unless `required`
  bool required = false;
  std::string_view doc = {};
};

struct Traits {
  bool commutative = false;  // operands 0 and 1 may change places
  bool view = false;         // output 0 has the bytes of operand 0 (linear layout) under another shape
  bool random = false;       // never folded, never merged
  bool has_bodies = false;
  bool data_dependent = false;  // output sizes depend on the data
  bool any_rank = false;  // inference copes with operands of unknown rank; for others it is tried at several ranks
};

struct OpDef {
  std::string_view name;
  std::vector<AttrSpec> attrs = {};
  size_t min_inputs = 1, max_inputs = 1;  // max 0xffff: variadic
  size_t outputs = 1;                     // how many it always has; `add` may ask for more
  void (*infer)(InferContext&) = nullptr;
  void (*eval)(EvalContext&) = nullptr;  // may be null when `pointwise` is given
  Expr pointwise = {};                   // scalar formula over broadcast operands
  DType result = DType::string;          // pointwise: fixed result type (comparisons); string: that of operand 0
  std::vector<OnnxRule> onnx = {};
  Traits traits = {};

  bool is_pointwise() const { return !pointwise.empty(); }
};

/// Element types of the results of a node with an operand of unknown rank: inference is tried at several ranks, since the
/// types do not depend on them. The results have no rank either. Defined in ir/unranked.cpp.
void infer_unranked(Node& node);
/// Inference and meaning that pointwise operators share (numpy broadcasting). Defined in ir/pointwise.cpp.
void infer_pointwise(InferContext& context);
void eval_pointwise(EvalContext& context);
/// Numpy broadcasting of symbolic shapes; a symbol against 1 gives the symbol; throws Error when sizes contradict.
Shape broadcast(const Shape& a, const Shape& b);
Dims broadcast_dims(std::span<const int64_t> a, std::span<const int64_t> b);
/// The node's results for given operands; used by `evaluate` and folding.
std::vector<Tensor> evaluate_node(const Node& node, std::vector<const Tensor*> inputs);

}  // namespace hone
