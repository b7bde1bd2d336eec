// SPDX-License-Identifier: Apache-2.0
//
// Resize in every mode and coordinate system, one axis after the other. The last two axes, commonly those of an image, go
// together: where rows are added, each input row is stretched once and kept while output rows mix it with its neighbours;
// where rows are dropped, they are mixed first and only the result is stretched.
#include <algorithm>

#include "backends/cpu/movement/resample.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/region_reader.h"
#include "ops/ops.h"
#include "ops/resample.h"

namespace hone::cpu {
namespace {

constexpr int64_t kKept = kMaxResampleTaps;  // stretched rows: the taps of an output row are neighbours

std::string reason_against(const Problem& problem, const Node& node) {
  if (std::string reason = reason_not_f32_or_bf16(problem, node); !reason.empty()) return reason;
  if (problem.region.outputs()[0]->type.shape.elements() == Dim(0)) return "empty result";
  if (node.attrs.integer("antialias") != 0) return "filters against aliasing";
  const auto known = [](const Value* value) {
    return value == nullptr || value->is_constant() || value->symbolic != nullptr;
  };
  for (size_t i = 1; i < 4; ++i)
    if (!known(node.input(i))) return "its scales, sizes or regions are not known";
  return {};
}

struct ResizeCode {
  NodeCode node;
  ResampleRule rule;
  Dims axes;  // that scales and regions name
  double extrapolated = 0;
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    ResampleRule::fields(self.rule, visit);
    visit("axes", self.axes, -kMostAxes, kMostAxes - 1, kMaxRank);
    visit("extrapolated", self.extrapolated);
  }
};

/// An axis in the order in which the bytes lie, with its taps in columns: [tap][output position].
struct Axis {
  size_t number = 0;
  int64_t outer = 1, in = 1, out = 1, inner = 1;
  int taps = 1;
  std::vector<int32_t> indices;
  std::vector<float> weights;
  std::vector<int64_t> outside;  // output positions that are extrapolated

  bool is_outside(int64_t position) const {
    return !outside.empty() && std::binary_search(outside.begin(), outside.end(), position);
  }
};

Axis make_axis(const AxisResampling& plan, const ResampleRule& rule) {
  Axis axis{.in = plan.in, .out = plan.out};
  std::vector<std::vector<ResampleTap>> all;
  for (int64_t o = 0; o < plan.out; ++o) {
    all.push_back(taps_of(plan, rule, o));
    axis.taps = std::max(axis.taps, static_cast<int>(all.back().size()));
    if (all.back().empty()) axis.outside.push_back(o);
  }
  HONE_ASSERT(axis.taps <= kMaxResampleTaps, "a position has {} neighbours", axis.taps);
  for (int k = 0; k < axis.taps; ++k)
    for (const std::vector<ResampleTap>& taps : all) {
      const bool has = static_cast<size_t>(k) < taps.size();
      axis.indices.push_back(static_cast<int32_t>(has            ? taps[static_cast<size_t>(k)].index
                                                  : taps.empty() ? 0
                                                                 : taps[0].index));
      axis.weights.push_back(has ? static_cast<float>(taps[static_cast<size_t>(k)].weight) : 0.0f);
    }
  return axis;
}

/// The axes that change, in the order of the bytes.
std::vector<Axis> read_axes(const ResizeCode& code, const BoundNode& node, const ConcreteType& from,
                            const ConcreteType& to) {
  const Dims& named = code.axes;
  const bool by_size = node.has(3);
  const std::vector<double> scales = by_size ? std::vector<double>() : node.reals(2),
                            roi = node.has(1) ? node.reals(1) : std::vector<double>();
  node.require(by_size || scales.size() == named.size());
  std::vector<Axis> axes;
  for (size_t i = 0; i < named.size(); ++i) {
    const size_t logical = normalize_axis(named[i], from.dims.size());
    AxisResampling plan{.in = from.dims[logical], .out = to.dims[logical]};
    node.require(plan.in > 0 && plan.in < INT32_MAX && plan.out < INT32_MAX);
    plan.scale = by_size ? static_cast<double>(plan.out) / static_cast<double>(plan.in) : scales[i];
    node.require(plan.scale > 0);
    if (roi.size() == 2 * named.size()) plan.roi_start = roi[i], plan.roi_end = roi[i + named.size()];
    if (is_identity(plan, code.rule)) continue;
    axes.push_back(make_axis(plan, code.rule));
    axes.back().number = physical_axis(logical, from);
  }
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.number < b.number; });
  for (size_t i = 1; i < axes.size(); ++i) node.require(axes[i - 1].number < axes[i].number);
  return axes;
}

class Resize final : public CpuKernel {
 public:
  Resize(const ResizeCode& code, const BoundNode& node, const CpuInfo& info)
      : extrapolated_(static_cast<float>(code.extrapolated)), x_(node.operand(0)), y_(node.result()) {
    const std::optional<Layout> layout = shared_layout(x_.type, y_.type);
    node.require((x_.type.dtype == DType::f32 || x_.type.dtype == DType::bf16) && x_.type.dtype == y_.type.dtype &&
                 layout && x_.type.dims.size() == y_.type.dims.size());
    x_.type.layout = y_.type.layout = *layout;
    axes_ = read_axes(code, node, x_.type, y_.type);
    const auto kernels = [&](DType from, DType to) { return resample_kernels(from, to, info.isa); };
    whole_ = kernels(x_.type.dtype, y_.type.dtype), first_ = kernels(x_.type.dtype, DType::f32);
    between_two_ = kernels(DType::f32, DType::f32), last_ = kernels(DType::f32, y_.type.dtype);
    Dims dims = physical_dims(x_.type);
    if (axes_.empty()) {  // nothing changes: one pass that copies
      node.require(x_.type.dims == y_.type.dims);
      axes_.push_back({.number = 0,
                       .outer = 1,
                       .in = 1,
                       .out = 1,
                       .inner = elements(dims),
                       .taps = 1,
                       .indices = {0},
                       .weights = {1},
                       .outside = {}});
    } else {
      place_axes(dims);
    }
    node.require(dims == physical_dims(y_.type));
    pair_ = axes_.size() >= 2 && axes_[axes_.size() - 2].number + 1 == axes_.back().number;
    const size_t passes = axes_.size() - (pair_ ? 1 : 0);
    for (size_t i = 0; i + 1 < passes; ++i)
      between_ = std::max(between_, axes_[i].outer * axes_[i].out * axes_[i].inner);
    if (pair_) {
      const Axis &vertical = axes_[axes_.size() - 2], &horizontal = axes_.back();
      stretch_first_ = vertical.in <= vertical.out;
      scratch_ = stretch_first_ ? kKept * horizontal.out * horizontal.inner : horizontal.in * horizontal.inner;
      scratch_ = (scratch_ + 15) / 16 * 16;
    }
    phases_ = static_cast<int>(passes);
    workers_ = info.workers;
  }

  int phases() const override { return phases_; }
  bool serial() const override { return elements(y_.type.dims) < 4096; }
  size_t workspace_bytes() const override {
    return sizeof(float) * static_cast<size_t>(2 * between_ + scratch_ * workers_);
  }

  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    if (x_.type.dtype == DType::bf16) run_as<BFloat>(phase, worker, workers, bindings);
    else run_as<float>(phase, worker, workers, bindings);
  }

 private:
  /// Only the first pass reads the tensor's type and only the last one writes it: f32 lies between.
  template <typename T>
  void run_as(int phase, int worker, int workers, const Bindings& bindings) const {
    float* room = static_cast<float*>(bindings.workspace);
    const T* x = x_.as<T>(bindings);
    T* y = y_.as<T>(bindings);
    const float* from = room + (phase + 1) % 2 * between_;
    float* to = room + phase % 2 * between_;
    const bool reads = phase == 0, writes = phase + 1 == phases_;
    if (reads && writes) run_pass(whole_, x, y, phase, worker, workers, bindings);
    else if (reads) run_pass(first_, x, to, phase, worker, workers, bindings);
    else if (writes) run_pass(last_, from, y, phase, worker, workers, bindings);
    else run_pass(between_two_, from, to, phase, worker, workers, bindings);
  }

  template <typename From, typename To>
  void run_pass(const ResampleKernels& kernels, const From* from, To* to, int phase, int worker, int workers,
                const Bindings& bindings) const {
    if (pair_ && phase + 1 == phases_) {
      float* scratch = static_cast<float*>(bindings.workspace) + 2 * between_ + worker * scratch_;
      return run_pair(from, to, scratch, worker, workers);
    }
    const Axis& axis = axes_[static_cast<size_t>(phase)];
    if (axis.inner == 1) {
      const Share share = share_of(axis.outer, worker, workers);
      for (int64_t row = share.begin; row < share.end; ++row)
        stretch(kernels, axis, from + row * axis.in, to + row * axis.out);
    } else {
      const Share share = share_of(axis.outer * axis.out, worker, workers);
      for (int64_t row = share.begin; row < share.end; ++row)
        mix(
            kernels, axis, row % axis.out, axis.inner,
            [&](int64_t i) { return from + (row / axis.out * axis.in + i) * axis.inner; }, to + row * axis.inner);
    }
  }

  /// What lies around each axis when its turn comes: those before have their new sizes.
  void place_axes(Dims& dims) {
    for (Axis& axis : axes_) {
      axis.outer = elements(std::span(dims).first(axis.number));
      axis.inner = elements(std::span(dims).subspan(axis.number + 1));
      dims[axis.number] = axis.out;
    }
  }

  template <typename From, typename To>
  void stretch(const ResampleKernels& kernels, const Axis& axis, const From* from, To* to) const {
    kernels.stretch({from, axis.indices.data(), axis.weights.data(), axis.taps, axis.out, axis.inner, to});
    for (const int64_t x : axis.outside) std::fill_n(to + x * axis.inner, axis.inner, To(extrapolated_));
  }

  template <typename RowAt, typename To>
  void mix(const ResampleKernels& kernels, const Axis& axis, int64_t position, int64_t count, const RowAt& row_at,
           To* to) const {
    if (axis.is_outside(position)) {
      std::fill_n(to, count, To(extrapolated_));
      return;
    }
    MixArgs args{{}, {}, axis.taps, count, to};
    for (int k = 0; k < axis.taps; ++k) {
      args.rows[k] = row_at(axis.indices[static_cast<size_t>(k * axis.out + position)]);
      args.weights[k] = axis.weights[static_cast<size_t>(k * axis.out + position)];
    }
    kernels.mix(args);
  }

  template <typename From, typename To>
  void run_pair(const From* x, To* y, float* scratch, int worker, int workers) const {
    const Axis &vertical = axes_[axes_.size() - 2], &horizontal = axes_.back();
    const int64_t in_row = horizontal.in * horizontal.inner, out_row = horizontal.out * horizontal.inner;
    const Share share = share_of(vertical.outer * vertical.out, worker, workers);
    int64_t kept[kKept] = {-1, -1, -1, -1};  // which input rows are in the scratch memory
    for (int64_t row = share.begin; row < share.end; ++row) {
      const int64_t plane = row / vertical.out * vertical.in;
      To* to = y + row * out_row;
      if (!stretch_first_) {
        mix(
            first_of<From>(), vertical, row % vertical.out, in_row, [&](int64_t i) { return x + (plane + i) * in_row; },
            scratch);
        stretch(last_of<To>(), horizontal, scratch, to);
        continue;
      }
      mix(
          last_of<To>(), vertical, row % vertical.out, out_row,
          [&](int64_t i) {
            float* stretched = scratch + i % kKept * out_row;
            if (kept[i % kKept] != plane + i) {
              stretch(first_of<From>(), horizontal, x + (plane + i) * in_row, stretched);
              kept[i % kKept] = plane + i;
            }
            return stretched;
          },
          to);
    }
  }

  /// Into f32, and from it.
  template <typename From>
  const ResampleKernels& first_of() const {
    return std::is_same_v<From, float> ? between_two_ : first_;
  }
  template <typename To>
  const ResampleKernels& last_of() const {
    return std::is_same_v<To, float> ? between_two_ : last_;
  }

  ResampleKernels whole_, first_, between_two_, last_;  // by what a pass reads and writes
  const float extrapolated_;
  std::vector<Axis> axes_;
  NodeOperand x_;
  NodeResult y_;
  bool pair_ = false, stretch_first_ = false;
  int phases_ = 1, workers_ = 1;
  int64_t between_ = 0, scratch_ = 0;  // floats: between two passes; of a worker
};

struct ResizeFamily : NodeFamily<ResizeCode> {
  static constexpr std::string_view kName = "resize";
  static constexpr int kVersion = 2;

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !node->is(ops::resize)) return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    offer_layouts(problem, "cpu", kName, out);
  }
  static Cost cost(const Problem&, const Params&, const Tactic& tactic) {
    return {.operands = tactic.in[0] == Layout::channels_last ? 0.2 : 2.5};
  }
  static Built<ResizeCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node& node = *single_node(problem);
    Built<ResizeCode> built;
    built.code = {describe_node(problem, built.constants), ResampleRule(node.attrs),
                  resampled_axes(node.attrs, node.input(0)->type.shape.rank()), node.attrs.real("extrapolation_value")};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const ResizeCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    return std::make_shared<Resize>(code, BoundNode(code.node, shapes, kName), info);
  }
};

}  // namespace

const CpuTactic tactics::resize = describe<ResizeFamily>();

}  // namespace hone::cpu
