// SPDX-License-Identifier: Apache-2.0
//
// GridSample of images in up to three dimensions. The images are brought to pixels whose channels lie behind each other; then a
// point of the grid is a weighted sum of up to 4 x 4 x 4 of them (pixel_mix.h). Positions are found in double, as the reference
// does: a grid of floats says which pixel is the nearest.
#include <algorithm>
#include <array>
#include <cmath>

#include "backends/cpu/movement/pixel_mix.h"
#include "backends/cpu/support/node_code.h"
#include "base/numbers.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kPoints = 64;  // done together
constexpr size_t kMostImageAxes = 3;
constexpr size_t kMostPixels = 64;  // of a point
constexpr double kFarthest = 1e15;  // positions beyond are brought there, so that they are integers

enum class Mode : uint8_t { linear, nearest, cubic };
enum class Padding : uint8_t { zeros, border, reflection };

struct GridSampleCode {
  NodeCode node;
  int64_t mode = 0, padding = 0;
  bool align_corners = false;
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("mode", self.mode, 0, 2);
    visit("padding", self.padding, 0, 2);
    visit("align_corners", self.align_corners);
  }
};

std::string reason_against(const Node& node) {
  for (const Value* value : {node.input(0), node.input(1)})
    if (value->type.dtype != DType::f32) return fmt::format("{} is not f32", name_of(value->type.dtype));
  if (node.input(0)->type.shape.rank() > 2 + kMostImageAxes) return "in more than three dimensions";
  return {};
}

double mirrored(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double away = std::fmod(std::abs(x - low), 2 * range);
  return away <= range ? low + away : high - (away - range);
}

/// The pixels of one axis that a position reads, and their weights.
struct Taps {
  std::array<int64_t, 4> pixel = {};  // -1: a zero
  std::array<double, 4> weight = {};
  int count = 0;
};

/// One axis of the image.
class Axis {
 public:
  Axis(const GridSampleCode& code, int64_t size)
      : mode_(static_cast<Mode>(code.mode)),
        padding_(static_cast<Padding>(code.padding)),
        align_corners_(code.align_corners),
        size_(size) {}

  int64_t size() const { return size_; }

  Taps taps(double grid) const {
    const auto length = static_cast<double>(size_);
    double x = align_corners_ ? (grid + 1) / 2 * (length - 1) : ((grid + 1) * length - 1) / 2;
    x = std::isnan(x) ? -2 : std::clamp(x, -kFarthest, kFarthest);
    Taps taps;
    const auto add = [&](double pixel, double weight) {
      taps.pixel[static_cast<size_t>(taps.count)] = weight == 0 ? -1 : inside(static_cast<int64_t>(pixel));
      taps.weight[static_cast<size_t>(taps.count++)] = weight;
    };
    if (mode_ == Mode::nearest) {
      add(std::nearbyint(padded(x)), 1);
    } else if (mode_ == Mode::linear) {
      x = padded(x);
      const double low = std::floor(x);
      add(low, 1 - (x - low));
      add(low + 1, x - low);
    } else {
      const double a = -0.75, low = std::floor(x), t = x - low;
      const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
      const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
      add(low - 1, far(t + 1));
      add(low, near(t));
      add(low + 1, near(1 - t));
      add(low + 2, far(2 - t));
    }
    return taps;
  }

 private:
  double padded(double x) const {
    const auto last = static_cast<double>(size_ - 1);
    if (padding_ == Padding::border) return std::clamp(x, 0.0, last);
    if (padding_ == Padding::reflection) return align_corners_ ? mirrored(x, 0, last) : mirrored(x, -0.5, last + 0.5);
    return x;
  }
  int64_t inside(int64_t pixel) const {
    if (pixel >= 0 && pixel < size_) return pixel;
    if (padding_ == Padding::zeros) return -1;
    return std::clamp<int64_t>(static_cast<int64_t>(std::nearbyint(padded(static_cast<double>(pixel)))), 0, size_ - 1);
  }

  Mode mode_;
  Padding padding_;
  bool align_corners_;
  int64_t size_;
};

/// What a point reads: pixels inside of the image with weights that are not zero.
struct Reads {
  std::array<int32_t, kMostPixels> pixels;
  std::array<float, kMostPixels> weights;
  int64_t count = 1;

  Reads() { pixels[0] = 0, weights[0] = 1; }
  /// Each of them at each of another axis' taps.
  void along(const Taps& taps, int64_t size, Reads& all) const {
    all.count = 0;
    for (int64_t i = 0; i < count; ++i)
      for (size_t k = 0; k < static_cast<size_t>(taps.count); ++k) {
        if (taps.pixel[k] < 0) continue;
        const auto from = static_cast<size_t>(i), to = static_cast<size_t>(all.count++);
        all.pixels[to] = static_cast<int32_t>(pixels[from] * size + taps.pixel[k]);
        all.weights[to] = weights[from] * static_cast<float>(taps.weight[k]);
      }
  }
};

void require_images(const BoundNode& node) {
  const ConcreteType &x = node.operand(0).type, &grid = node.operand(1).type, &y = node.result().type;
  const Dims &in = x.dims, &out = y.dims;
  node.require(x.dtype == DType::f32 && grid.dtype == DType::f32 && y.dtype == DType::f32 && in.size() >= 3 &&
               in.size() <= 2 + kMostImageAxes && elements(in) > 0 && elements(in) < INT32_MAX &&
               out.size() == in.size() && in[0] == out[0] && in[1] == out[1]);
  Dims points{out[0]};
  points.insert(points.end(), out.begin() + 2, out.end());
  points.push_back(static_cast<int64_t>(in.size()) - 2);
  node.require(grid.dims == points);
}

/// First the pixels; then an item is some points of an image, for all its channels.
class GridSample final : public CpuKernel {
 public:
  GridSample(const GridSampleCode& code, const BoundNode& node, const CpuInfo& info)
      : x_(node.operand(0)),
        grid_(node.operand(1)),
        y_(node.result()),
        kernels_(pixel_kernels(info.isa)),
        channels_(x_.type.dims.at(1)),
        area_(elements(std::span(x_.type.dims).subspan(2))),
        points_(elements(std::span(y_.type.dims).subspan(2))),
        workers_(info.workers),
        pixels_(x_.type.dims[0], channels_, area_) {
    for (size_t i = 2; i < x_.type.dims.size(); ++i) axes_.emplace_back(code, x_.type.dims[i]);
  }

  int phases() const override { return 2; }
  bool serial() const override { return elements(y_.type.dims) < 1024; }
  size_t workspace_bytes() const override {
    return pixels_.bytes() + static_cast<size_t>(workers_ * room()) * sizeof(float);
  }

  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    auto* pixels = static_cast<float*>(bindings.workspace);
    if (phase == 0) {
      const Share share = share_of(pixels_.items(), worker, workers);
      return pixels_.run(share.begin, share.end, x_.as<float>(bindings), pixels);
    }
    float* samples = pixels + pixels_.bytes() / sizeof(float) + worker * room();
    const int64_t blocks = (points_ + kPoints - 1) / kPoints;
    const Share share = share_of(x_.type.dims[0] * blocks, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t image = item / blocks, first = item % blocks * kPoints, count = std::min(kPoints, points_ - first);
      const float* grid = grid_.as<float>(bindings) + (image * points_ + first) * static_cast<int64_t>(axes_.size());
      for (int64_t p = 0; p < count; ++p, grid += axes_.size()) {
        Reads steps[2];
        const Reads& reads = reads_at(grid, steps);
        kernels_.mix({pixels + image * area_ * channels_, reads.pixels.data(), reads.weights.data(), reads.count,
                      channels_, samples + p * channels_});
      }
      transpose_floats(samples, channels_, y_.as<float>(bindings) + image * channels_ * points_ + first, points_, count,
                       channels_);
    }
  }

 private:
  /// Floats of a worker.
  int64_t room() const { return (kPoints * channels_ + kMixSlack + 15) / 16 * 16; }

  /// One of `steps`, which hold what is read along the axes so far in turns. Coordinates run from the last axis to the first.
  const Reads& reads_at(const float* grid, Reads (&steps)[2]) const {
    size_t now = 0;
    for (size_t axis = 0; axis < axes_.size(); ++axis, now = 1 - now)
      steps[now].along(axes_[axis].taps(grid[axes_.size() - 1 - axis]), axes_[axis].size(), steps[1 - now]);
    return steps[now];
  }

  NodeOperand x_, grid_;
  NodeResult y_;
  PixelKernels kernels_;
  int64_t channels_, area_, points_, workers_;
  PixelMajor pixels_;
  std::vector<Axis> axes_;
};

struct GridSampleFamily : NodeFamily<GridSampleCode> {
  static constexpr std::string_view kName = "grid_sample";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !node->is(ops::grid_sample)) return;
    if (std::string reason = reason_against(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    if (problem.region.nodes()[0]->input(0)->type.shape.elements() == Dim(0)) return out.refuse(kName, "empty input");
    offer_linear(problem, kName, out);
  }
  static Built<GridSampleCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Attrs& attrs = single_node(problem)->attrs;
    const std::string &mode = attrs.text("mode"), &padding = attrs.text("padding_mode");
    Built<GridSampleCode> built;
    built.code = {describe_node(problem, built.constants),
                  static_cast<int64_t>(mode == "nearest" ? Mode::nearest
                                       : mode == "cubic" ? Mode::cubic
                                                         : Mode::linear),
                  static_cast<int64_t>(padding == "border"       ? Padding::border
                                       : padding == "reflection" ? Padding::reflection
                                                                 : Padding::zeros),
                  attrs.integer("align_corners") != 0};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const GridSampleCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    const BoundNode node(code.node, shapes, kName);
    require_images(node);
    return std::make_shared<GridSample>(code, node, info);
  }
};

}  // namespace

const CpuTactic tactics::grid_sample = describe<GridSampleFamily>();

}  // namespace hone::cpu
