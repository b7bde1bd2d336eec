// SPDX-License-Identifier: Apache-2.0
//
// RoiAlign. The mean of a bin's bilinear samples is a sum over rows times a sum over columns: each sample adds to the weights
// of two rows and of two columns, so a bin costs the pixels that it covers, whatever the number of samples, and all channels
// share the weights of a region. The largest of samples has no such form and is taken sample by sample. A region or an image
// number outside of bounds is brought inside.
#include <algorithm>
#include <cmath>

#include "backends/cpu/movement/indices.h"
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

/// An item is one channel of one region.
class RoiAlign final : public CpuKernel {
 public:
  RoiAlign(const RoiAlignCode& code, const BoundNode& node, int workers)
      : workers_(workers),
        x_(node.operand(0)),
        regions_(node.operand(1)),
        images_(node.operand(2)),
        y_(node.result()),
        scale_(static_cast<float>(code.scale)),
        given_(code.samples),
        half_pixel_(code.half_pixel),
        largest_(code.largest) {
    const Dims &in = x_.type.dims, &out = y_.type.dims;
    node.require(x_.type.dtype == DType::f32 && regions_.type.dtype == DType::f32 && y_.type.dtype == DType::f32 &&
                 is_index_type(images_.type.dtype) && in.size() == 4 && out.size() == 4 && in[1] == out[1] &&
                 elements(in) > 0 && regions_.type.dims == Dims{out[0], 4} && elements(images_.type.dims) == out[0]);
    count_ = in[0], channels_ = in[1], height_ = in[2], width_ = in[3], rows_ = out[2], columns_ = out[3];
    const int64_t weights =
                      checked_add(checked_multiply(rows_, height_), checked_multiply(checked_add(columns_, 1), width_)),
                  bytes = checked_add(checked_multiply(weights, sizeof(float)),
                                      checked_multiply(checked_add(rows_, columns_), sizeof(Pixels)));
    bytes_per_worker_ = static_cast<size_t>(round_up(bytes, 64));
  }
  bool serial() const override { return elements(y_.type.dims) < 1024; }
  size_t workspace_bytes() const override { return largest_ ? 0 : static_cast<size_t>(workers_) * bytes_per_worker_; }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(y_.type.dims[0] * channels_, worker, workers);
    std::byte* space = static_cast<std::byte*>(bindings.workspace) + static_cast<size_t>(worker) * bytes_per_worker_;
    auto* covered = reinterpret_cast<Pixels*>(space);
    auto* weights = reinterpret_cast<float*>(covered + rows_ + columns_);
    const IndexReader images(images_, bindings);
    for (int64_t item = share.begin; item < share.end;) {
      const int64_t region = item / channels_, end = std::min(share.end, (region + 1) * channels_);
      const float* box = regions_.as<float>(bindings) + region * 4;
      const Bins across(box[0], box[2], columns_, given_, scale_, half_pixel_),
          down(box[1], box[3], rows_, given_, scale_, half_pixel_);
      if (!largest_) {
        sum_weights(down, rows_, height_, weights, covered);
        sum_weights(across, columns_, width_, weights + rows_ * height_, covered + rows_);
      }
      const float* image = x_.as<float>(bindings) + images.inside(region, count_) * channels_ * height_ * width_;
      for (int64_t count; item < end; item += count) {
        const float* planes = image + item % channels_ * height_ * width_;
        float* y = y_.as<float>(bindings) + item * rows_ * columns_;
        count = largest_ ? std::min(kChannels, end - item) : 1;
        if (largest_) find_largest(planes, count, down, across, y);
        else average(planes, weights, covered, std::max<int64_t>(down.samples * across.samples, 1), y);
      }
    }
  }

 private:
  /// A row of bins is summed over its lines first, for all columns of the region at once.
  void average(const float* plane, float* weights, const Pixels* covered, int64_t samples, float* y) const {
    const float* across = weights + rows_ * height_;
    float* sums = weights + rows_ * height_ + columns_ * width_;
    Pixels region{width_, 0};
    for (int64_t column = 0; column < columns_; ++column) {
      region.begin = std::min(region.begin, covered[rows_ + column].begin);
      region.end = std::max(region.end, covered[rows_ + column].end);
    }
    for (int64_t row = 0; row < rows_; ++row) {
      const Pixels lines = covered[row];
      for (int64_t k = region.begin; k < region.end; ++k) sums[k] = 0;
      for (int64_t i = lines.begin; i < lines.end; ++i) {
        const float weight = weights[row * height_ + i];
        const float* line = plane + i * width_;
        for (int64_t k = region.begin; k < region.end; ++k) sums[k] += weight * line[k];
      }
      for (int64_t column = 0; column < columns_; ++column) {
        const Pixels pixels = covered[rows_ + column];
        float total = 0;
        for (int64_t k = pixels.begin; k < pixels.end; ++k) total += across[column * width_ + k] * sums[k];
        *y++ = total / static_cast<float>(samples);
      }
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
  float scale_;
  int64_t given_;  // samples
  bool half_pixel_, largest_;
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
    return std::make_shared<RoiAlign>(code, BoundNode(code.node, shapes, kName), info.workers);
  }
};

}  // namespace

const CpuTactic tactics::roi_align = describe<RoiAlignFamily>();

}  // namespace hone::cpu
