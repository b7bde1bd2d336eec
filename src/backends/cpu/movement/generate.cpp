// SPDX-License-Identifier: Apache-2.0
//
// Tensors that follow from positions more than from data: Range, ConstantOfShape, numbers that follow from the input shapes,
// EyeLike, Trilu and OneHot. Each is a rule for one row of the result.
#include <algorithm>
#include <cstring>

#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/number.h"
#include "base/numbers.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kPiece = 4096;  // elements of an item, for results that have no rows

const OpDef* const kOperators[] = {
    &ops::range, &ops::constant_of_shape, &ops::symbolic_constant, &ops::eye_like, &ops::trilu, &ops::one_hot};

enum class Rule { range, fill, sizes, eye, triangle, one_hot };  // in the order of kOperators
constexpr std::array<std::string_view, 6> field_names(Rule) {
  return {"range", "fill", "sizes", "eye", "triangle", "one_hot"};
}

struct GenerateCode {
  NodeCode node;
  Rule rule = Rule::range;
  std::optional<Tensor> value = {};     // that fills
  std::vector<std::string> sizes = {};  // as expressions
  int64_t diagonal = 0;                 // of the identity
  bool upper = true;                    // triangle
  int64_t axis = -1;                    // of OneHot
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("rule", self.rule);
    visit("value", self.value);
    visit("sizes", self.sizes);
    visit("diagonal", self.diagonal, -kMostSize, kMostSize);
    visit("upper", self.upper);
    visit("axis", self.axis, -kMostAxes, kMostAxes - 1);
  }
};

GenerateCode read_code(const Node& node) {
  GenerateCode code;
  const auto found =
      std::find_if(std::begin(kOperators), std::end(kOperators), [&](const OpDef* op) { return node.is(*op); });
  code.rule = static_cast<Rule>(found - std::begin(kOperators));
  switch (code.rule) {
    case Rule::range: break;
    case Rule::fill: code.value = node.attrs.has("value") ? node.attrs.tensor("value") : Tensor::scalar(0.0f); break;
    case Rule::sizes: code.sizes = node.attrs.texts("values"); break;
    case Rule::eye: code.diagonal = std::clamp(node.attrs.integer("k"), -kMostSize, kMostSize); break;
    case Rule::triangle: code.upper = node.attrs.integer("upper") != 0; break;
    case Rule::one_hot: code.axis = node.attrs.integer("axis"); break;
  }
  return code;
}

int64_t pieces(const ConcreteType& type) { return (elements(type.dims) + kPiece - 1) / kPiece; }

/// One value everywhere, or contents that are known when the shapes are.
class Fill final : public ItemKernel {
 public:
  Fill(const BoundNode& node, Tensor contents)
      : ItemKernel(pieces(node.result().type), elements(node.result().type.dims)),
        result_(node.result()),
        contents_(std::move(contents)) {
    node.require(contents_.dtype() == result_.type.dtype &&
                 (contents_.size() == 1 || contents_.size() == elements(result_.type.dims)));
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const int64_t first = begin * kPiece, last = std::min(end * kPiece, elements(result_.type.dims));
    visit(result_.type.dtype, [&]<typename T>() {
      const T* from = contents_.data<T>().data();
      T* to = result_.as<T>(bindings);
      if (contents_.size() == 1) std::fill(to + first, to + last, from[0]);
      else std::copy(from + first, from + last, to + first);
    });
  }

  NodeResult result_;
  Tensor contents_;
};

Tensor shape_numbers(const GenerateCode& code, const SymbolValues& symbols) {
  Dims values;
  for (const std::string& text : code.sizes) values.push_back(Dim::parse(text).evaluate(symbols));
  return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, std::span<const int64_t>(values));
}

class Range final : public ItemKernel {
 public:
  explicit Range(const BoundNode& node)
      : ItemKernel(pieces(node.result().type), elements(node.result().type.dims)),
        start_(node.operand(0)),
        step_(node.operand(2)),
        result_(node.result()) {
    node.require(start_.type.dtype == result_.type.dtype && step_.type.dtype == result_.type.dtype &&
                 elements(start_.type.dims) == 1 && elements(step_.type.dims) == 1);
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const int64_t last = std::min(end * kPiece, elements(result_.type.dims));
    visit(result_.type.dtype, [&]<typename T>() {
      using Number = std::conditional_t<std::is_integral_v<T>, uint64_t,
                                        std::conditional_t<std::is_same_v<T, double>, double, float>>;
      const Number start = static_cast<Number>(*start_.as<T>(bindings)),
                   step = static_cast<Number>(*step_.as<T>(bindings));
      T* to = result_.as<T>(bindings);
      for (int64_t i = begin * kPiece; i < last; ++i) to[i] = static_cast<T>(start + static_cast<Number>(i) * step);
    });
  }

  NodeOperand start_, step_;
  NodeResult result_;
};

/// Rows of matrices: ones on a diagonal, or one side of it kept.
class Diagonal final : public ItemKernel {
 public:
  Diagonal(const GenerateCode& code, const BoundNode& node)
      : ItemKernel(rows_of(node), elements(node.result().type.dims)),
        x_(node.operand(0)),
        result_(node.result()),
        eye_(code.rule == Rule::eye),
        upper_(code.upper),
        k_(code.diagonal) {
    node.require(x_.type == result_.type);
    columns_ = result_.type.dims.back();
    rows_ = result_.type.dims[result_.type.dims.size() - 2];
    if (!eye_ && node.has(1)) given_k_ = node.operand(1);
    node.require(!given_k_ || (given_k_->type.dtype == DType::i64 && elements(given_k_->type.dims) == 1));
  }

 private:
  static int64_t rows_of(const BoundNode& node) {
    const Dims& dims = node.result().type.dims;
    node.require(dims.size() >= 2);
    return dims.back() == 0 ? 0 : elements(std::span(dims).first(dims.size() - 1));
  }

  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const int64_t k =
        given_k_ ? std::clamp(*given_k_->as<int64_t>(bindings), -rows_, columns_) : std::clamp(k_, -rows_, columns_);
    visit(result_.type.dtype, [&]<typename T>() {
      const T* x = x_.as<T>(bindings);
      T* y = result_.as<T>(bindings);
      for (int64_t row = begin; row < end; ++row) {
        T* to = y + row * columns_;
        const int64_t diagonal = row % rows_ + k;  // the column of the diagonal in this row, perhaps outside
        if (eye_) {
          std::fill_n(to, columns_, narrowed<T>(0));
          if (diagonal >= 0 && diagonal < columns_) to[diagonal] = narrowed<T>(1);
          continue;
        }
        const int64_t first = upper_ ? std::clamp<int64_t>(diagonal, 0, columns_) : 0,
                      last = upper_ ? columns_ : std::clamp<int64_t>(diagonal + 1, 0, columns_);
        std::fill(to, to + first, narrowed<T>(0));
        std::copy(x + row * columns_ + first, x + row * columns_ + last, to + first);
        std::fill(to + last, to + columns_, narrowed<T>(0));
      }
    });
  }

  NodeOperand x_;
  NodeResult result_;
  std::optional<NodeOperand> given_k_;
  bool eye_, upper_;
  int64_t k_, rows_ = 1, columns_ = 1;
};

/// Everything off, then one element on per index that is inside.
class OneHot final : public ItemKernel {
 public:
  OneHot(const GenerateCode& code, const BoundNode& node)
      : ItemKernel(outer_of(code, node), elements(node.result().type.dims)),
        indices_(node.operand(0)),
        values_(node.operand(2)),
        result_(node.result()) {
    const Dims& dims = result_.type.dims;
    const size_t axis = normalize_axis(code.axis, dims.size());
    depth_ = dims[axis];
    after_ = elements(std::span(dims).subspan(axis + 1));
    node.require(values_.type.dtype == result_.type.dtype && elements(values_.type.dims) == 2 &&
                 elements(indices_.type.dims) == outer_of(code, node) * after_);
  }

 private:
  static int64_t outer_of(const GenerateCode& code, const BoundNode& node) {
    const Dims& dims = node.result().type.dims;
    node.require(!dims.empty());
    return elements(std::span(dims).first(normalize_axis(code.axis, dims.size())));
  }

  int64_t index_at(int64_t i, const Bindings& bindings) const {
    return visit(indices_.type.dtype, [&]<typename I>() {
      const I value = indices_.as<I>(bindings)[i];
      if constexpr (std::is_same_v<I, Half> || std::is_same_v<I, BFloat>)
        return saturated<int64_t>(static_cast<float>(value));
      else if constexpr (std::is_floating_point_v<I>) return saturated<int64_t>(value);
      else return static_cast<int64_t>(value);
    });
  }

  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    visit(result_.type.dtype, [&]<typename T>() {
      const T* values = values_.as<T>(bindings);
      T* y = result_.as<T>(bindings);
      for (int64_t row = begin; row < end; ++row) {
        T* to = y + row * depth_ * after_;
        std::fill_n(to, depth_ * after_, values[0]);
        for (int64_t column = 0; column < after_; ++column) {
          int64_t index = index_at(row * after_ + column, bindings);
          if (index < 0) index += depth_;
          if (index >= 0 && index < depth_) to[index * after_ + column] = values[1];
        }
      }
    });
  }

  NodeOperand indices_, values_;
  NodeResult result_;
  int64_t depth_ = 0, after_ = 1;
};

struct GenerateFamily : NodeFamily<GenerateCode> {
  static constexpr std::string_view kName = "generate";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr ||
        std::none_of(std::begin(kOperators), std::end(kOperators), [&](const OpDef* op) { return node->is(*op); }))
      return;
    if (std::string reason = reason_not_numeric(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    offer_linear(problem, kName, out);
  }
  static Built<GenerateCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    Built<GenerateCode> built{read_code(*single_node(problem))};
    built.code.node = describe_node(problem, built.constants);
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const GenerateCode& code, const KernelShapes& shapes, const CpuInfo&) {
    const BoundNode node(code.node, shapes, kName);
    node.require(code.value.has_value() || code.rule != Rule::fill);
    switch (code.rule) {
      case Rule::range: return std::make_shared<Range>(node);
      case Rule::fill: return std::make_shared<Fill>(node, *code.value);
      case Rule::sizes: return std::make_shared<Fill>(node, shape_numbers(code, shapes.symbols));
      case Rule::eye:
      case Rule::triangle: return std::make_shared<Diagonal>(code, node);
      case Rule::one_hot: return std::make_shared<OneHot>(code, node);
    }
    return nullptr;
  }
};

}  // namespace

const CpuTactic tactics::generate = describe<GenerateFamily>();

}  // namespace hone::cpu
