// SPDX-License-Identifier: Apache-2.0
//
// InstanceNormalization and GroupNormalization of f32, with channels first (a group is one stretch of memory) or last (a
// group is a strip of every pixel). Mean, then variance around it, then one pass that scales.
#include <algorithm>
#include <cmath>

#include "backends/cpu/norm/group_norm_kernel.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/region_reader.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kStrip = 64;  // channels of an item, where channels lie innermost

std::string reason_against(const Problem& problem, const Node& node) {
  if (std::string reason = reason_not_f32(problem, node); !reason.empty()) return reason;
  for (size_t i = 1; i < 3; ++i)
    if (node.input(i)->type.dtype != DType::f32)
      return fmt::format("scale or bias is {}", name_of(node.input(i)->type.dtype));
  return {};
}

struct GroupNormCode {
  NodeCode node;
  int64_t groups = 0;  // of channels; 0: one for each channel
  double epsilon = 0;
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("groups", self.groups, 0, kMostSize);
    visit("epsilon", self.epsilon);
  }
};

class GroupNorm final : public CpuKernel {
 public:
  GroupNorm(const GroupNormCode& code, const BoundNode& node, const CpuInfo& info)
      : kernels_(group_norm_kernels(info.isa)),
        x_(node.operand(0)),
        scale_(node.operand(1)),
        bias_(node.operand(2)),
        y_(node.result()),
        epsilon_(code.epsilon),
        channels_last_(x_.type.layout == Layout::channels_last) {
    const Dims& dims = x_.type.dims;
    node.require(x_.type == y_.type && x_.type.dtype == DType::f32 && dims.size() >= 2 && elements(dims) > 0);
    images_ = dims[0], channels_ = dims[1];
    pixels_ = elements(std::span(dims).subspan(2));
    groups_ = code.groups == 0 ? channels_ : code.groups;
    node.require(groups_ > 0 && channels_ % groups_ == 0);
    for (const NodeOperand* operand : {&scale_, &bias_})
      node.require(operand->type == ConcreteType{DType::f32, {channels_}, Layout::linear});
    group_ = channels_ / groups_;
    strip_ = channels_last_ ? std::max(group_, kStrip / group_ * group_) : group_;  // whole groups
    strips_ = (channels_ + strip_ - 1) / strip_;
    workers_ = info.workers;
  }

  bool serial() const override { return elements(x_.type.dims) < 4096; }
  /// Per worker: sums in doubles, then centres, factors and shifts.
  size_t workspace_bytes() const override {
    return channels_last_ ? static_cast<size_t>(workers_ * strip_) * (sizeof(double) + 3 * sizeof(float)) : 0;
  }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(images_ * strips_, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      if (channels_last_) run_strip(item / strips_, item % strips_ * strip_, worker, bindings);
      else run_group(item / strips_, item % strips_ * strip_, bindings);
    }
  }

 private:
  /// `squares`: the sum of squared distances to the centre, over `count` elements.
  Affine affine(float centre, double squares, int64_t count, int64_t channel, const Bindings& b) const {
    const double factor =
        static_cast<double>(scale_.as<float>(b)[channel]) / std::sqrt(squares / static_cast<double>(count) + epsilon_);
    return {centre, static_cast<float>(factor), bias_.as<float>(b)[channel]};
  }

  void run_group(int64_t image, int64_t first, const Bindings& b) const {
    const int64_t start = (image * channels_ + first) * pixels_, count = group_ * pixels_;
    const float* x = x_.as<float>(b) + start;
    const float centre = static_cast<float>(kernels_.sum(x, count) / static_cast<double>(count));
    const double squares = kernels_.distance(x, count, centre);
    for (int64_t c = 0; c < group_; ++c)
      kernels_.scale(x + c * pixels_, y_.as<float>(b) + start + c * pixels_, pixels_,
                     affine(centre, squares, count, first + c, b));
  }

  void run_strip(int64_t image, int64_t first, int worker, const Bindings& b) const {
    const int64_t count = std::min(strip_, channels_ - first), start = image * pixels_ * channels_ + first,
                  members = group_ * pixels_;
    double* sums = reinterpret_cast<double*>(static_cast<std::byte*>(b.workspace)) + worker * strip_;
    float* centres =
        reinterpret_cast<float*>(static_cast<double*>(b.workspace) + workers_ * strip_) + worker * 3 * strip_;
    float *factors = centres + strip_, *shifts = factors + strip_;
    const float* x = x_.as<float>(b) + start;
    const auto group_sum = [&](int64_t c) {
      double total = 0;
      for (int64_t k = 0; k < group_; ++k) total += sums[c / group_ * group_ + k];
      return total;
    };
    std::fill_n(sums, count, 0.0);
    kernels_.channel_sums({x, pixels_, count, channels_, nullptr, sums});
    for (int64_t c = 0; c < count; ++c) centres[c] = static_cast<float>(group_sum(c) / static_cast<double>(members));
    std::fill_n(sums, count, 0.0);
    kernels_.channel_sums({x, pixels_, count, channels_, centres, sums});
    for (int64_t c = 0; c < count; ++c) {
      const Affine a = affine(centres[c], group_sum(c), members, first + c, b);
      factors[c] = a.factor, shifts[c] = a.shift;
    }
    kernels_.channel_scale({x, y_.as<float>(b) + start, pixels_, count, channels_, centres, factors, shifts});
  }

  const GroupNormKernels kernels_;
  NodeOperand x_, scale_, bias_;
  NodeResult y_;
  double epsilon_;
  bool channels_last_;
  int64_t images_ = 1, channels_ = 1, pixels_ = 1, groups_ = 1, group_ = 1, strip_ = 1, strips_ = 1;
  int workers_ = 1;
};

struct GroupNormFamily : NodeFamily<GroupNormCode> {
  static constexpr std::string_view kName = "group_norm";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !(node->is(ops::instance_normalization) || node->is(ops::group_normalization))) return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    offer_layouts(problem, "cpu", kName, out);
  }
  static Built<GroupNormCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node& node = *single_node(problem);
    Built<GroupNormCode> built;
    built.code = {describe_node(problem, built.constants),
                  node.is(ops::group_normalization) ? node.attrs.integer("num_groups") : 0, node.attrs.real("epsilon")};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const GroupNormCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    return std::make_shared<GroupNorm>(code, BoundNode(code.node, shapes, kName), info);
  }
};

}  // namespace

const CpuTactic tactics::group_norm = describe<GroupNormFamily>();

}  // namespace hone::cpu
