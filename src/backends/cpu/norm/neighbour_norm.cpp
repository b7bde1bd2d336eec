// SPDX-License-Identifier: Apache-2.0
//
// LRN, which divides by the energy of neighbouring channels, and LpNormalization, which divides by the norm along an axis.
#include <algorithm>
#include <cmath>

#include "backends/cpu/norm/group_norm_kernel.h"
#include "backends/cpu/norm/vector_kernels.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/region_reader.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kStrip = 256;  // lines beside each other that are done together

enum class Neighbours { channels, line };  // LRN, LpNormalization
constexpr std::array<std::string_view, 2> field_names(Neighbours) { return {"channels", "line"}; }

struct NeighbourNormCode {
  NodeCode node;
  Neighbours neighbours = Neighbours::channels;
  int64_t size = 1;  // of the channels: how many
  double alpha = 0, beta = 0, bias = 0;
  int64_t axis = -1, p = 2;  // of a line: where it lies, and its norm
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("neighbours", self.neighbours);
    visit("size", self.size, 1, kMostSize);
    visit("alpha", self.alpha);
    visit("beta", self.beta);
    visit("bias", self.bias);
    visit("axis", self.axis, -kMostAxes, kMostAxes - 1);
    visit("p", self.p, INT64_MIN, INT64_MAX);
  }
};

int64_t outer_of(const Dims& dims, size_t axis) { return elements(std::span(dims).first(axis)); }
int64_t inner_of(const Dims& dims, size_t axis) { return elements(std::span(dims).subspan(axis + 1)); }

class Lrn final : public ItemKernel {
 public:
  Lrn(const NeighbourNormCode& code, const BoundNode& node, Isa isa)
      : ItemKernel(node.operand(0).type.dims.at(0) * node.operand(0).type.dims.at(1),
                   elements(node.operand(0).type.dims)),
        kernels_(group_norm_kernels(isa)),
        x_(node.operand(0)),
        y_(node.result()),
        size_(code.size),
        alpha_(static_cast<float>(code.alpha / static_cast<double>(size_))),
        beta_(static_cast<float>(code.beta)),
        bias_(static_cast<float>(code.bias)),
        channels_(x_.type.dims[1]),
        pixels_(inner_of(x_.type.dims, 1)) {
    node.require(x_.type == y_.type && x_.type.dtype == DType::f32);
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const int64_t before = (size_ - 1) / 2, after = size_ - 1 - before;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t c = item % channels_, first = std::max<int64_t>(0, c - before),
                    last = std::min(channels_ - 1, c + after);
      const float* x = x_.as<float>(bindings) + item * pixels_;
      kernels_.channel_response({x, x + (first - c) * pixels_, y_.as<float>(bindings) + item * pixels_,
                                 last - first + 1, pixels_, pixels_, alpha_, beta_, bias_});
    }
  }

  const GroupNormKernels kernels_;
  NodeOperand x_;
  NodeResult y_;
  int64_t size_;
  float alpha_, beta_, bias_;
  int64_t channels_, pixels_;
};

class LpNorm final : public ItemKernel {
 public:
  LpNorm(const NeighbourNormCode& code, const BoundNode& node, Isa isa)
      : ItemKernel(items_of(code, node), elements(node.operand(0).type.dims)),
        x_(node.operand(0)),
        y_(node.result()),
        p_(code.p),
        n_(x_.type.dims[axis_of(code, node)]),
        inner_(inner_of(x_.type.dims, axis_of(code, node))),
        strips_((inner_ + kStrip - 1) / kStrip) {
    node.require(x_.type == y_.type && x_.type.dtype == DType::f32);
    if (inner_ == 1 && p_ == 1) rows_ = vector_kernels(isa).l1_norm;
    if (inner_ == 1 && p_ == 2) rows_ = vector_kernels(isa).l2_norm;
  }

 private:
  static size_t axis_of(const NeighbourNormCode& code, const BoundNode& node) {
    return normalize_axis(code.axis, node.operand(0).type.dims.size());
  }
  static int64_t items_of(const NeighbourNormCode& code, const BoundNode& node) {
    const Dims& dims = node.operand(0).type.dims;
    return outer_of(dims, axis_of(code, node)) * ((inner_of(dims, axis_of(code, node)) + kStrip - 1) / kStrip);
  }

  double term(float x) const {
    const double value = std::fabs(static_cast<double>(x));
    return p_ == 1 ? value : p_ == 2 ? value * value : std::pow(value, static_cast<double>(p_));
  }

  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    if (rows_ != nullptr)
      return rows_({.x = x_.as<float>(bindings) + begin * n_,
                    .scale = nullptr,
                    .bias = nullptr,
                    .y = y_.as<float>(bindings) + begin * n_,
                    .count = end - begin,
                    .n = n_,
                    .epsilon = 0});
    double norms[kStrip];
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first = item % strips_ * kStrip, count = std::min(kStrip, inner_ - first),
                    start = item / strips_ * n_ * inner_ + first;
      const float* x = x_.as<float>(bindings) + start;
      float* y = y_.as<float>(bindings) + start;
      std::fill_n(norms, count, 0.0);
      for (int64_t k = 0; k < n_; ++k)
        for (int64_t i = 0; i < count; ++i) norms[i] += term(x[k * inner_ + i]);
      for (int64_t i = 0; i < count; ++i) {
        const double norm = p_ == 1   ? norms[i]
                            : p_ == 2 ? std::sqrt(norms[i])
                                      : std::pow(norms[i], 1 / static_cast<double>(p_));
        norms[i] = norm == 0 ? 0 : 1 / norm;  // a line of zeros stays one
      }
      for (int64_t k = 0; k < n_; ++k)
        for (int64_t i = 0; i < count; ++i)
          y[k * inner_ + i] = static_cast<float>(static_cast<double>(x[k * inner_ + i]) * norms[i]);
    }
  }

  NodeOperand x_;
  NodeResult y_;
  int64_t p_, n_, inner_, strips_;
  void (*rows_)(const NormArgs&) = nullptr;  // where a line is a row
};

struct NeighbourNormFamily : NodeFamily<NeighbourNormCode> {
  static constexpr std::string_view kName = "neighbour_norm";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !(node->is(ops::lrn) || node->is(ops::lp_normalization))) return;
    if (std::string reason = reason_not_f32(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    offer_linear(problem, kName, out);
  }
  static Built<NeighbourNormCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node& node = *single_node(problem);
    Built<NeighbourNormCode> built;
    NeighbourNormCode& code = built.code;
    code.node = describe_node(problem, built.constants);
    if (node.is(ops::lrn)) {
      code.size = node.attrs.integer("size");
      code.alpha = node.attrs.real("alpha"), code.beta = node.attrs.real("beta"), code.bias = node.attrs.real("bias");
    } else {
      code.neighbours = Neighbours::line;
      code.axis = node.attrs.integer("axis"), code.p = node.attrs.integer("p");
    }
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const NeighbourNormCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    const BoundNode node(code.node, shapes, kName);
    const bool channels = code.neighbours == Neighbours::channels;
    node.require(node.operand(0).type.dims.size() >= (channels ? 2u : 1u));
    if (channels) return std::make_shared<Lrn>(code, node, info.isa);
    return std::make_shared<LpNorm>(code, node, info.isa);
  }
};

}  // namespace

const CpuTactic tactics::neighbour_norm = describe<NeighbourNormFamily>();

}  // namespace hone::cpu
