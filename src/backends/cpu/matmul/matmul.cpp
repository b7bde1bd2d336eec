// SPDX-License-Identifier: Apache-2.0
//
// Batched product of two activations, with numpy's broadcasting of the leading axes. The generated kernel walks two batch
// axes with a stride per operand; axes that can be walked as one are merged, any that remain are an outer loop here.
#include <algorithm>

#include "backends/cpu/conv/convolution.h"
#include "backends/cpu/matmul/gemm_kernel.h"
#include "ops/ops.h"

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

RegionMatch match(const Problem& problem, const Node* node) { return match_region(problem.region, node, 0); }

void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
  const Node* node = anchor_of(problem.region, ops::mat_mul);
  if (node == nullptr) return;
  const RegionMatch region = match(problem, node);
  if (std::string reason = reason_against(problem, *node, region); !reason.empty())
    return out.refuse("matmul", std::move(reason));
  const Dims a = node->input(0)->type.shape.values(), b = node->input(1)->type.shape.values(),
             c = node->output()->type.shape.values();
  std::vector<BatchAxis> axes = batch_axes(a, b, c);
  const std::vector<Layout> in(problem.region.inputs().size(), Layout::linear);
  for (const GemmConfig& config :
       batched_gemm_candidates(take_shape(axes, a, c, region.scale), info.isa, info.workers)) {
    Attrs params;
    write_config(params, config);
    out.offer({"cpu", "matmul", std::move(params), in, {Layout::linear}});
  }
}

Compiled compile(const Problem& problem, const Tactic& tactic) {
  const Node* node = anchor_of(problem.region, ops::mat_mul);
  const RegionMatch region = match(problem, node);
  Compiled compiled;
  Attrs attrs = tactic.params;
  // -1: the operand is a constant.
  for (const auto& [name, value] : {std::pair{"a", node->input(0)}, std::pair{"b", node->input(1)}}) {
    attrs.set(name, int64_t{input_index(problem.region, value)});
    if (!value->is_constant()) continue;
    attrs.set(std::string(name) + "_dims", value->constant->dims());
    compiled.constants.push_back(*value->constant);
  }
  attrs.set("scale", double{region.scale});
  attrs.set("isa", problem.device.architecture);  // the tile fits its registers
  write_epilogue(attrs, region, false);
  compiled.code = encode_code("matmul", attrs);
  return compiled;
}

class MatMul final : public CpuKernel {
 public:
  MatMul(const Attrs& attrs, const Dims& a, const Dims& b, const Dims& c, const CpuInfo& info)
      : a_(static_cast<int>(attrs.integer("a"))),
        b_(static_cast<int>(attrs.integer("b"))),
        residual_(read_residual(attrs)),
        workers_(info.workers),
        outer_(batch_axes(a, b, c)),
        shape_(take_shape(outer_, a, c, static_cast<float>(attrs.real("scale")))),
        kernel_(shape_, read_epilogue(attrs), read_config(attrs), info.isa) {
    for (const BatchAxis& axis : outer_) repeats_ *= axis.size;
  }

  size_t workspace_bytes() const override {
    return kernel_.scratch_floats() * sizeof(float) * static_cast<size_t>(workers_);
  }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    size_t constant = 0;
    const auto operand = [&](int index) {
      return static_cast<const float*>(index >= 0 ? bindings.inputs[index] : bindings.constants[constant++]);
    };
    const float *a = operand(a_), *b = operand(b_);
    const float* residual = residual_ >= 0 ? static_cast<const float*>(bindings.inputs[residual_]) : nullptr;
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
  int a_, b_, residual_, workers_;
  std::vector<BatchAxis> outer_;
  int64_t repeats_ = 1;
  BatchedGemmShape shape_;
  BatchedGemmKernel kernel_;
};

/// Constants are numbered in the order of the operands.
Dims operand_dims(const Attrs& attrs, std::string_view name, const KernelShapes& shapes, int64_t& constants) {
  const int64_t index = bounded(attrs, name, -1, static_cast<int64_t>(shapes.inputs.size()) - 1);
  const ConcreteType type =
      index >= 0 ? shapes.inputs[static_cast<size_t>(index)]
                 : constant_operand(shapes, constants++, DType::f32, attrs.integers(std::string(name) + "_dims"));
  HONE_CHECK(type.dtype == DType::f32, "a matrix product in the plan has an operand of {}", name_of(type.dtype));
  return type.dims;
}

/// Whether leading axes are those of the result or repeat along them.
bool broadcasts(const Dims& operand, const Dims& result) {
  for (size_t i = 3; i <= operand.size(); ++i)
    if (const int64_t size = operand[operand.size() - i]; size != 1 && size != result[result.size() - i]) return false;
  return true;
}

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  int64_t constants = 0;
  const Dims a = operand_dims(attrs, "a", shapes, constants), b = operand_dims(attrs, "b", shapes, constants);
  HONE_CHECK(shapes.outputs.size() == 1 && shapes.outputs[0].dtype == DType::f32,
             "a matrix product in the plan has {} results", shapes.outputs.size());
  const Dims& c = shapes.outputs[0].dims;
  const bool valid = a.size() >= 2 && b.size() >= 2 && c.size() == std::max(a.size(), b.size()) &&
                     a.back() == b[b.size() - 2] && c.back() == b.back() && c[c.size() - 2] == a[a.size() - 2] &&
                     broadcasts(a, c) && broadcasts(b, c);
  HONE_CHECK(valid, "a matrix product in the plan multiplies {} by {} to {}", join_dims(a), join_dims(b), join_dims(c));
  const int64_t residual = bounded(attrs, "residual", -1, static_cast<int64_t>(shapes.inputs.size()) - 1);
  HONE_CHECK(residual < 0 || shapes.inputs[static_cast<size_t>(residual)] == shapes.outputs[0],
             "a matrix product in the plan adds a tensor of another size");
  return std::make_shared<MatMul>(attrs, a, b, c, info);
}

}  // namespace

const CpuTactic tactics::matmul = {"matmul", propose, compile, load};

}  // namespace hone::cpu
