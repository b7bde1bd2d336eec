// SPDX-License-Identifier: Apache-2.0
//
// Reductions of any element type over any axes, with every function; f32 with the common functions is faster in reduce.cpp.
// Results are items; each folds the elements that belong to it, in double precision or 64 bits.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/reduce/row_folds.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/number.h"
#include "backends/cpu/support/row_walk.h"
#include "base/numbers.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr std::string_view kNames[] = {"ReduceSum", "ReduceMean", "ReduceMax",       "ReduceMin",    "ReduceProd",
                                       "ReduceL1",  "ReduceL2",   "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"};
enum class Kind { sum, mean, max, min, prod, l1, l2, sum_square, log_sum, log_sum_exp };
constexpr std::array<std::string_view, 10> field_names(Kind) {
  return {"sum", "mean", "max", "min", "prod", "l1", "l2", "sum_square", "log_sum", "log_sum_exp"};
}

std::optional<Kind> kind_of(std::string_view op) {
  const auto found = std::find(std::begin(kNames), std::end(kNames), op);
  return found == std::end(kNames) ? std::nullopt : std::optional(static_cast<Kind>(found - std::begin(kNames)));
}

struct ReduceAnyCode {
  NodeCode node;
  Kind kind = Kind::sum;
  bool all_axes = true;  // where none is named; otherwise none
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("kind", self.kind);
    visit("all_axes", self.all_axes);
  }
};

std::vector<bool> reduced_axes(const ReduceAnyCode& code, const BoundNode& node) {
  const size_t rank = node.operand(0).type.dims.size();
  const Dims axes = node.has(1) ? node.integers(1) : Dims();
  if (axes.empty()) return std::vector<bool>(rank, code.all_axes);
  std::vector<bool> reduced(rank, false);
  for (const int64_t axis : axes) reduced[normalize_axis(axis, rank)] = true;
  return reduced;
}

/// The walk over the axes that are reduced, or over those that are kept.
RowWalk walk_over(const ReduceAnyCode& code, const BoundNode& node, bool which) {
  const Dims &dims = node.operand(0).type.dims, strides = strides_of(dims);
  const std::vector<bool> reduced = reduced_axes(code, node);
  Dims sizes, own;
  for (size_t axis = 0; axis < dims.size(); ++axis)
    if (reduced[axis] == which) sizes.push_back(dims[axis]), own.push_back(strides[axis]);
  return RowWalk(sizes, {own});
}

class ReduceAny final : public ItemKernel {
 public:
  ReduceAny(const ReduceAnyCode& code, const BoundNode& node, Isa isa)
      : ItemKernel(elements(node.result().type.dims), elements(node.operand(0).type.dims)),
        x_(node.operand(0)),
        y_(node.result()),
        kept_(walk_over(code, node, false)),
        inner_(walk_over(code, node, true)),
        folds_(row_folds(isa)),
        kind_(code.kind) {
    node.require(x_.type.dtype == y_.type.dtype && kept_.rows() * kept_.length() == elements(y_.type.dims) &&
                 elements(x_.type.dims) > 0);
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    visit(x_.type.dtype, [&]<typename T>() {
      for (int64_t item = begin; item < end; ++item) {
        int64_t start[1];
        kept_.seek(item / kept_.length(), start);
        const T* x = x_.as<T>(bindings) + start[0] + item % kept_.length() * kept_.stride(0);
        if (const std::optional<T> result = reduced_row(x)) {
          y_.as<T>(bindings)[item] = *result;
          continue;
        }
        const Wide<T> result = reduced(x);
        y_.as<T>(bindings)[item] = narrowed<T>(result);
      }
    });
  }

  /// What vectors do with elements behind each other; nothing where they have no instructions for it.
  template <typename T>
  std::optional<T> reduced_row(const T* x) const {
    if constexpr (kHasFolds<T>) {
      if (inner_.rows() != 1 || inner_.stride(0) != 1) return std::nullopt;
      const Folds<T>& folds = std::get<Folds<T>>(folds_);
      const int64_t n = inner_.length();
      if (kind_ == Kind::max) return folds.largest(x, n);
      if (kind_ == Kind::min) return folds.smallest(x, n);
      if (kind_ == Kind::sum && folds.sum != nullptr) return folds.sum(x, n);
      if (kind_ == Kind::mean && folds.sum != nullptr) return folds.sum(x, n) / static_cast<T>(n);
    }
    return std::nullopt;
  }

  template <typename T, typename Number, typename Step>
  Number fold(const T* x, Number value, const Step& step) const {
    for (int64_t row = 0; row < inner_.rows(); ++row) {
      int64_t start[1];
      inner_.seek(row, start);
      for (int64_t i = 0; i < inner_.length(); ++i) value = step(value, widened(x[start[0] + i * inner_.stride(0)]));
    }
    return value;
  }

  /// The same of elements behind each other, where their order does not matter: several folds side by side, in vectors.
  template <typename T, typename Step>
  Wide<T> fold_together(const T* x, Wide<T> neutral, const Step& step) const {
    if (inner_.rows() != 1 || inner_.stride(0) != 1) return fold(x, neutral, step);
    constexpr int64_t kTogether = 16;
    Wide<T> values[kTogether];
    std::fill(std::begin(values), std::end(values), neutral);
    int64_t i = 0;
    for (; i + kTogether <= inner_.length(); i += kTogether)
      for (int64_t k = 0; k < kTogether; ++k) values[k] = step(values[k], widened(x[i + k]));
    Wide<T> value = values[0];
    for (int64_t k = 1; k < kTogether; ++k) value = step(value, values[k]);
    for (; i < inner_.length(); ++i) value = step(value, widened(x[i]));
    return value;
  }

  template <typename T>
  Wide<T> reduced(const T* x) const {
    using N = Wide<T>;
    const auto sum = [&](const auto& term) {
      return fold(x, N(0), [&](N a, N v) { return wrapping_add(a, term(v)); });
    };
    const auto plain_sum = [&] { return fold_together(x, N(0), [](N a, N v) { return wrapping_add(a, v); }); };
    const auto square = [](N v) { return wrapping_multiply(v, v); };
    const auto same = [](N v) { return v; };
    const auto largest = [&] {
      return fold_together(x, widened(x[0]), [](N a, N v) { return (v > a) | (v != v) ? v : a; });
    };
    switch (kind_) {
      case Kind::sum: return plain_sum();
      case Kind::mean: return plain_sum() / static_cast<N>(inner_.rows() * inner_.length());
      case Kind::max: return largest();
      case Kind::min: return fold_together(x, widened(x[0]), [](N a, N v) { return (v < a) | (v != v) ? v : a; });
      case Kind::prod: return fold(x, N(1), wrapping_multiply<N>);
      case Kind::l1: return sum([](N v) { return v < 0 ? wrapping_subtract(N(0), v) : v; });
      case Kind::l2: return from_real<N>(std::sqrt(static_cast<double>(sum(square))));
      case Kind::sum_square: return sum(square);
      case Kind::log_sum: return from_real<N>(std::log(static_cast<double>(sum(same))));
      case Kind::log_sum_exp: break;
    }
    const double top = static_cast<double>(largest());
    if (!std::isfinite(top)) return from_real<N>(top);
    return from_real<N>(
        top + std::log(fold(x, 0.0, [top](double a, N v) { return a + std::exp(static_cast<double>(v) - top); })));
  }

  NodeOperand x_;
  NodeResult y_;
  RowWalk kept_, inner_;
  RowFolds folds_;
  Kind kind_;
};

struct ReduceAnyFamily : NodeFamily<ReduceAnyCode> {
  static constexpr std::string_view kName = "reduce_any";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !kind_of(node->op_name())) return;
    if (node->input(0)->type.dtype == DType::f32 && kind_of(node->op_name()) != Kind::log_sum_exp)
      return;  // reduce.cpp's
    if (std::string reason = reason_not_numeric(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    if (const Value* axes = node->input(1); axes != nullptr && !axes->is_constant() && axes->symbolic == nullptr)
      return out.refuse(kName, "its axes are known in a run only");
    if (problem.region.nodes()[0]->input(0)->type.shape.elements() == Dim(0)) return out.refuse(kName, "empty input");
    offer_linear(problem, kName, out);
  }
  static Built<ReduceAnyCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node& node = *single_node(problem);
    Built<ReduceAnyCode> built;
    built.code = {describe_node(problem, built.constants), *kind_of(node.op_name()),
                  node.attrs.integer("noop_with_empty_axes") == 0};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const ReduceAnyCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    return std::make_shared<ReduceAny>(code, BoundNode(code.node, shapes, kName), info.isa);
  }
};

}  // namespace

const CpuTactic tactics::reduce_any = describe<ReduceAnyFamily>();

}  // namespace hone::cpu
