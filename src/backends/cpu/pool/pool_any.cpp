// SPDX-License-Identifier: Apache-2.0
//
// Pools that `pool` does not run, of any element type: LpPool, and MaxPool whose indices are wanted or whose elements are
// neither f32 nor bf16; bytes in linear layout. Rows of the result are shared among the workers; a window is a box of taps, whose bounds are known
// before.
#include <cmath>
#include <limits>

#include "backends/cpu/pool/pool_axes.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/number.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

/// What `pool` runs, faster.
bool is_plain(const Problem& problem, const Node& node) {
  const auto& outputs = problem.symbolic.outputs();
  const DType dtype = node.input(0)->type.dtype;
  return node.is(ops::max_pool) && (dtype == DType::f32 || dtype == DType::bf16) && outputs.size() == 1 &&
         outputs[0] == node.output(0);
}

constexpr int64_t kMaxProducts = 16;  // above, a power is no slower
constexpr int64_t kChunk = 64;        // columns that are done side by side

std::string reason_against(const Node& node) {
  if (std::string reason = reason_not_numeric(node); !reason.empty()) return reason;
  const TensorType& type = node.input(0)->type;
  if (node.is(ops::lp_pool) && !is_float(type.dtype)) return fmt::format("powers of {}", name_of(type.dtype));
  if (type.shape.rank() < 3 || type.shape.rank() > 5) return fmt::format("{} spatial axes", type.shape.rank() - 2);
  return {};
}

struct PoolAnyCode {
  NodeCode node;
  WindowAttrs window;
  bool maximum = true;        // otherwise a norm
  int64_t p = 2;              // of the norm
  bool column_major = false;  // an index counts along the first spatial axis first
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    WindowAttrs::fields(self.window, visit);
    visit("maximum", self.maximum);
    visit("p", self.p, INT64_MIN, INT64_MAX);
    visit("column_major", self.column_major);
  }
};

/// An item is a row of one plane of the result.
class Windows : public ItemKernel {
 protected:
  Windows(const PoolAnyCode& code, const BoundNode& node, const NodeResult& result)
      : ItemKernel(rows_of(result.type.dims), elements(node.operand(0).type.dims)), x_(node.operand(0)) {
    const Dims &in = x_.type.dims, &out = result.type.dims;
    node.require(in.size() >= 3 && in.size() <= 5 && in.size() == out.size() && in[0] == out[0] && in[1] == out[1]);
    code.window.check(in.size() - 2);
    axes_ = pool_axes(code.window, in, out);
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
  PowerSum(const PoolAnyCode& code, const BoundNode& node)
      : Windows(code, node, node.result()), y_(node.result()), p_(code.p) {
    node.require(is_float(x_.type.dtype) && x_.type.dtype == y_.type.dtype);
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const auto p = static_cast<double>(p_);
    const auto root_of = [p](double sum) { return std::pow(sum, 1 / p); };
    if (p_ == 1)
      run_as(
          begin, end, bindings, [](double v) { return std::fabs(v); }, [](double sum) { return sum; });
    else if (p_ == 2)
      run_as(
          begin, end, bindings, [](double v) { return v * v; }, [](double sum) { return std::sqrt(sum); });
    else if (p_ > 2 && p_ <= kMaxProducts)
      run_as(
          begin, end, bindings,
          [this](double v) {
            double product = v;
            for (int64_t i = 1; i < p_; ++i) product *= v;
            return std::fabs(product);
          },
          root_of);
    else
      run_as(
          begin, end, bindings, [p](double v) { return std::pow(std::fabs(v), p); }, root_of);
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

/// The first of equals; not-a-number is larger than any number. Either result may be missing. Columns whose windows lie whole
/// inside the input are done side by side, tap by tap and without branches: on noise, windows of 2 x 2 over 64 x 112 x 112
/// then take 1.8 ms instead of 8.
class Largest final : public Windows {
 public:
  Largest(const PoolAnyCode& code, const BoundNode& node)
      : Windows(code, node, node.wants(0) ? node.result(0) : node.result(1)) {
    if (node.wants(0)) values_ = node.result(0);
    if (node.wants(1)) indices_ = node.result(1);
    if (values_) node.require(values_->type.dtype == x_.type.dtype);
    if (indices_) node.require(indices_->type.dtype == DType::i64);
    if (values_ && indices_) node.require(values_->type.dims == indices_->type.dims);
    const auto& [depth, height, width] = axes_;
    if (code.column_major) steps_ = {1, depth.input, depth.input * height.input};
    else steps_ = {height.input * width.input, width.input, 1};
    stride_ = code.window.strides.back();
    const auto whole = [taps = code.window.kernel.back()](const TapSpan& span) { return span.count == taps; };
    inner_begin_ = std::find_if(width.spans.begin(), width.spans.end(), whole) - width.spans.begin();
    inner_end_ = inner_begin_;
    while (inner_end_ < static_cast<int64_t>(width.spans.size()) && whole(width.spans[static_cast<size_t>(inner_end_)]))
      ++inner_end_;
    small_ = depth.input * height.input * width.input < (int64_t{1} << 31);
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    visit(x_.type.dtype, [&]<typename T>() {
      visit_rows(begin, end, [&](int64_t plane, int64_t result, const TapSpan& depth, const TapSpan& height) {
        const auto columns = static_cast<int64_t>(axes_[2].spans.size());
        const bool any = depth.count * height.count > 0;
        for (int64_t column = 0; column < columns;) {
          int64_t count = 1;
          if (any && column >= inner_begin_ && column < inner_end_) {
            count = std::min(kChunk, inner_end_ - column);
            if (small_) find_inner<T, int32_t>(plane, result + column, depth, height, column, count, bindings);
            else find_inner<T, int64_t>(plane, result + column, depth, height, column, count, bindings);
          } else {
            find_edge<T>(plane, result + column, depth, height, axes_[2].spans[static_cast<size_t>(column)], bindings);
          }
          column += count;
        }
      });
    });
  }

  /// Whether a later value takes the place of the best one so far.
  template <typename Number>
  static bool beats(Number value, Number best) {
    if constexpr (std::is_floating_point_v<Number>) return !(value <= best) & (best == best);
    else return value > best;
  }
  template <typename Number>
  static Number lowest() {
    if constexpr (std::is_floating_point_v<Number>) return -std::numeric_limits<Number>::infinity();
    else return std::numeric_limits<Number>::lowest();
  }
  template <typename T>
  const T* row_at(const Bindings& bindings, int64_t plane, int64_t d, int64_t h) const {
    return x_.as<T>(bindings) + plane + (d * axes_[1].input + h) * axes_[2].input;
  }

  template <typename T>
  void find_edge(int64_t plane, int64_t result, const TapSpan& depth, const TapSpan& height, const TapSpan& width,
                 const Bindings& bindings) const {
    auto best = lowest<decltype(comparable(T()))>();
    int64_t at = 0;
    bool found = false;
    visit_taps(depth, height, [&](int64_t d, int64_t h) {
      const T* row = row_at<T>(bindings, plane, d, h);
      for (int64_t w = 0; w < width.count; ++w) {
        const int64_t column = width.first + w * axes_[2].step;
        const auto value = comparable(row[column]);
        if (found && !beats(value, best)) continue;
        best = value, at = d * steps_[0] + h * steps_[1] + column * steps_[2], found = true;
      }
    });
    if (values_) values_->as<T>(bindings)[result] = narrowed<T>(best);
    if (indices_) indices_->as<int64_t>(bindings)[result] = plane + at;
  }

  /// `Place` holds every place in a plane; a narrow one lets more columns share a vector.
  template <typename T, typename Place>
  void find_inner(int64_t plane, int64_t result, const TapSpan& depth, const TapSpan& height, int64_t column,
                  int64_t count, const Bindings& bindings) const {
    using Number = decltype(comparable(T()));
    const TapSpan& first = axes_[2].spans[static_cast<size_t>(column)];
    Number best[kChunk];
    Place at[kChunk];
    bool found = false;
    visit_taps(depth, height, [&](int64_t d, int64_t h) {
      for (int64_t w = 0; w < first.count; ++w) {
        const int64_t start = first.first + w * axes_[2].step;
        const T* from = row_at<T>(bindings, plane, d, h) + start;
        const auto place = static_cast<Place>(d * steps_[0] + h * steps_[1] + start * steps_[2]),
                   step = static_cast<Place>(stride_ * steps_[2]);
        if (!found) {
          for (int64_t j = 0; j < count; ++j)
            best[j] = comparable(from[j * stride_]), at[j] = place + static_cast<Place>(j) * step;
          found = true;
        } else if (stride_ == 1) {
          take_better(from, 1, place, step, count, best, at);
        } else if (stride_ == 2) {
          take_better(from, 2, place, step, count, best, at);
        } else {
          take_better(from, stride_, place, step, count, best, at);
        }
      }
    });
    if (values_)
      for (int64_t j = 0; j < count; ++j) values_->as<T>(bindings)[result + j] = narrowed<T>(best[j]);
    if (indices_)
      for (int64_t j = 0; j < count; ++j) indices_->as<int64_t>(bindings)[result + j] = plane + at[j];
  }

  template <typename T, typename Number, typename Place>
  [[gnu::always_inline]] static void take_better(const T* from, int64_t stride, Place place, Place step, int64_t count,
                                                 Number* best, Place* at) {
    for (int64_t j = 0; j < count; ++j) {
      const Number value = comparable(from[j * stride]);
      const bool better = beats(value, best[j]);
      best[j] = better ? value : best[j];
      at[j] = better ? static_cast<Place>(place + static_cast<Place>(j) * step) : at[j];
    }
  }

  std::optional<NodeResult> values_, indices_;
  std::array<int64_t, 3> steps_{};                        // in an index, of depth, height and width
  int64_t stride_ = 1, inner_begin_ = 0, inner_end_ = 0;  // of columns
  bool small_ = true;
};

struct PoolAnyFamily : NodeFamily<PoolAnyCode> {
  static constexpr std::string_view kName = "pool_any";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !(node->is(ops::lp_pool) || node->is(ops::max_pool)) || is_plain(problem, *node)) return;
    if (std::string reason = reason_against(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    offer_linear(problem, kName, out);
  }
  static Built<PoolAnyCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node& node = *single_node(problem);
    const bool maximum = node.is(ops::max_pool);
    Built<PoolAnyCode> built;
    built.code = {describe_node(problem, built.constants),
                  WindowAttrs(node.attrs, node.input(0)->type.shape.rank() - 2, {}), maximum,
                  maximum ? 2 : node.attrs.integer("p"), maximum && node.attrs.integer("storage_order") != 0};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const PoolAnyCode& code, const KernelShapes& shapes, const CpuInfo&) {
    const BoundNode node(code.node, shapes, kName);
    if (code.maximum) return std::make_shared<Largest>(code, node);
    return std::make_shared<PowerSum>(code, node);
  }
};

}  // namespace

const CpuTactic tactics::pool_any = describe<PoolAnyFamily>();

}  // namespace hone::cpu
