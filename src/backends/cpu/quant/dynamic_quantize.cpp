// SPDX-License-Identifier: Apache-2.0
//
// DynamicQuantizeLinear: first the range of each worker's share, then, from all of them, scale, zero point and the share's bytes.
#include <algorithm>
#include <cmath>

#include "backends/cpu/quant/quantize_loops.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/number.h"
#include "backends/cpu/support/region_reader.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kSmallWork = 8192;

struct DynamicQuantizeCode {
  NodeCode node;
  static void fields(auto& self, auto& visit) { NodeCode::fields(self.node, visit); }
};

class DynamicQuantize final : public CpuKernel {
 public:
  DynamicQuantize(const BoundNode& node, const CpuInfo& info)
      : x_(node.operand(0)), count_(elements(x_.type.dims)), workers_(info.workers), loops_(quantize_loops(info.isa)) {
    node.require(x_.type.dtype == DType::f32);
    for (size_t i = 0; i < 3; ++i) {
      if (!node.wants(i)) continue;
      results_[i] = node.result(i);
      const ConcreteType& type = results_[i]->type;
      node.require(type.dtype == (i == 1 ? DType::f32 : DType::u8) &&
                   elements(type.dims) == (i == 0 ? count_ : int64_t{1}));
      node.require(i != 0 || shared_layout(x_.type, type));
    }
  }

  size_t workspace_bytes() const override { return static_cast<size_t>(std::max(workers_, 1)) * sizeof(Range); }
  int phases() const override { return 2; }
  bool serial() const override { return count_ < kSmallWork; }

  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    auto* ranges = static_cast<Range*>(bindings.workspace);
    const Share share = share_of(count_, worker, workers);
    const float* x = x_.as<float>(bindings) + share.begin;
    if (phase == 0) {
      ranges[worker] = loops_.range(x, share.end - share.begin);
      return;
    }
    Range all;
    for (int i = 0; i < workers; ++i) all = {std::min(all.low, ranges[i].low), std::max(all.high, ranges[i].high)};
    const float scale = (all.high - all.low) / 255,
                zero = scale == 0 ? 0 : std::clamp(std::nearbyint(-all.low / scale), 0.0F, 255.0F);
    if (worker == 0) write_parameters(scale, zero, bindings);
    if (!results_[0]) return;
    uint8_t* y = results_[0]->as<uint8_t>(bindings) + share.begin;
    if (scale == 0) std::fill(y, y + (share.end - share.begin), uint8_t{0});
    else loops_.to_u8(x, y, share.end - share.begin, scale, zero);
  }

 private:
  void write_parameters(float scale, float zero, const Bindings& bindings) const {
    if (results_[1]) *results_[1]->as<float>(bindings) = scale;
    if (results_[2]) *results_[2]->as<uint8_t>(bindings) = narrowed<uint8_t>(zero);
  }

  NodeOperand x_;
  std::optional<NodeResult> results_[3];
  int64_t count_;
  int workers_;
  QuantizeLoops loops_;
};

struct DynamicQuantizeFamily : NodeFamily<DynamicQuantizeCode> {
  static constexpr std::string_view kName = "dynamic_quantize";
  static constexpr int kVersion = 2;

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !node->is(ops::dynamic_quantize_linear)) return;
    if (node->input(0)->type.dtype != DType::f32)
      return out.refuse(kName, fmt::format("input is {}, not f32", name_of(node->input(0)->type.dtype)));
    offer_linear(problem, kName, out);
    if (const size_t rank = node->input(0)->type.shape.rank(); rank >= 3 && rank <= 5)
      offer_images(problem, *node, out);
  }
  /// In any order of elements alike.
  static void offer_images(const Problem& problem, const Node& node, Candidates& out) {
    std::vector<Layout> in(problem.region.inputs().size(), Layout::linear), results;
    const int64_t place = input_index(problem.symbolic, node.input(0));
    if (place < 0) return;
    in[static_cast<size_t>(place)] = Layout::channels_last;
    for (const Value* output : problem.symbolic.outputs())
      results.push_back(output == node.output(0) ? Layout::channels_last : Layout::linear);
    out.offer({"cpu", std::string(kName), {}, std::move(in), std::move(results)});
  }
  static Built<DynamicQuantizeCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    Built<DynamicQuantizeCode> built;
    built.code = {describe_node(problem, built.constants)};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const DynamicQuantizeCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    return std::make_shared<DynamicQuantize>(BoundNode(code.node, shapes, kName), info);
  }
};

}  // namespace

const CpuTactic tactics::dynamic_quantize = describe<DynamicQuantizeFamily>();

}  // namespace hone::cpu
