// SPDX-License-Identifier: Apache-2.0
//
// Batched matmul of two activations, with numpy's broadcasting of the leading axes. The generated kernel walks two batch
// axes with a stride per operand; axes that can be walked as one are merged, any that remain are an outer loop here.
#include <algorithm>

#include "backends/cpu/family.h"
#include "backends/cpu/matmul/gemm_kernel.h"
#include "regions/matmul_region.h"

namespace hone::cpu {
namespace {

struct BatchAxis {
  int64_t size, a, b;
};  // strides of the operands in elements, 0 where one repeats

/// The leading axes of the result, outermost first, merged where both operands allow it.
std::vector<BatchAxis> batch_axes(const Dims& a, const Dims& b, const Dims& c) {
  std::vector<BatchAxis> axes;  // innermost first
  int64_t a_stride = a[a.size() - 2] * a.back(), b_stride = b[b.size() - 2] * b.back();
  for (size_t i = 3; i <= c.size(); ++i) {
    const int64_t a_size = i <= a.size() ? a[a.size() - i] : 1, b_size = i <= b.size() ? b[b.size() - i] : 1;
    const BatchAxis axis{c[c.size() - i], a_size == 1 ? 0 : a_stride, b_size == 1 ? 0 : b_stride};
    a_stride *= a_size;
    b_stride *= b_size;
    if (axis.size == 1) continue;
    if (!axes.empty()) {
      BatchAxis& inner = axes.back();
      if (axis.a == inner.a * inner.size && axis.b == inner.b * inner.size) {
        inner.size *= axis.size;
        continue;
      }
    }
    axes.push_back(axis);
  }
  std::reverse(axes.begin(), axes.end());
  return axes;
}

/// The inner two axes for the kernel; what is left stays in `axes`.
BatchedGemmShape take_shape(std::vector<BatchAxis>& axes, const Dims& a, const Dims& c, float scale) {
  BatchedGemmShape shape;
  shape.matrix = {.m = c[c.size() - 2], .n = c.back(), .k = a.back()};
  shape.scale = scale;
  int64_t c_stride = shape.matrix.m * shape.matrix.n;
  if (!axes.empty()) {
    const BatchAxis axis = axes.back();
    axes.pop_back();
    shape.batch1 = axis.size, shape.a_stride1 = axis.a, shape.b_stride1 = axis.b,
    shape.c_stride1 = shape.residual_stride1 = c_stride;
    c_stride *= axis.size;
  }
  if (!axes.empty()) {
    const BatchAxis axis = axes.back();
    axes.pop_back();
    shape.batch0 = axis.size, shape.a_stride0 = axis.a, shape.b_stride0 = axis.b,
    shape.c_stride0 = shape.residual_stride0 = c_stride;
  }
  return shape;
}

std::string reason_against(const Problem& problem, const Node& node, const RegionMatch& match) {
  if (problem.device.architecture == "scalar") return "needs AVX2";
  for (const Value* operand : node.inputs) {
    if (operand->type.dtype != DType::f32) return fmt::format("operand is {}, not f32", name_of(operand->type.dtype));
    if (operand->type.shape.rank() < 2) return "an operand is a vector";
    if (operand->type.shape.elements() == Dim(0)) return "empty operands";
  }
  if (node.output()->type.shape.elements() == Dim(0)) return "empty result";
  if (!match.biases.empty()) return "adds a bias";
  return match.refusal;
}

struct TiledMatmul {
  MatmulCode matmul;
  GemmConfig config;
  static void fields(auto& self, auto& visit) {
    MatmulCode::fields(self.matmul, visit);
    GemmConfig::fields(self.config, visit);
  }
};

class MatMul final : public CpuKernel {
 public:
  MatMul(const TiledMatmul& code, const MatmulSizes& sizes, const CpuInfo& info)
      : code_(code.matmul),
        workers_(info.workers),
        outer_(batch_axes(sizes.a, sizes.b, sizes.c)),
        shape_(take_shape(outer_, sizes.a, sizes.c, code_.scale)),
        kernel_(shape_, code_.epilogue.epilogue(), code.config, info.isa) {
    for (const BatchAxis& axis : outer_) repeats_ *= axis.size;
  }

  size_t workspace_bytes() const override {
    return kernel_.scratch_floats() * sizeof(float) * static_cast<size_t>(workers_);
  }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const auto* a = static_cast<const float*>(code_.operands[0].find(bindings));
    const auto* b = static_cast<const float*>(code_.operands[1].find(bindings));
    const int64_t added = code_.epilogue.residual;
    const float* residual =
        added >= 0 ? static_cast<const float*>(bindings.inputs[static_cast<size_t>(added)]) : nullptr;
    const int64_t step = shape_.batch0 * shape_.batch1 * shape_.matrix.m * shape_.matrix.n;
    for (int64_t i = 0; i < repeats_; ++i) {
      int64_t a_offset = 0, b_offset = 0, rest = i;
      for (size_t axis = outer_.size(); axis-- > 0; rest /= outer_[axis].size) {
        a_offset += rest % outer_[axis].size * outer_[axis].a;
        b_offset += rest % outer_[axis].size * outer_[axis].b;
      }
      kernel_.run(worker, workers,
                  {a + a_offset, b + b_offset, residual == nullptr ? nullptr : residual + i * step,
                   static_cast<float*>(bindings.outputs[0]) + i * step, static_cast<float*>(bindings.workspace)});
    }
  }

 private:
  const MatmulCode code_;
  int workers_;
  std::vector<BatchAxis> outer_;
  int64_t repeats_ = 1;
  BatchedGemmShape shape_;
  BatchedGemmKernel kernel_;
};

struct MatmulFamily {
  static constexpr std::string_view kName = "matmul";
  static constexpr int kVersion = 2;
  static constexpr Cost kCost = {.arithmetic = 1.6, .operands = 2};
  static constexpr bool kPacksForIsa = true;  // the tile fits its registers
  using Params = GemmConfig;
  using Code = TiledMatmul;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const std::optional<MatmulRegion> region = read_matmul_region(problem.region);
    if (!region) return;
    const Node& node = *region->match.anchor;
    if (std::string reason = reason_against(problem, node, region->match); !reason.empty())
      return out.refuse(kName, std::move(reason));
    const Dims a = node.input(0)->type.shape.values(), b = node.input(1)->type.shape.values(),
               c = node.output()->type.shape.values();
    std::vector<BatchAxis> axes = batch_axes(a, b, c);
    const std::vector<Layout> in(problem.region.inputs().size(), Layout::linear);
    for (const GemmConfig& config :
         batched_gemm_candidates(take_shape(axes, a, c, region->code.scale), info.isa, info.workers))
      out.offer({"cpu", std::string(kName), write_fields(config), in, {Layout::linear}});
  }

  static Built<Code> compile(const Problem& problem, const Params& config, const Tactic&) {
    MatmulRegion region = *read_matmul_region(problem.region);
    return {{std::move(region.code), config}, std::move(region.constants)};
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes&, const CpuInfo&) {
    return operand_constants(code.matmul.operands);
  }

  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    HONE_CHECK(!code.config.narrow, "a matmul in the plan reads operands of {}", name_of(code.config.weights()));
    return std::make_shared<MatMul>(code, MatmulSizes(code.matmul, shapes), info);
  }
};

}  // namespace

const CpuTactic tactics::matmul = describe<MatmulFamily>();

}  // namespace hone::cpu
