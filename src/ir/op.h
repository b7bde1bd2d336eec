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
#include "ir/range.h"

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
  /// A data-dependent size (NonZero, …): a symbol named after the node, the same at every inference.
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

inline constexpr int kEveryLater = 1 << 20;  // opset: the end of ranges that are open

struct OnnxRule {
  std::string_view op_type;
  int since = 1, until = kEveryLater;        // opset range in which the rule applies, inclusive
  void (*import)(ImportContext&) = nullptr;  // null: same operands, attributes and outputs
  std::string_view domain = "";
  uint32_t required = 0;  // bit i: operand i must be given; of the default domain onnx/required_operands.cpp says it
  /// Types that the node gives to the inputs of its bodies; it may fill up the operands with nulls. Null: it gives none.
  std::vector<TensorType> (*body_types)(std::vector<Value*>& operands, const Attrs&) = nullptr;
};

enum class AttrKind : uint8_t { integer, real, text, integers, reals, texts, tensor };
struct AttrSpec {
  std::string_view name;
  AttrKind kind;
  std::optional<AttrValue> fallback;  // nothing: optional without default unless `required`
  bool required = false;
  std::string_view doc = {};
};

/// What becomes of an operator's f32 where a build allows f16 or bf16. Sums and statistics stay f32 inside the kernels.
enum class FewBits : uint8_t {
  usual,    // of a pointwise operator `passes`, of any other `stays`
  stays,    // f32 whatever it reads: few bits lose its meaning, or it has nothing to do with them
  follows,  // the type of what it reads
  passes,   // the same, also on a device that has fast kernels in the small type for little but convolutions
  gains,    // always small: this is where the time goes
};

/// Operands whose elements are those of the result.
enum class HandsOn : uint8_t { none, first, all };

/// What the constant operands of an operator are called.
enum class WeightRoles : uint8_t { none, kernel_and_bias, scale_and_shift };

/// Where the channels of a result lie, for operators that take weights (operand 1) and a bias per channel (operand 2).
struct Channels {
  size_t of_result, of_weights;  // axes
  int64_t groups = 1;            // of the weights' first axis; the channels of one follow those of the one before
};

/// What passes, builder and tuner ask of an operator. Every default is the common case.
struct Traits {
  bool commutative = false;  // operands 0 and 1 may change places
  bool view = false;         // output 0 has the bytes of operand 0 (linear layout) under another shape
  bool random = false;       // never folded, never merged
  bool has_bodies = false;
  bool data_dependent = false;  // output sizes depend on the data
  bool any_rank = false;  // inference copes with operands of unknown rank; for others it is tried at several ranks
  HandsOn hands_on = HandsOn::none;  // `view` says it of operand 0 as well
  FewBits few_bits = FewBits::usual;
  size_t keeps_type_from = 0xffff;  // operands from here on are parameters: f32 whatever the node computes in
  WeightRoles weights = WeightRoles::none;
  bool timed_without_reals =
      false;                    // its real attributes are scales and limits: whatever they are, a problem takes as long
  std::string_view layer = {};  // its kind in reports; empty: "PointWise" or the operator's name
  /// Whether entry i of the results, along their first axis, depends on no entry of operand `operand` but i. Null: it may.
  bool (*entries_apart)(const Node&, size_t operand) = nullptr;
  /// The same along their second axis, of three or more, where the first has one entry; false: each depends on the whole operand in the
  /// same way. Nothing, or null: entries are mixed.
  std::optional<bool> (*rows_apart)(const Node&, size_t operand) = nullptr;
  /// Integers that operand `operand` may hold: indices, lengths. Null: any.
  std::optional<IntegerRange> (*accepts)(const Node&, size_t operand) = nullptr;
  /// Multiplications and additions at these sizes. Null: none worth counting.
  int64_t (*flops)(const Node&, const SymbolValues&) = nullptr;
  /// Null: there are none, or no factor per channel can be put into the weights.
  Channels (*channels)(const Node&) = nullptr;
  /// The largest sizes that the only result of an operator with data-dependent sizes can have. Null: a device does not run it.
  Shape (*most)(const Node&) = nullptr;
};

struct CustomOperator;

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
  const CustomOperator* custom = nullptr;  // what a program brought (ir/custom.h); null: Hone's own

  bool is_pointwise() const { return !pointwise.empty(); }
  bool hands_on(size_t operand) const {
    return traits.hands_on == HandsOn::all || (operand == 0 && (traits.view || traits.hands_on == HandsOn::first));
  }
  FewBits few_bits() const {
    if (traits.few_bits != FewBits::usual) return traits.few_bits;
    return is_pointwise() ? FewBits::passes : FewBits::stays;
  }
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
