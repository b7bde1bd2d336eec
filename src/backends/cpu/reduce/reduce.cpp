// SPDX-License-Identifier: Apache-2.0
//
// Reductions over any axes of an f32 or bf16 tensor, and the global pools, which are reductions over the spatial axes.
//
// In the order in which the bytes lie, neighbouring axes that share their fate are one. If the innermost is reduced, results
// are sums of contiguous stretches; if it is kept, strips of results are sums of rows. A mean of bytes with a scale is the scale
// times the mean of the bytes.
#include <algorithm>
#include <array>
#include <cmath>

#include "backends/cpu/family.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/reduce/reductions.h"
#include "backends/cpu/support/region_reader.h"
#include "ops/byte_scale.h"
#include "ops/ops.h"
#include "regions/reduce_axes.h"

namespace hone::cpu {
namespace {

constexpr int64_t kStrip = 128;  // results of an item that reduces rows
constexpr int64_t kMaxOffsets = 1 << 22;

enum class Finish : uint8_t { none, mean, root, logarithm };
constexpr std::array<std::string_view, 4> field_names(Finish) { return {"none", "mean", "root", "logarithm"}; }

struct ReduceCode {
  ReducedAxes reduced;
  Reduction kind = Reduction::sum;
  Finish finish = Finish::none;
  double scale = 1, zero = 0;  // of bytes
  static void fields(auto& self, auto& visit) {
    ReducedAxes::fields(self.reduced, visit);
    visit("kind", self.kind);
    visit("finish", self.finish);
    visit("scale", self.scale);
    visit("zero", self.zero);
  }
};

bool is_byte(DType dtype) { return dtype == DType::u8 || dtype == DType::i8; }

struct Row {
  const OpDef* op;
  Reduction kind;
  Finish finish;
};
const std::array kOperators = {
    Row{&ops::reduce_sum, Reduction::sum, Finish::none},
    Row{&ops::reduce_mean, Reduction::sum, Finish::mean},
    Row{&ops::reduce_max, Reduction::max, Finish::none},
    Row{&ops::reduce_min, Reduction::min, Finish::none},
    Row{&ops::reduce_prod, Reduction::prod, Finish::none},
    Row{&ops::reduce_l1, Reduction::sum_abs, Finish::none},
    Row{&ops::reduce_l2, Reduction::sum_square, Finish::root},
    Row{&ops::reduce_sum_square, Reduction::sum_square, Finish::none},
    Row{&ops::reduce_log_sum, Reduction::sum, Finish::logarithm},
    Row{&ops::global_average_pool, Reduction::sum, Finish::mean},
    Row{&ops::global_max_pool, Reduction::max, Finish::none},
};

/// The general power is left to others.
const std::array kLpPools = {Row{&ops::global_lp_pool, Reduction::sum_abs, Finish::none},
                             Row{&ops::global_lp_pool, Reduction::sum_square, Finish::root}};

const Row* find_row(const Node& node) {
  if (node.is(ops::global_lp_pool)) {
    const int64_t p = node.attrs.integer("p");
    return p == 1 || p == 2 ? &kLpPools[static_cast<size_t>(p - 1)] : nullptr;
  }
  for (const Row& row : kOperators)
    if (node.is(*row.op)) return &row;
  return nullptr;
}

/// The region's reduction; behind the node that makes numbers of bytes, if that is all.
const Node* reduction_of(const Problem& problem) {
  const std::vector<Node*> nodes = problem.region.nodes();
  if (nodes.empty() || nodes.size() > 2) return nullptr;
  const Node* node = nodes.back();
  const Row* row = find_row(*node);
  if (row == nullptr || (nodes.size() == 2 && (!byte_scale(*nodes[0]) || node->input(0) != nodes[0]->output() ||
                                               row->finish != Finish::mean)))
    return nullptr;
  return node;
}

/// Offsets of every combination of the chosen axes.
std::vector<int64_t> offsets_of(const std::vector<AxisRun>& axes, bool reduced) {
  std::vector<int64_t> offsets{0};
  for (const AxisRun& axis : axes) {
    if (axis.reduced != reduced) continue;
    HONE_CHECK(static_cast<int64_t>(offsets.size()) * axis.size <= kMaxOffsets, "a reduction in the plan is too large");
    std::vector<int64_t> next;
    next.reserve(offsets.size() * static_cast<size_t>(axis.size));
    for (const int64_t offset : offsets)
      for (int64_t i = 0; i < axis.size; ++i) next.push_back(offset + i * axis.stride);
    offsets = std::move(next);
  }
  return offsets;
}

class Reduce final : public CpuKernel {
 public:
  Reduce(const ReduceCode& code, const KernelShapes& shapes, Isa isa)
      : finish_(code.finish), scale_(static_cast<float>(code.scale)), zero_(static_cast<float>(code.zero)) {
    const int64_t count = elements(shapes.inputs[0].dims), results = elements(shapes.outputs[0].dims);
    std::vector<AxisRun> axes = merged_axes(shapes.inputs[0], code.reduced.axes);
    columns_ = !axes.empty() && !axes.back().reduced;
    kernel_ = is_byte(shapes.inputs[0].dtype) ? add_bytes(columns_, shapes.inputs[0].dtype, isa)
                                              : reduce_stretches(code.kind, columns_, shapes.inputs[0].dtype, isa);
    result_size_ = static_cast<int64_t>(size_of(shapes.outputs[0].dtype));
    size_ = static_cast<int64_t>(size_of(shapes.inputs[0].dtype));
    if (shapes.outputs[0].dtype != DType::f32) narrow_ = convert_elements(DType::f32, shapes.outputs[0].dtype, isa);
    if (!axes.empty()) {
      length_ = axes.back().size;
      axes.pop_back();
    }
    kept_ = offsets_of(axes, false);
    reduced_ = offsets_of(axes, true);
    HONE_CHECK(results > 0 && static_cast<int64_t>(kept_.size()) * (columns_ ? length_ : 1) == results,
               "a reduction in the plan has {} results", results);
    divisor_ = static_cast<float>(count / results);
    strips_ = columns_ ? (length_ + kStrip - 1) / kStrip : 1;
    serial_ = count < 4096;
  }
  bool serial() const override { return serial_; }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const std::byte* x = static_cast<const std::byte*>(bindings.inputs[0]);
    std::byte* y = static_cast<std::byte*>(bindings.outputs[0]);
    const Share share = share_of(static_cast<int64_t>(kept_.size()) * strips_, worker, workers);
    if (columns_) {
      for (int64_t item = share.begin; item < share.end; ++item) {
        const int64_t row = item / strips_, column = item % strips_ * kStrip;
        reduce(x + (kept_[static_cast<size_t>(row)] + column) * size_, nullptr, std::min(kStrip, length_ - column), y,
               row * length_ + column);
      }
    } else {
      for (int64_t first = share.begin; first < share.end; first += kStrip)
        reduce(x, kept_.data() + first, std::min(kStrip, share.end - first), y, first);
    }
  }

 private:
  /// `results` from element `first` of y on: of columns at x, or of what starts at `starts` behind it.
  void reduce(const std::byte* x, const int64_t* starts, int64_t results, std::byte* y, int64_t first) const {
    float sums[kStrip];
    std::byte* to = y + first * result_size_;
    float* result = narrow_ == nullptr ? reinterpret_cast<float*>(to) : sums;
    kernel_({x, reduced_.data(), static_cast<int64_t>(reduced_.size()), columns_ ? results : length_, result, starts,
             results});
    finish(result, results);
    if (narrow_ != nullptr) narrow_(sums, to, results);
  }

  void finish(float* y, int64_t count) const {
    const auto each = [&](auto function) { std::transform(y, y + count, y, function); };
    switch (finish_) {
      case Finish::none: return;
      case Finish::mean: return each([this](float sum) { return (sum / divisor_ - zero_) * scale_; });
      case Finish::root: return each([](float sum) { return std::sqrt(sum); });
      case Finish::logarithm: return each([](float sum) { return std::log(sum); });
    }
  }

  Finish finish_;
  float scale_, zero_;
  ReduceStretches kernel_ = nullptr;
  ConvertElements narrow_ = nullptr;                            // of sums, where the result is not f32
  int64_t size_ = sizeof(float), result_size_ = sizeof(float);  // of an element
  bool columns_ = false, serial_ = false;
  int64_t length_ = 1, strips_ = 1;
  float divisor_ = 1;
  std::vector<int64_t> kept_, reduced_;  // input offsets of the results, and of what goes into each
};

struct ReduceFamily {
  static constexpr std::string_view kName = "reduce";
  static constexpr int kVersion = 2;
  using Params = NoParams;
  using Code = ReduceCode;

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = reduction_of(problem);
    if (node == nullptr) return;
    if (std::string reason = reason_not_f32_or_bf16(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    const std::optional<Dims> axes = reduced_axes(*node);
    if (!axes) return out.refuse(kName, "axes are not constant");
    offer_reductions(problem, *axes, "cpu", out);
  }
  static Cost cost(const Problem&, const Params&, const Tactic& tactic) {
    return {.operands = tactic.in[0] == Layout::channels_last ? 0.2 : 2.5};
  }
  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    const Node* node = reduction_of(problem);
    const Row* row = find_row(*node);
    const ByteScale bytes = byte_scale(*problem.region.nodes()[0]).value_or(ByteScale{DType::u8, 1, 0});
    return {{{*reduced_axes(*node)}, row->kind, row->finish, bytes.scale, bytes.zero}};
  }
  static std::vector<ConstantSpec> constants(const Code&, const KernelShapes&, const CpuInfo&) { return {}; }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    HONE_CHECK(shapes.inputs.size() == 1, "a reduction in the plan has {} inputs", shapes.inputs.size());
    const bool bytes = is_byte(shapes.inputs[0].dtype) && code.finish == Finish::mean && shapes.outputs.size() == 1 &&
                       shapes.outputs[0].dtype == DType::f32;
    if (!bytes) check_f32_or_bf16(shapes, 1, "reduction");
    return std::make_shared<Reduce>(code, shapes, info.isa);
  }
};

}  // namespace

const CpuTactic tactics::reduce = describe<ReduceFamily>();

}  // namespace hone::cpu
