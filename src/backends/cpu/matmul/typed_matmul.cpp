// SPDX-License-Identifier: Apache-2.0
//
// MatMul and Linear of f64 and of integers, whose matrices lie as they are. Items are groups of rows by groups of columns.
#include <algorithm>

#include "backends/cpu/matmul/typed_product.h"
#include "backends/cpu/support/node_code.h"
#include "base/checked.h"
#include "ops/matmul_shape.h"
#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone::cpu {
namespace {

constexpr int64_t kRows = 16, kColumns = 256;  // of an item

struct TypedMatMulCode {
  NodeCode node;        // without the weights of Linear
  bool linear = false;  // whose weights, [k, n], are the constant behind the node's
  DType dtype = DType::f64;
  int64_t k = 0, n = 0;  // of Linear
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("linear", self.linear);
    visit("dtype", self.dtype);
    visit("k", self.k, 0, kMostSize);
    visit("n", self.n, 0, kMostSize);
  }
};

class TypedMatMul final : public CpuKernel {
 public:
  TypedMatMul(const TypedMatMulCode& code, const BoundNode& node, const CpuInfo& info)
      : a_(node.operand(0)),
        y_(node.result()),
        product_(typed_product(code.dtype, info.isa)),
        size_(static_cast<int64_t>(size_of(code.dtype))),
        weights_(node_constants(code.node).size()) {
    node.require(a_.type.dtype == code.dtype && y_.type.dtype == code.dtype && !a_.type.dims.empty());
    if (code.linear) {
      k_ = code.k, n_ = code.n;
      rows_ = elements(std::span(a_.type.dims).first(a_.type.dims.size() - 1));
      node.require(a_.type.dims.back() == k_);
      if (node.has(2)) bias_ = node.operand(2), node.require(bias_->type == ConcreteType{code.dtype, {n_}});
    } else {
      b_ = node.operand(1);
      node.require(b_->type.dtype == code.dtype && !b_->type.dims.empty());
      place_stacks(node);
    }
    node.require(elements(y_.type.dims) == static_cast<int64_t>(b_ ? stacks_.size() : 1) * rows_ * n_);
    groups_ = (rows_ + kRows - 1) / kRows, parts_ = (n_ + kColumns - 1) / kColumns;
  }

  bool serial() const override { return elements(y_.type.dims) * k_ < 1 << 15; }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const int64_t stacks = b_ ? static_cast<int64_t>(stacks_.size()) : 1;
    const Share share = share_of(stacks * groups_ * parts_, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t row = item / parts_ % groups_ * kRows, column = item % parts_ * kColumns,
                    stack = item / parts_ / groups_;
      const std::byte* a = a_.as<std::byte>(bindings);
      const std::byte* b =
          b_ ? b_->as<std::byte>(bindings) : static_cast<const std::byte*>(bindings.constants[weights_]);
      if (b_) a += stacks_[static_cast<size_t>(stack)].a * size_, b += stacks_[static_cast<size_t>(stack)].b * size_;
      product_({a + row * k_ * size_, b + column * size_,
                bias_ ? bias_->as<std::byte>(bindings) + column * size_ : nullptr,
                y_.as<std::byte>(bindings) + ((stack * rows_ + row) * n_ + column) * size_,
                std::min(kRows, rows_ - row), std::min(kColumns, n_ - column), k_, n_});
    }
  }

 private:
  struct Stack {
    int64_t a, b;  // where its matrices begin, in elements
  };

  void place_stacks(const BoundNode& node) {
    const MatMulShape shape(a_.type.dims, b_->type.dims);
    rows_ = shape.m, n_ = shape.n, k_ = shape.k;
    const int64_t count = elements(shape.batches);
    node.require(count < 1 << 22);
    for (int64_t i = 0; i < count; ++i)
      stacks_.push_back({shape.offset(shape.batches_a, i, rows_ * k_), shape.offset(shape.batches_b, i, k_ * n_)});
  }

  NodeOperand a_;
  std::optional<NodeOperand> b_ = {}, bias_ = {};
  NodeResult y_;
  TypedProduct product_;
  int64_t size_;
  size_t weights_;
  int64_t rows_ = 0, n_ = 0, k_ = 0, groups_ = 0, parts_ = 0;
  std::vector<Stack> stacks_;
};

/// [k, n], whichever way the weights of Linear lie.
Tensor straight(const Tensor& weights, bool transposed) {
  if (!transposed) return weights;
  const int64_t n = weights.dims()[0], k = weights.dims()[1];
  TensorBuilder builder(weights.dtype(), {k, n});
  visit(weights.dtype(), [&]<typename T>() {
    const std::span<const T> from = weights.data<T>();
    const std::span<T> to = builder.data<T>();
    for (int64_t i = 0; i < n; ++i)
      for (int64_t p = 0; p < k; ++p) to[static_cast<size_t>(p * n + i)] = from[static_cast<size_t>(i * k + p)];
  });
  return builder.finish();
}

struct TypedMatMulFamily : NodeFamily<TypedMatMulCode> {
  static constexpr std::string_view kName = "typed_matmul";
  static constexpr Cost kCost = {.arithmetic = 4};

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !(node->is(ops::mat_mul) || node->is(ops::linear))) return;
    if (!has_typed_product(node->output()->type.dtype)) return;  // of smaller floats there are families of their own
    for (const Value* value : node->inputs)
      if (value != nullptr && value->type.dtype != node->output()->type.dtype)
        return out.refuse(kName, "operands of different types");
    if (node->is(ops::linear) && !node->input(1)->is_constant()) return out.refuse(kName, "weights are not constant");
    if (problem.region.outputs()[0]->type.shape.elements() == Dim(0)) return out.refuse(kName, "empty result");
    if (input_index(problem.symbolic, node->input(0)) < 0) return out.refuse(kName, "its left matrix is not an input");
    offer_linear(problem, kName, out);
  }
  static Built<TypedMatMulCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node& node = *single_node(problem);
    Built<TypedMatMulCode> built;
    TypedMatMulCode& code = built.code;
    code.linear = node.is(ops::linear), code.dtype = node.output()->type.dtype;
    if (!code.linear) {
      code.node = describe_node(problem, built.constants);
      return built;
    }
    code.node = describe_node(problem, built.constants, {1});
    built.constants.push_back(straight(*node.input(1)->constant, node.attrs.integer("trans_w") != 0));
    code.k = built.constants.back().dims()[0], code.n = built.constants.back().dims()[1];
    return built;
  }
  static std::vector<ConstantSpec> constants(const TypedMatMulCode& code, const KernelShapes&, const CpuInfo&) {
    HONE_CHECK(has_typed_product(code.dtype), "a kernel of typed_matmul in the plan is of type {}",
               name_of(code.dtype));
    std::vector<ConstantSpec> specs = node_constants(code.node);
    require_sizes(Dims{code.k, code.n});
    if (code.linear) specs.push_back({code.dtype, {code.k, code.n}});
    return specs;
  }
  static std::shared_ptr<const CpuKernel> load(const TypedMatMulCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    return std::make_shared<TypedMatMul>(code, BoundNode(code.node, shapes, kName), info);
  }
};

}  // namespace

const CpuTactic tactics::typed_matmul = describe<TypedMatMulFamily>();

}  // namespace hone::cpu
