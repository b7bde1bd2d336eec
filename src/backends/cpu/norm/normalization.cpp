// SPDX-License-Identifier: Apache-2.0
//
// LayerNormalization and RMSNormalization over the innermost axes: a row stays in L1 while it is read three times.
// Rows of bf16 are widened and narrowed a few at a time, in a worker's own memory.
#include <algorithm>

#include "backends/cpu/family.h"
#include "backends/cpu/norm/vector_kernels.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/support/region_reader.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "regions/region_match.h"

namespace hone::cpu {
namespace {

constexpr int64_t kWidened = 2048;  // elements at a time

std::string reason_against(const Problem& problem, const Node& node) {
  if (std::string reason = reason_not_f32_or_bf16(problem, node); !reason.empty()) return reason;
  const Shape& x = node.input(0)->type.shape;
  const size_t axis = normalize_axis(node.attrs.integer("axis"), x.rank());
  Dim n = 1;
  for (size_t i = axis; i < x.rank(); ++i) n = n * x[i];
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Value* parameter = node.input(i);
    if (parameter == nullptr) continue;
    if (parameter->type.shape.elements() != n) return "scale or bias is broadcast";
    const bool f32 = parameter->type.dtype == DType::f32 && node.input(0)->type.dtype == DType::f32;
    if (!f32 && !parameter->is_constant()) return "scale or bias is neither f32 nor constant";
  }
  return {};
}

Tensor in_f32(const Tensor& tensor) {
  return tensor.dtype() == DType::f32 ? tensor : write_doubles(DType::f32, tensor.dims(), read_doubles(tensor));
}

struct NormalizationCode {
  int64_t axis = -1;  // the first of a row
  double epsilon = 0;
  bool centred = true;
  int64_t x = 0;                       // region input
  std::optional<int64_t> scale, bias;  // region input, or constant -1 - place of the kernel
  static void fields(auto& self, auto& visit) {
    visit("axis", self.axis, -kMostAxes, kMostAxes - 1);
    visit("epsilon", self.epsilon);
    visit("centred", self.centred);
    visit("x", self.x, 0, 2);
    visit("scale", self.scale, -2, 2);
    visit("bias", self.bias, -2, 2);
  }
};

/// Elements of a row.
int64_t row_size(const NormalizationCode& code, const KernelShapes& shapes) {
  for (const std::optional<int64_t>& place : {std::optional(code.x), code.scale, code.bias})
    HONE_CHECK(!place || *place < static_cast<int64_t>(shapes.inputs.size()),
               "a normalization kernel in the plan reads input {}", *place);
  const std::span<const int64_t> dims(shapes.inputs[static_cast<size_t>(code.x)].dims);
  return elements(dims.subspan(normalize_axis(code.axis, dims.size())));
}

class Normalization final : public CpuKernel {
 public:
  Normalization(const NormalizationCode& code, const KernelShapes& shapes, const CpuInfo& info)
      : kernel_(code.centred ? vector_kernels(info.isa).layer_norm : vector_kernels(info.isa).rms_norm),
        epsilon_(static_cast<float>(code.epsilon)),
        x_(static_cast<size_t>(code.x)),
        scale_(code.scale),
        bias_(code.bias),
        n_(row_size(code, shapes)) {
    const int64_t count = elements(shapes.inputs[x_].dims);
    rows_ = count == 0 ? 0 : count / n_;
    for (const std::optional<int64_t>& place : {scale_, bias_})
      HONE_CHECK(place.value_or(-1) < 0 || elements(shapes.inputs[static_cast<size_t>(*place)].dims) == n_,
                 "a normalization kernel in the plan has parameters of another size");
    HONE_CHECK(elements(shapes.outputs[0].dims) == count, "a normalization kernel in the plan changes the size");
    const DType dtype = shapes.outputs[0].dtype;
    if (dtype == DType::f32) return;
    HONE_CHECK(scale_.value_or(-1) < 0 && bias_.value_or(-1) < 0,
               "a normalization kernel in the plan has parameters that are not f32");
    widen_ = convert_elements(dtype, DType::f32, info.isa);
    narrow_ = convert_elements(DType::f32, dtype, info.isa);
    size_ = static_cast<int64_t>(size_of(dtype));
    block_ = std::max<int64_t>(1, kWidened / std::max<int64_t>(1, n_));
    room_ = (block_ * n_ + 15) / 16 * 16;
    workers_ = info.workers;
  }
  bool serial() const override { return rows_ * n_ < 4096; }
  size_t workspace_bytes() const override { return sizeof(float) * static_cast<size_t>(room_ * workers_); }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const auto parameter = [&](const std::optional<int64_t>& place) {
      return static_cast<const float*>(!place        ? nullptr
                                       : *place >= 0 ? bindings.inputs[static_cast<size_t>(*place)]
                                                     : bindings.constants[static_cast<size_t>(-1 - *place)]);
    };
    const void* x = bindings.inputs[x_];
    void* y = bindings.outputs[0];
    const float *scale = parameter(scale_), *bias = parameter(bias_);
    const Share share = share_of(rows_, worker, workers);
    if (share.begin == share.end) return;
    if (widen_ == nullptr) {
      const int64_t offset = share.begin * n_;
      return kernel_({static_cast<const float*>(x) + offset, scale, bias, static_cast<float*>(y) + offset,
                      share.end - share.begin, n_, epsilon_});
    }
    float* room = static_cast<float*>(bindings.workspace) + worker * room_;
    for (int64_t row = share.begin; row < share.end; row += block_) {
      const int64_t rows = std::min(block_, share.end - row), offset = row * n_ * size_;
      widen_(static_cast<const std::byte*>(x) + offset, room, rows * n_);
      kernel_({room, scale, bias, room, rows, n_, epsilon_});
      narrow_(room, static_cast<std::byte*>(y) + offset, rows * n_);
    }
  }

 private:
  void (*kernel_)(const NormArgs&);
  ConvertElements widen_ = nullptr, narrow_ = nullptr;  // where the tensors are not f32
  float epsilon_;
  size_t x_;
  std::optional<int64_t> scale_, bias_;
  int64_t rows_ = 0, n_;
  int64_t size_ = sizeof(float), block_ = 1, room_ = 0,
          workers_ = 1;  // of an element; rows at a time; floats of a worker
};

struct NormalizationFamily {
  static constexpr std::string_view kName = "normalization";
  static constexpr int kVersion = 1;
  static constexpr Cost kCost = {.operands = 0.4};
  using Params = NoParams;
  using Code = NormalizationCode;

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !(node->is(ops::layer_normalization) || node->is(ops::rms_normalization))) return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    out.offer({"cpu",
               std::string(kName),
               {},
               std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
               {Layout::linear}});
  }
  static Built<NormalizationCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node* node = problem.only();
    Built<NormalizationCode> built;
    const auto place = [&](const Value* value) -> std::optional<int64_t> {
      if (value == nullptr) return std::nullopt;
      if (!value->is_constant()) return input_index(problem.region, value);
      built.constants.push_back(in_f32(*value->constant));
      return -static_cast<int64_t>(built.constants.size());
    };
    built.code = {.axis = node->attrs.integer("axis"),
                  .epsilon = node->attrs.real("epsilon"),
                  .centred = node->is(ops::layer_normalization),
                  .x = input_index(problem.region, node->input(0)),
                  .scale = place(node->input(1)),
                  .bias = place(node->input(2))};
    return built;
  }
  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes& shapes, const CpuInfo&) {
    std::vector<ConstantSpec> specs;
    for (const std::optional<int64_t>& place : {code.scale, code.bias}) {
      if (place.value_or(0) >= 0) continue;
      HONE_CHECK(*place == -1 - static_cast<int64_t>(specs.size()),
                 "a normalization kernel in the plan reads constant {}", -1 - *place);
      specs.push_back({DType::f32, {row_size(code, shapes)}});
    }
    return specs;
  }
  static std::shared_ptr<const CpuKernel> load(const NormalizationCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    check_f32_or_bf16(shapes, 1, kName);
    return std::make_shared<Normalization>(code, shapes, info);
  }
};

}  // namespace

const CpuTactic tactics::normalization = describe<NormalizationFamily>();

}  // namespace hone::cpu
