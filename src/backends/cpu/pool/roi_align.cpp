// SPDX-License-Identifier: Apache-2.0
//
// RoiAlign. The mean of a bin's bilinear samples is a sum over rows times a sum over columns: each sample adds to the weights
// of two rows and of two columns, so a bin costs the pixels that have a weight, whatever the number of samples, and all channels
// of a pixel are added at once (movement/pixel_mix.h). The largest of samples has no such form and is taken sample by sample. A
// region or an image number outside of bounds is brought inside.
#include <algorithm>
#include <cmath>

#include "backends/cpu/movement/indices.h"
#include "backends/cpu/movement/pixel_mix.h"
#include "backends/cpu/support/node_code.h"
#include "base/checked.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kMaxSamples = (1 << 16) - 1;  // per bin and axis, as the reference
constexpr int64_t kChannels = 64;               // done together where samples are taken one by one
constexpr int64_t kMaxWeights = 1 << 22;        // floats for each worker

std::string reason_against(const Node& node) {
  for (const Value* value : {node.input(0), node.input(1)})
    if (value->type.dtype != DType::f32) return fmt::format("{} is not f32", name_of(value->type.dtype));
  if (!is_index_type(node.input(2)->type.dtype))
    return fmt::format("image numbers are {}", name_of(node.input(2)->type.dtype));
  return {};
}

struct RoiAlignCode {
  NodeCode node;
  double scale = 1;        // from a region's coordinates to pixels
  int64_t samples = 0;     // per bin and axis; 0: as many as a bin has pixels
  bool half_pixel = true;  // a pixel's centre is half a pixel from its corner
  bool largest = false;    // of the samples, otherwise their mean
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("scale", self.scale);
    visit("samples", self.samples, 0, kMaxSamples);
    visit("half_pixel", self.half_pixel);
    visit("largest", self.largest);
  }
};

/// One axis of one region: where its bins begin, and how they are sampled.
struct Bins {
  float start = 0, size = 0;
  int64_t samples = 0;

  Bins(float low, float high, int64_t count, int64_t given, float scale, bool half_pixel) {
    const float offset = half_pixel ? 0.5f : 0.0f;
    start = low * scale - offset;
    float extent = high * scale - offset - start;
    if (!half_pixel) extent = std::max(extent, 1.0f);
    size = extent / static_cast<float>(count);
    if (given > 0) samples = given;
    else if (size > 0) samples = static_cast<int64_t>(std::ceil(std::min(size, static_cast<float>(kMaxSamples))));
  }
  float position(int64_t bin, int64_t sample) const {
    return start + static_cast<float>(bin) * size +
           (static_cast<float>(sample) + 0.5f) * size / static_cast<float>(samples);
  }
};

/// The two pixels that a sample lies between; none where it is outside by more than one pixel.
struct Neighbours {
  int64_t low = -1, high = -1;
  float fraction = 0;

  Neighbours(float at, int64_t pixels) {
    if (!(at >= -1 && at <= static_cast<float>(pixels))) return;
    at = std::max(at, 0.0f);
    low = static_cast<int64_t>(at);
    high = low + 1;
    if (low >= pixels - 1) low = high = pixels - 1;
    else fraction = at - static_cast<float>(low);
  }
  bool inside() const { return low >= 0; }
};

/// The pixels of a bin along an axis: first and last, the last excluded.
struct Pixels {
  int64_t begin = 0, end = 0;
};

/// The weights of each bin's pixels, summed over its samples; `weights` holds one row of pixels for each bin.
void sum_weights(const Bins& bins, int64_t count, int64_t pixels, float* weights, Pixels* covered) {
  for (int64_t bin = 0; bin < count; ++bin, weights += pixels) {
    Pixels& range = covered[bin] = {pixels, 0};
    for (int64_t sample = 0; sample < bins.samples; ++sample)
      if (const Neighbours at(bins.position(bin, sample), pixels); at.inside())
        range = {std::min(range.begin, at.low), std::max(range.end, at.high + 1)};
    if (range.begin >= range.end) continue;
    std::fill(weights + range.begin, weights + range.end, 0.0f);
    for (int64_t sample = 0; sample < bins.samples; ++sample)
      if (const Neighbours at(bins.position(bin, sample), pixels); at.inside()) {
        weights[at.low] += 1 - at.fraction;
        weights[at.high] += at.fraction;
      }
  }
}

/// Of the mean first the pixels, then regions; of the largest sample each channel of each region.
class RoiAlign final : public CpuKernel {
 public:
  RoiAlign(const RoiAlignCode& code, const BoundNode& node, const CpuInfo& info)
      : workers_(info.workers),
        x_(node.operand(0)),
        regions_(node.operand(1)),
        images_(node.operand(2)),
        y_(node.result()),
        kernels_(pixel_kernels(info.isa)),
        scale_(static_cast<float>(code.scale)),
        given_(code.samples),
        half_pixel_(code.half_pixel),
        largest_(code.largest),
        pixels_(x_.type.dims.at(0), x_.type.dims.at(1), elements(std::span(x_.type.dims).subspan(2))) {
    const Dims &in = x_.type.dims, &out = y_.type.dims;
    node.require(x_.type.dtype == DType::f32 && regions_.type.dtype == DType::f32 && y_.type.dtype == DType::f32 &&
                 is_index_type(images_.type.dtype) && in.size() == 4 && out.size() == 4 && in[1] == out[1] &&
                 elements(in) > 0 && elements(in) < INT32_MAX && regions_.type.dims == Dims{out[0], 4} &&
                 elements(images_.type.dims) == out[0]);
    count_ = in[0], channels_ = in[1], height_ = in[2], width_ = in[3], rows_ = out[2], columns_ = out[3];
    const int64_t weights = checked_add(checked_multiply(rows_, height_), checked_multiply(columns_, width_)),
                  lists = checked_multiply(2 * sizeof(float), height_ * width_),
                  bins = checked_add(checked_multiply(checked_multiply(rows_, columns_), channels_), kMixSlack);
    const int64_t floats = checked_multiply(checked_add(weights, bins), sizeof(float)),
                  ranges = checked_multiply(checked_add(rows_, columns_), sizeof(Pixels));
    bytes_per_worker_ = static_cast<size_t>(round_up(checked_add(checked_add(floats, ranges), lists), 64));
  }
  int phases() const override { return largest_ ? 1 : 2; }
  bool serial() const override { return elements(y_.type.dims) < 1024; }
  size_t workspace_bytes() const override {
    return largest_ ? 0 : pixels_.bytes() + static_cast<size_t>(workers_) * bytes_per_worker_;
  }

  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    if (largest_) return largest(share_of(y_.type.dims[0] * channels_, worker, workers), bindings);
    auto* pixels = static_cast<float*>(bindings.workspace);
    if (phase == 0) {
      const Share share = share_of(pixels_.items(), worker, workers);
      return pixels_.run(share.begin, share.end, x_.as<float>(bindings), pixels);
    }
    std::byte* space =
        static_cast<std::byte*>(bindings.workspace) + pixels_.bytes() + static_cast<size_t>(worker) * bytes_per_worker_;
    const Share share = share_of(y_.type.dims[0], worker, workers);
    const IndexReader images(images_, bindings);
    for (int64_t region = share.begin; region < share.end; ++region)
      average(region, pixels + images.inside(region, count_) * channels_ * height_ * width_, space, bindings);
  }

 private:
  Bins bins(int64_t region, bool is_down, const Bindings& bindings) const {
    const float* box = regions_.as<float>(bindings) + region * 4 + (is_down ? 1 : 0);
    return {box[0], box[2], is_down ? rows_ : columns_, given_, scale_, half_pixel_};
  }

  void average(int64_t region, const float* image, std::byte* space, const Bindings& bindings) const {
    auto* covered = reinterpret_cast<Pixels*>(space);
    auto* places = reinterpret_cast<int32_t*>(covered + rows_ + columns_);
    auto* factors = reinterpret_cast<float*>(places + height_ * width_);
    float *down = factors + height_ * width_, *across = down + rows_ * height_, *sums = across + columns_ * width_;
    const Bins vertical = bins(region, true, bindings), horizontal = bins(region, false, bindings);
    sum_weights(vertical, rows_, height_, down, covered);
    sum_weights(horizontal, columns_, width_, across, covered + rows_);
    const float share = 1 / static_cast<float>(std::max<int64_t>(vertical.samples * horizontal.samples, 1));
    for (int64_t bin = 0; bin < rows_ * columns_; ++bin) {
      const int64_t row = bin / columns_, column = bin % columns_;
      int64_t count = 0;
      for (int64_t i = covered[row].begin; i < covered[row].end; ++i) {
        const float weight = down[row * height_ + i] * share;
        if (weight == 0) continue;
        for (int64_t k = covered[rows_ + column].begin; k < covered[rows_ + column].end; ++k) {
          places[count] = static_cast<int32_t>(i * width_ + k);
          factors[count] = weight * across[column * width_ + k];
          count += factors[count] != 0 ? 1 : 0;
        }
      }
      kernels_.mix({image, places, factors, count, channels_, sums + bin * channels_});
    }
    const int64_t cells = rows_ * columns_;
    transpose_floats(sums, channels_, y_.as<float>(bindings) + region * channels_ * cells, cells, cells, channels_);
  }

  void largest(const Share& share, const Bindings& bindings) const {
    const IndexReader images(images_, bindings);
    for (int64_t item = share.begin, count = 0; item < share.end; item += count) {
      const int64_t region = item / channels_;
      count = std::min({kChannels, share.end - item, channels_ - item % channels_});
      const float* image = x_.as<float>(bindings) + images.inside(region, count_) * channels_ * height_ * width_;
      find_largest(image + item % channels_ * height_ * width_, count, bins(region, true, bindings),
                   bins(region, false, bindings), y_.as<float>(bindings) + item * rows_ * columns_);
    }
  }

  /// Several channels, so that they share what a sample's place costs.
  void find_largest(const float* planes, int64_t channels, const Bins& down, const Bins& across, float* y) const {
    const int64_t plane = height_ * width_, bins = rows_ * columns_;
    std::fill(y, y + channels * bins, down.samples * across.samples == 0 ? 0.0f : -INFINITY);
    for (int64_t bin = 0; bin < bins; ++bin)
      for (int64_t i = 0; i < down.samples; ++i) {
        const Neighbours v(down.position(bin / columns_, i), height_);
        for (int64_t k = 0; k < across.samples; ++k) {
          const Neighbours h(across.position(bin % columns_, k), width_);
          if (v.inside() && h.inside()) {
            const float dy = v.fraction, dx = h.fraction;
            const float a = (1 - dy) * (1 - dx), b = (1 - dy) * dx, c = dy * (1 - dx), d = dy * dx;
            const float *top = planes + v.low * width_, *bottom = planes + v.high * width_;
            for (int64_t n = 0; n < channels; ++n, top += plane, bottom += plane) {
              const float value =
                  std::max(std::max(a * top[h.low], b * top[h.high]), std::max(c * bottom[h.low], d * bottom[h.high]));
              y[n * bins + bin] = std::max(y[n * bins + bin], value);
            }
          } else {
            for (int64_t n = 0; n < channels; ++n) y[n * bins + bin] = std::max(y[n * bins + bin], 0.0f);
          }
        }
      }
  }

  int workers_;
  size_t bytes_per_worker_ = 0;
  NodeOperand x_, regions_, images_;
  NodeResult y_;
  PixelKernels kernels_;
  float scale_;
  int64_t given_;  // samples
  bool half_pixel_, largest_;
  PixelMajor pixels_;
  int64_t count_ = 0, channels_ = 0, height_ = 0, width_ = 0, rows_ = 0, columns_ = 0;
};

struct RoiAlignFamily : NodeFamily<RoiAlignCode> {
  static constexpr std::string_view kName = "roi_align";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !node->is(ops::roi_align)) return;
    if (std::string reason = reason_against(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    const Node& concrete = *problem.region.nodes()[0];
    const Shape &in = concrete.input(0)->type.shape, &result = concrete.output()->type.shape;
    if (in.elements() == Dim(0)) return out.refuse(kName, "empty input");
    if (in[2].value() * result[2].value() + in[3].value() * result[3].value() > kMaxWeights)
      return out.refuse(kName, "too many weights");
    offer_linear(problem, kName, out);
  }
  static Built<RoiAlignCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Attrs& attrs = single_node(problem)->attrs;
    Built<RoiAlignCode> built;
    built.code = {describe_node(problem, built.constants), attrs.real("spatial_scale"),
                  std::clamp<int64_t>(attrs.integer("sampling_ratio"), 0, kMaxSamples),
                  attrs.text("coordinate_transformation_mode") == "half_pixel", attrs.text("mode") == "max"};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const RoiAlignCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    const BoundNode node(code.node, shapes, kName);
    node.require(node.operand(0).type.dims.size() == 4);
    return std::make_shared<RoiAlign>(code, node, info);
  }
};

}  // namespace

const CpuTactic tactics::roi_align = describe<RoiAlignFamily>();

}  // namespace hone::cpu
