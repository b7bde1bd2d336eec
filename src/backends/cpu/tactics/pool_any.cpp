// SPDX-License-Identifier: Apache-2.0
//
// Pools of any element type that `pool` does not run: LpPool. Rows of the result are shared among the workers; a window is a
// box of taps, whose bounds are known before.
#include <cmath>

#include "backends/cpu/tactic_table.h"
#include "backends/cpu/tactics/node_code.h"
#include "backends/cpu/tactics/number.h"
#include "backends/cpu/tactics/pool_axes.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

std::string reason_against(const Node& node) {
  if (std::string reason = reason_not_numeric(node); !reason.empty()) return reason;
  const TensorType& type = node.input(0)->type;
  if (!is_float(type.dtype)) return fmt::format("powers of {}", name_of(type.dtype));
  if (type.shape.rank() < 3 || type.shape.rank() > 5) return fmt::format("{} spatial axes", type.shape.rank() - 2);
  return {};
}

void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
  const Node* node = single_node(problem);
  if (node == nullptr || !node->is(ops::lp_pool)) return;
  if (std::string reason = reason_against(*node); !reason.empty()) return out.refuse("pool_any", std::move(reason));
  offer_linear(problem, "pool_any", out);
}

Compiled compile(const Problem& problem, const Tactic&) { return compile_node(problem, "pool_any"); }

/// An item is a row of one plane of the result.
class Windows : public ItemKernel {
 protected:
  Windows(const NodeCode& node, const NodeResult& result)
      : ItemKernel(rows_of(result.type.dims), elements(node.operand(0).type.dims)), x_(node.operand(0)) {
    const Dims &in = x_.type.dims, &out = result.type.dims;
    node.require(in.size() >= 3 && in.size() <= 5 && in.size() == out.size() && in[0] == out[0] && in[1] == out[1]);
    axes_ = pool_axes(WindowAttrs(node.attrs(), in.size() - 2, {}), in, out);
  }

  /// Calls visit(where the plane begins, number of the first result, spans of depth and height) for each item.
  template <typename Visit>
  void visit_rows(int64_t begin, int64_t end, const Visit& visit) const {
    const auto& [depth, height, width] = axes_;
    const auto rows = static_cast<int64_t>(height.spans.size()), columns = static_cast<int64_t>(width.spans.size()),
               planes = rows * static_cast<int64_t>(depth.spans.size());
    for (int64_t item = begin; item < end; ++item)
      visit(item / planes * (depth.input * height.input * width.input), item * columns,
            depth.spans[static_cast<size_t>(item % planes / rows)], height.spans[static_cast<size_t>(item % rows)]);
  }

  /// Calls visit(row of the input, its place in the plane) for each row of taps.
  template <typename Visit>
  void visit_taps(const TapSpan& depth, const TapSpan& height, const Visit& visit) const {
    for (int64_t d = 0; d < depth.count; ++d)
      for (int64_t h = 0; h < height.count; ++h)
        visit(depth.first + d * axes_[0].step, height.first + h * axes_[1].step);
  }

  NodeOperand x_;
  PoolAxes axes_;

 private:
  static int64_t rows_of(const Dims& dims) {
    return dims.empty() ? 0 : elements(std::span(dims).first(dims.size() - 1));
  }
};

class PowerSum final : public Windows {
 public:
  explicit PowerSum(const NodeCode& node)
      : Windows(node, node.result()), y_(node.result()), p_(node.attrs().integer("p")) {
    node.require(is_float(x_.type.dtype) && x_.type.dtype == y_.type.dtype);
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const auto p = static_cast<double>(p_);
    if (p_ == 1)
      run_as(
          begin, end, bindings, [](double v) { return std::fabs(v); }, [](double sum) { return sum; });
    else if (p_ == 2)
      run_as(
          begin, end, bindings, [](double v) { return v * v; }, [](double sum) { return std::sqrt(sum); });
    else
      run_as(
          begin, end, bindings, [p](double v) { return std::pow(std::fabs(v), p); },
          [p](double sum) { return std::pow(sum, 1 / p); });
  }

  template <typename Power, typename Root>
  void run_as(int64_t begin, int64_t end, const Bindings& bindings, const Power& power, const Root& root) const {
    visit(x_.type.dtype, [&]<typename T>() {
      if constexpr (kIsFloat<T>)
        visit_rows(begin, end, [&](int64_t plane, int64_t result, const TapSpan& depth, const TapSpan& height) {
          const T* x = x_.as<T>(bindings) + plane;
          T* y = y_.as<T>(bindings) + result;
          for (const TapSpan& width : axes_[2].spans) {
            double sum = 0;
            visit_taps(depth, height, [&](int64_t d, int64_t h) {
              const T* row = x + (d * axes_[1].input + h) * axes_[2].input + width.first;
              for (int64_t w = 0; w < width.count; ++w) sum += power(widened(row[w * axes_[2].step]));
            });
            *y++ = narrowed<T>(root(sum));
          }
        });
    });
  }

  NodeResult y_;
  int64_t p_;
};

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo&) {
  const NodeCode node(attrs, shapes);
  node.require(node.op() == "LpPool");
  return std::make_shared<PowerSum>(node);
}

}  // namespace

const CpuTactic tactics::pool_any = {"pool_any", propose, compile, load};

}  // namespace hone::cpu
