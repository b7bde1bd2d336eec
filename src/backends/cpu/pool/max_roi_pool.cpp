// SPDX-License-Identifier: Apache-2.0
//
// MaxRoiPool. Of a row of bins first the largest of each column, whole rows of pixels at a time, then of the columns of each bin. Where
// a region's bins lie is worked out once for all its channels, in f64 as by the reference. An image number outside of bounds is brought
// inside.
#include <algorithm>
#include <cmath>

#include "backends/cpu/support/node_code.h"
#include "base/checked.h"
#include "base/numbers.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

struct MaxRoiPoolCode {
  NodeCode node;
  double scale = 1;  // from a region's coordinates to pixels
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("scale", self.scale);
  }
};

/// The pixels of a bin along an axis: first and last, the last excluded.
struct Pixels {
  int64_t begin, end;
};

/// Those of all bins of a region, along one axis.
void find_pixels(float low, float high, double scale, int64_t bins, int64_t pixels, Pixels* to) {
  const double first = std::round(low * scale), last = std::round(high * scale);
  const double size = std::max(last - first + 1, 1.0) / static_cast<double>(bins);
  const auto bound = [&](double at) { return std::clamp<int64_t>(saturated<int64_t>(at), 0, pixels); };
  for (int64_t bin = 0; bin < bins; ++bin)
    to[bin] = {bound(std::floor(static_cast<double>(bin) * size) + first),
               bound(std::ceil(static_cast<double>(bin + 1) * size) + first)};
}

float larger(float a, float b) { return a < b ? b : a; }

class MaxRoiPool final : public CpuKernel {
 public:
  MaxRoiPool(const MaxRoiPoolCode& code, const BoundNode& node, const CpuInfo& info)
      : x_(node.operand(0)), regions_(node.operand(1)), y_(node.result()), scale_(code.scale), workers_(info.workers) {
    const Dims &in = x_.type.dims, &out = y_.type.dims;
    node.require(x_.type.dtype == DType::f32 && regions_.type.dtype == DType::f32 && y_.type.dtype == DType::f32 &&
                 in.size() == 4 && out.size() == 4 && in[1] == out[1] && in[0] > 0 &&
                 regions_.type.dims == Dims{out[0], 5});
    images_ = in[0], channels_ = in[1], height_ = in[2], width_ = in[3], rows_ = out[2], columns_ = out[3];
    const int64_t lists = checked_multiply(checked_add(rows_, columns_), sizeof(Pixels));
    bytes_per_worker_ = static_cast<size_t>(round_up(checked_add(lists, checked_multiply(width_, sizeof(float))), 64));
  }
  bool serial() const override { return elements(y_.type.dims) < 1024; }
  size_t workspace_bytes() const override { return static_cast<size_t>(workers_) * bytes_per_worker_; }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    auto* down = reinterpret_cast<Pixels*>(static_cast<std::byte*>(bindings.workspace) +
                                           static_cast<size_t>(worker) * bytes_per_worker_);
    Pixels* across = down + rows_;
    auto* best = reinterpret_cast<float*>(across + columns_);
    const Share share = share_of(y_.type.dims[0] * channels_, worker, workers);
    const float* image = nullptr;
    for (int64_t item = share.begin; item < share.end; ++item) {
      if (item == share.begin || item % channels_ == 0) {
        const float* region = regions_.as<float>(bindings) + item / channels_ * 5;
        image = x_.as<float>(bindings) +
                std::clamp<int64_t>(saturated<int64_t>(region[0]), 0, images_ - 1) * channels_ * height_ * width_;
        find_pixels(region[1], region[3], scale_, columns_, width_, across);
        find_pixels(region[2], region[4], scale_, rows_, height_, down);
      }
      pool(image + item % channels_ * height_ * width_, down, across, best,
           y_.as<float>(bindings) + item * rows_ * columns_);
    }
  }

 private:
  void pool(const float* plane, const Pixels* down, const Pixels* across, float* best, float* y) const {
    const int64_t left = across[0].begin, count = across[columns_ - 1].end - left;
    for (int64_t row = 0; row < rows_; ++row, y += columns_) {
      if (down[row].begin >= down[row].end) {
        std::fill_n(y, columns_, 0.0f);
        continue;
      }
      std::fill_n(best, std::max<int64_t>(count, 0), -INFINITY);
      for (int64_t i = down[row].begin; i < down[row].end; ++i) {
        const float* pixels = plane + i * width_ + left;
        for (int64_t k = 0; k < count; ++k) best[k] = larger(best[k], pixels[k]);
      }
      for (int64_t column = 0; column < columns_; ++column) {
        float largest = across[column].begin < across[column].end ? -INFINITY : 0;
        for (int64_t k = across[column].begin; k < across[column].end; ++k) largest = larger(largest, best[k - left]);
        y[column] = largest;
      }
    }
  }

  NodeOperand x_, regions_;
  NodeResult y_;
  double scale_;
  int64_t workers_;
  size_t bytes_per_worker_ = 0;
  int64_t images_ = 0, channels_ = 0, height_ = 0, width_ = 0, rows_ = 0, columns_ = 0;
};

struct MaxRoiPoolFamily : NodeFamily<MaxRoiPoolCode> {
  static constexpr std::string_view kName = "max_roi_pool";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !node->is(ops::max_roi_pool)) return;
    for (const Value* value : node->inputs)
      if (value->type.dtype != DType::f32)
        return out.refuse(kName, fmt::format("{} is not f32", name_of(value->type.dtype)));
    if (problem.region.nodes()[0]->input(0)->type.shape[0] == Dim(0)) return out.refuse(kName, "no images");
    offer_linear(problem, kName, out);
  }
  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    Built<Code> built;
    built.code = {describe_node(problem, built.constants), single_node(problem)->attrs.real("spatial_scale")};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    return std::make_shared<MaxRoiPool>(code, BoundNode(code.node, shapes, kName), info);
  }
};

}  // namespace

const CpuTactic tactics::max_roi_pool = describe<MaxRoiPoolFamily>();

}  // namespace hone::cpu
