// SPDX-License-Identifier: Apache-2.0
//
// MaxPool and AveragePool of one to three spatial axes. Channels-last: a pixel of the result is the vector sum (or maximum) of
// the pixels under the window. Linear: plane by plane. Of bytes the maximum only, and channels-last.
#include <algorithm>
#include <limits>

#include "backends/cpu/family.h"
#include "backends/cpu/pool/pool_axes.h"
#include "backends/cpu/reduce/reductions.h"
#include "backends/cpu/support/number.h"
#include "backends/cpu/support/region_reader.h"
#include "base/checked.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kMaxTaps = 1024;

bool is_byte(DType dtype) { return dtype == DType::u8 || dtype == DType::i8; }

struct PoolCode {
  WindowAttrs window;
  bool maximum = true;
  bool count_padding = false;  // in the mean
  static void fields(auto& self, auto& visit) {
    WindowAttrs::fields(self.window, visit);
    visit("maximum", self.maximum);
    visit("count_padding", self.count_padding);
  }
};

class Pool final : public CpuKernel {
 public:
  Pool(const PoolCode& code, const KernelShapes& shapes, Layout layout, Isa isa)
      : maximum_(code.maximum),
        dtype_(shapes.inputs[0].dtype),
        pool_(pool_pixel(maximum_, dtype_, isa)),
        include_pad_(code.count_padding),
        channels_last_(layout == Layout::channels_last) {
    const Dims &in = shapes.inputs[0].dims, &out = shapes.outputs[0].dims;
    const WindowAttrs& window = code.window;
    window.check(in.size() - 2);
    require_sizes(window.kernel);
    HONE_CHECK(elements(window.kernel) <= kMaxTaps, "a pool in the plan has a window of {}", join_dims(window.kernel));
    n_ = in[0], c_ = in[1];
    axes_ = pool_axes(window, in, out);
    pixels_ = elements(out) / std::max<int64_t>(n_ * c_, 1);
    in_pixels_ = axes_[0].input * axes_[1].input * axes_[2].input;
    rows_ = static_cast<int64_t>(axes_[0].spans.size() * axes_[1].spans.size());
    serial_ = elements(in) < 4096;
  }
  bool serial() const override { return serial_; }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    if (dtype_ == DType::u8) run_as<uint8_t>(worker, workers, bindings);
    else if (dtype_ == DType::i8) run_as<int8_t>(worker, workers, bindings);
    else if (dtype_ == DType::bf16) run_as<BFloat>(worker, workers, bindings);
    else run_as<float>(worker, workers, bindings);
  }

 private:
  template <typename T>
  void run_as(int worker, int workers, const Bindings& bindings) const {
    const T* x = static_cast<const T*>(bindings.inputs[0]);
    T* y = static_cast<T*>(bindings.outputs[0]);
    const int64_t images = channels_last_ ? n_ : n_ * c_, pixel = channels_last_ ? c_ : 1;
    const int64_t columns = static_cast<int64_t>(axes_[2].spans.size()),
                  planes = static_cast<int64_t>(axes_[1].spans.size());
    const Share share = share_of(images * rows_, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t image = item / rows_, row = item % rows_;
      const TapSpan &depth = axes_[0].spans[static_cast<size_t>(row / planes)],
                    &height = axes_[1].spans[static_cast<size_t>(row % planes)];
      const T* from = x + image * in_pixels_ * pixel;
      T* to = y + (image * pixels_ + row * columns) * pixel;
      if (channels_last_) run_row(from, depth, height, to);
      else run_plane_row(from, depth, height, to);
    }
  }

  float factor(const TapSpan& depth, const TapSpan& height, const TapSpan& width) const {
    const int64_t count =
        include_pad_ ? depth.padded * height.padded * width.padded : depth.count * height.count * width.count;
    return 1.0f / static_cast<float>(count);
  }

  template <typename T>
  void run_row(const T* x, const TapSpan& depth, const TapSpan& height, T* y) const {
    int64_t taps[kMaxTaps], count = 0, across = -1;  // from the first tap on; as long as as many columns lie inside
    const auto place = [&](int64_t d, int64_t h, int64_t w) {
      return ((d * axes_[1].input + h) * axes_[2].input + w) * c_;
    };
    for (const TapSpan& width : axes_[2].spans) {
      if (width.count != across) {
        across = width.count, count = 0;
        for (int64_t d = 0; d < depth.count; ++d)
          for (int64_t h = 0; h < height.count; ++h)
            for (int64_t w = 0; w < width.count; ++w)
              taps[count++] = place(d * axes_[0].step, h * axes_[1].step, w * axes_[2].step);
      }
      const T* first = count == 0 ? x : x + place(depth.first, height.first, width.first);
      pool_({first, taps, count, c_, factor(depth, height, width), y});
      y += c_;
    }
  }

  template <typename T>
  void run_plane_row(const T* x, const TapSpan& depth, const TapSpan& height, T* y) const {
    for (const TapSpan& width : axes_[2].spans) {
      float best = -std::numeric_limits<float>::infinity(), sum = 0;
      for (int64_t d = 0; d < depth.count; ++d)
        for (int64_t h = 0; h < height.count; ++h) {
          const T* row =
              x +
              ((depth.first + d * axes_[0].step) * axes_[1].input + height.first + h * axes_[1].step) * axes_[2].input +
              width.first;
          for (int64_t w = 0; w < width.count; ++w) {
            const float value = static_cast<float>(row[w * axes_[2].step]);
            best = std::max(best, value);
            sum += value;
          }
        }
      *y++ = narrowed<T>(maximum_ ? best : sum * factor(depth, height, width));
    }
  }

  bool maximum_;
  DType dtype_;
  PoolPixel pool_;
  bool include_pad_, channels_last_, serial_ = false;
  int64_t n_ = 1, c_ = 1, pixels_ = 1, in_pixels_ = 1, rows_ = 1;
  PoolAxes axes_;
};

struct PoolFamily {
  static constexpr std::string_view kName = "pool";
  static constexpr int kVersion = 1;
  using Params = NoParams;
  using Code = PoolCode;

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !(node->is(ops::max_pool) || node->is(ops::average_pool))) return;
    const bool bytes = node->is(ops::max_pool) && is_byte(node->input(0)->type.dtype);
    if (std::string reason = bytes ? reason_not_unary(problem, *node) : reason_not_f32_or_bf16(problem, *node);
        !reason.empty())
      return out.refuse(kName, std::move(reason));
    if (problem.region.outputs()[0] != node->output(0)) return out.refuse(kName, "indices are wanted");
    const size_t rank = node->input(0)->type.shape.rank();
    if (rank < 3 || rank > 5) return out.refuse(kName, fmt::format("{} spatial axes", rank - 2));
    if (elements(node->attrs.integers("kernel_shape")) > kMaxTaps) return out.refuse(kName, "the window is too large");
    if (!bytes) return offer_layouts(problem, "cpu", kName, out);
    out.offer({"cpu", std::string(kName), {}, {Layout::channels_last}, {Layout::channels_last}});
  }
  static Cost cost(const Problem&, const Params&, const Tactic& tactic) {
    return {.operands = tactic.in[0] == Layout::channels_last ? 0.5 : 25};
  }
  static Built<PoolCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node* node = problem.only();
    return {{WindowAttrs(node->attrs, node->input(0)->type.shape.rank() - 2, {}), node->is(ops::max_pool),
             node->attrs.integer_or("count_include_pad", 0) != 0}};
  }
  static std::vector<ConstantSpec> constants(const Code&, const KernelShapes&, const CpuInfo&) { return {}; }
  static std::shared_ptr<const CpuKernel> load(const PoolCode& code, const KernelShapes& shapes, const CpuInfo& info) {
    const bool bytes = code.maximum && shapes.inputs.size() == 1 && shapes.outputs.size() == 1 &&
                       is_byte(shapes.inputs[0].dtype) && shapes.outputs[0].dtype == shapes.inputs[0].dtype;
    if (!bytes) check_f32_or_bf16(shapes, 1, "pooling");
    const ConcreteType &in = shapes.inputs[0], &out = shapes.outputs[0];
    const std::optional<Layout> layout = shared_layout(in, out);
    const bool valid = layout && in.dims.size() >= 3 && in.dims.size() <= 5 && in.dims.size() == out.dims.size() &&
                       in.dims[0] == out.dims[0] && in.dims[1] == out.dims[1];
    HONE_CHECK(valid, "a pool in the plan turns {} into {}", join_dims(in.dims), join_dims(out.dims));
    return std::make_shared<Pool>(code, shapes, *layout, info.isa);
  }
};

}  // namespace

const CpuTactic tactics::pool = describe<PoolFamily>();

}  // namespace hone::cpu
