// SPDX-License-Identifier: Apache-2.0
//
// GridSample of images in two dimensions. What a point of the grid costs - its place, up to 4 x 4 pixels and their weights - is
// worked out once for some points at a time, and all channels share it. Positions are found in double, as the reference does: a
// grid of floats says which pixel is the nearest.
#include <algorithm>
#include <array>
#include <cmath>

#include "backends/cpu/support/node_code.h"
#include "base/numbers.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kPoints = 64;     // done together
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
  if (node.input(0)->type.shape.rank() != 4) return "not in two dimensions";
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

/// What some points read of a plane: the same number of pixels each.
struct Reads {
  int count = 0;
  std::array<std::array<int64_t, kPoints>, 16> pixel;  // -1: a zero
  std::array<std::array<float, kPoints>, 16> weight;
};

void require_images(const BoundNode& node) {
  const ConcreteType &x = node.operand(0).type, &grid = node.operand(1).type, &y = node.result().type;
  const Dims &in = x.dims, &out = y.dims;
  node.require(x.dtype == DType::f32 && grid.dtype == DType::f32 && y.dtype == DType::f32 && in.size() == 4 &&
               elements(in) > 0 && out.size() == 4 && in[0] == out[0] && in[1] == out[1] &&
               grid.dims == Dims{out[0], out[2], out[3], 2});
}

/// An item is some points of an image, for all its channels.
class GridSample final : public ItemKernel {
 public:
  GridSample(const GridSampleCode& code, const BoundNode& node)
      : ItemKernel(node.operand(0).type.dims.at(0) * blocks_of(node.result()), elements(node.result().type.dims)),
        x_(node.operand(0)),
        grid_(node.operand(1)),
        y_(node.result()),
        rows_(code, x_.type.dims.at(2)),
        columns_(code, x_.type.dims.at(3)) {
    const Dims &in = x_.type.dims, &out = y_.type.dims;
    channels_ = in[1], width_ = in[3], area_ = in[2] * in[3], points_ = out[2] * out[3];
  }

 private:
  static int64_t blocks_of(const NodeResult& y) {
    return (y.type.dims.at(2) * y.type.dims.at(3) + kPoints - 1) / kPoints;
  }

  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    Reads reads;
    const int64_t blocks = blocks_of(y_);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t image = item / blocks, first = item % blocks * kPoints, count = std::min(kPoints, points_ - first);
      find(grid_.as<float>(bindings) + (image * points_ + first) * 2, count, reads);
      const float* x = x_.as<float>(bindings) + image * channels_ * area_;
      float* y = y_.as<float>(bindings) + image * channels_ * points_ + first;
      for (int64_t channel = 0; channel < channels_; ++channel, x += area_, y += points_) sum(reads, x, count, y);
    }
  }

  void find(const float* grid, int64_t count, Reads& reads) const {
    for (int64_t p = 0; p < count; ++p) {
      const Taps across = columns_.taps(grid[2 * p]), down = rows_.taps(grid[2 * p + 1]);
      reads.count = 0;
      for (size_t i = 0; i < static_cast<size_t>(down.count); ++i)
        for (size_t k = 0; k < static_cast<size_t>(across.count); ++k) {
          const auto at = static_cast<size_t>(reads.count++), point = static_cast<size_t>(p);
          const bool outside = down.pixel[i] < 0 || across.pixel[k] < 0;
          reads.pixel[at][point] = outside ? -1 : down.pixel[i] * width_ + across.pixel[k];
          reads.weight[at][point] = static_cast<float>(down.weight[i] * across.weight[k]);
        }
    }
  }

  static void sum(const Reads& reads, const float* x, int64_t count, float* y) {
    for (size_t p = 0; p < static_cast<size_t>(count); ++p) {
      float total = 0;
      for (size_t i = 0; i < static_cast<size_t>(reads.count); ++i)
        if (const int64_t at = reads.pixel[i][p]; at >= 0) total += reads.weight[i][p] * x[at];
      y[p] = total;
    }
  }

  NodeOperand x_, grid_;
  NodeResult y_;
  Axis rows_, columns_;
  int64_t channels_ = 0, width_ = 0, area_ = 0, points_ = 0;
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
  static std::shared_ptr<const CpuKernel> load(const GridSampleCode& code, const KernelShapes& shapes, const CpuInfo&) {
    const BoundNode node(code.node, shapes, kName);
    require_images(node);
    return std::make_shared<GridSample>(code, node);
  }
};

}  // namespace

const CpuTactic tactics::grid_sample = describe<GridSampleFamily>();

}  // namespace hone::cpu
