// SPDX-License-Identifier: Apache-2.0
//
// DFT along any axis, of real and complex signals and back, and STFT, whose frames are signals that overlap. Signals are brought into
// lanes, transformed together, and their results put where they belong.
#include <algorithm>
#include <limits>

#include "backends/cpu/signal/fast_transform.h"
#include "backends/cpu/support/node_code.h"
#include "base/checked.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kMostPoints = 1 << 16;  // two buffers of 8 MB for each worker

struct FourierCode {
  NodeCode node;
  bool frames = false;  // STFT
  bool inverse = false, onesided = false;
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("frames", self.frames);
    visit("inverse", self.inverse);
    visit("onesided", self.onesided);
  }
};

/// Signal i begins at place (i / inner) * outer_step + (i % inner) * inner_step; its points are `step` places apart.
struct Places {
  int64_t inner = 1, outer_step = 0, inner_step = 1, step = 1, count = 0,
          parts = 1;  // points that there are; numbers of a place
  int64_t start(int64_t signal) const { return signal / inner * outer_step + signal % inner * inner_step; }
};

class Fourier final : public CpuKernel {
 public:
  Fourier(const FourierCode& code, const BoundNode& node, const CpuInfo& info)
      : x_(node.operand(0)),
        y_(node.result()),
        workers_(info.workers),
        length_(length_of(code, node)),
        mirrors_(code.inverse && code.onesided && !code.frames),
        scale_(code.inverse && !code.frames ? 1.0F / static_cast<float>(length_) : 1.0F),
        transform_(length_, code.inverse && !code.frames, info.isa) {
    const Dims &in = x_.type.dims, &out = y_.type.dims;
    node.require(x_.type.dtype == DType::f32 && y_.type.dtype == DType::f32 && in.size() >= 2 && !out.empty());
    from_.parts = in.back(), to_.parts = out.back();
    const bool parts = (from_.parts == 1 || from_.parts == 2) && to_.parts == (mirrors_ ? 1 : 2);
    node.require(parts && elements(in) > 0);
    code.frames ? place_frames(node) : place_axis(code, node);
    const int64_t results = code.onesided && !mirrors_ ? length_ / 2 + 1 : length_;
    node.require(to_.count == results);
  }

  bool serial() const override { return signals_ * length_ < 2048; }
  size_t workspace_bytes() const override {
    return static_cast<size_t>(workers_ * 2 * transform_.buffer()) * sizeof(float);
  }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of((signals_ + kSignals - 1) / kSignals, worker, workers);
    float* buffer = static_cast<float*>(bindings.workspace) + worker * 2 * transform_.buffer();
    for (int64_t group = share.begin; group < share.end; ++group) {
      const int64_t first = group * kSignals, count = std::min(kSignals, signals_ - first);
      for (int64_t lane = 0; lane < kSignals; ++lane) read(lane < count ? first + lane : -1, buffer + lane, bindings);
      const float* result = transform_(buffer, buffer + transform_.buffer());
      for (int64_t lane = 0; lane < count; ++lane) write(first + lane, result + lane, bindings);
    }
  }

 private:
  static int64_t length_of(const FourierCode& code, const BoundNode& node) {
    const Dims& in = node.operand(0).type.dims;
    node.require(in.size() >= 2);
    const auto given = [&](size_t i) {
      const Dims numbers = node.integers(i);
      node.require(numbers.size() == 1);
      return numbers[0];
    };
    int64_t length = 0;
    if (code.frames) {
      length = node.has(3) ? given(3) : node.has(2) ? elements(node.operand(2).type.dims) : in[1];
    } else {
      const int64_t size = in[axis_of(node)];
      length = node.has(1) ? given(1) : code.inverse && code.onesided ? 2 * (size - 1) : size;
    }
    node.require(length >= 1 && length <= kMostPoints);
    return length;
  }
  static size_t axis_of(const BoundNode& node) {
    const size_t rank = node.operand(0).type.dims.size();
    const Dims given = node.has(2) ? node.integers(2) : Dims{-2};
    node.require(given.size() == 1);
    const size_t axis = normalize_axis(given[0], rank);
    node.require(axis + 1 < rank);
    return axis;
  }

  void place_axis(const FourierCode&, const BoundNode& node) {
    const Dims &in = x_.type.dims, &out = y_.type.dims;
    const size_t axis = axis_of(node);
    node.require(in.size() == out.size());
    for (size_t i = 0; i + 1 < in.size(); ++i) node.require(i == axis || in[i] == out[i]);
    const int64_t inner = elements(std::span(in).subspan(axis + 1)) / from_.parts;
    from_.count = in[axis], to_.count = out[axis];
    for (Places* places : {&from_, &to_})
      places->inner = places->step = inner, places->outer_step = inner * places->count;
    signals_ = elements(std::span(in).first(axis)) * inner;
  }

  void place_frames(const BoundNode& node) {
    const Dims &in = x_.type.dims, &out = y_.type.dims, steps = node.integers(1);
    node.require(in.size() == 3 && out.size() == 4 && steps.size() == 1 && steps[0] > 0 && length_ <= in[1]);
    const int64_t frames = (in[1] - length_) / steps[0] + 1;
    node.require(out[0] == in[0] && out[1] == frames);
    if (node.has(2)) {
      window_ = node.operand(2);
      node.require(window_->type == ConcreteType{DType::f32, {length_}});
    }
    from_.inner = frames, from_.outer_step = in[1], from_.inner_step = steps[0], from_.count = length_;
    to_.count = out[2], to_.outer_step = out[2];
    signals_ = in[0] * frames;
  }

  /// A signal into its lane; zeros behind what there is of it, and everywhere for none.
  void read(int64_t signal, float* to, const Bindings& bindings) const {
    const int64_t count = signal < 0 ? 0 : std::min(from_.count, length_);
    const float* x = x_.as<float>(bindings) + (signal < 0 ? 0 : from_.start(signal)) * from_.parts;
    const float* window = window_ ? window_->as<float>(bindings) : nullptr;
    const auto put = [&](int64_t i, float re, float im) { to[2 * i * kSignals] = re, to[(2 * i + 1) * kSignals] = im; };
    for (int64_t i = 0; i < count; ++i) {
      const float* point = x + i * from_.step * from_.parts;
      const float weight = window == nullptr ? 1.0F : window[i];
      put(i, point[0] * weight, from_.parts == 2 ? point[1] * weight : 0.0F);
    }
    for (int64_t i = count; i < length_; ++i) put(i, 0, 0);
    if (!mirrors_) return;
    for (int64_t i = length_ / 2 + 1; i < length_; ++i) {  // the other half mirrors the given one
      const float* other = to + 2 * (length_ - i) * kSignals;
      put(i, other[0], -other[kSignals]);
    }
  }

  void write(int64_t signal, const float* from, const Bindings& bindings) const {
    float* y = y_.as<float>(bindings) + to_.start(signal) * to_.parts;
    for (int64_t i = 0; i < to_.count; ++i) {
      float* point = y + i * to_.step * to_.parts;
      point[0] = from[2 * i * kSignals] * scale_;
      if (to_.parts == 2) point[1] = from[(2 * i + 1) * kSignals] * scale_;
    }
  }

  NodeOperand x_;
  std::optional<NodeOperand> window_ = {};
  NodeResult y_;
  int64_t workers_, length_;
  bool mirrors_;
  float scale_;
  FastTransform transform_;
  Places from_, to_;
  int64_t signals_ = 0;
};

std::string reason_against(const Problem& problem, const Node& node) {
  const bool frames = node.is(ops::stft);
  if (node.input(0)->type.dtype != DType::f32) return "its signals are not f32";
  if (frames && node.input(2) != nullptr && node.input(2)->type.dtype != DType::f32) return "its window is not f32";
  for (const size_t i : {1, frames ? 3 : 2})
    if (const Value* value = node.input(i); value != nullptr && !value->is_constant() && value->symbolic == nullptr)
      return "its length, step or axis is known in a run only";
  const Node& concrete = *problem.region.nodes()[0];
  const Shape &x = concrete.input(0)->type.shape, &y = concrete.output()->type.shape;
  const bool one_part =
      frames ? x[2] == Dim(1) || x[2] == Dim(2) : x[x.rank() - 1] == Dim(1) || x[x.rank() - 1] == Dim(2);
  if (!one_part) return "its numbers have neither one part nor two";
  if (x.elements() == Dim(0) || y.elements() == Dim(0)) return "an empty tensor";
  for (size_t i = 0; i + 1 < y.rank(); ++i)
    if (!y[i].is_constant()) return "a size is known in a run only";
  return {};
}

struct FourierFamily : NodeFamily<FourierCode> {
  static constexpr std::string_view kName = "fourier";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !(node->is(ops::dft) || node->is(ops::stft))) return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    offer_linear(problem, kName, out);
  }
  static Built<FourierCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node& node = *single_node(problem);
    Built<FourierCode> built;
    built.code.node = describe_node(problem, built.constants);
    built.code.frames = node.is(ops::stft);
    built.code.inverse = !built.code.frames && node.attrs.integer("inverse") != 0;
    built.code.onesided = node.attrs.integer("onesided") != 0;
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const FourierCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    return std::make_shared<Fourier>(code, BoundNode(code.node, shapes, kName), info);
  }
};

}  // namespace

const CpuTactic tactics::fourier = describe<FourierFamily>();

}  // namespace hone::cpu
