// SPDX-License-Identifier: Apache-2.0
//
// LayerNormalization and RMSNormalization over the innermost axes: a row stays in L1 while it is read three times.
// Rows of bf16 are widened and narrowed a few at a time, in a worker's own memory.
#include <algorithm>

#include "backends/cpu/norm/vector_kernels.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/support/region_reader.h"
#include "backends/cpu/tactic_table.h"
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

void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || !(node->is(ops::layer_normalization) || node->is(ops::rms_normalization))) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse("normalization", std::move(reason));
  out.offer({"cpu",
             "normalization",
             {},
             std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
             {Layout::linear}});
}

/// A parameter's place: region input (>= 0), constant -1 - k, or kNone.
constexpr int64_t kNone = -100;

Tensor in_f32(const Tensor& tensor) {
  return tensor.dtype() == DType::f32 ? tensor : write_doubles(DType::f32, tensor.dims(), read_doubles(tensor));
}

Compiled compile(const Problem& problem, const Tactic&) {
  const Node* node = problem.only();
  Compiled compiled;
  Attrs attrs{{"axis", node->attrs.integer("axis")},
              {"epsilon", node->attrs.real("epsilon")},
              {"centred", int64_t{node->is(ops::layer_normalization)}}};
  attrs.set("x", int64_t{input_index(problem.region, node->input(0))});
  const auto place = [&](const char* name, const Value* value) {
    if (value == nullptr) return attrs.set(name, kNone);
    if (!value->is_constant()) return attrs.set(name, int64_t{input_index(problem.region, value)});
    attrs.set(name, -1 - static_cast<int64_t>(compiled.constants.size()));
    compiled.constants.push_back(in_f32(*value->constant));
  };
  place("scale", node->input(1));
  place("bias", node->input(2));
  compiled.code = encode_code("normalization", attrs);
  return compiled;
}

class Normalization final : public CpuKernel {
 public:
  Normalization(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info)
      : kernel_(attrs.integer("centred") != 0 ? vector_kernels(info.isa).layer_norm
                                              : vector_kernels(info.isa).rms_norm),
        epsilon_(static_cast<float>(attrs.real("epsilon"))),
        x_(input(attrs, "x", shapes)) {
    HONE_CHECK(x_ >= 0, "a normalization kernel in the plan has no input");
    const Dims& dims = shapes.inputs[static_cast<size_t>(x_)].dims;
    for (size_t i = normalize_axis(attrs.integer("axis"), dims.size()); i < dims.size(); ++i) n_ *= dims[i];
    const int64_t count = elements(dims);
    rows_ = count == 0 ? 0 : count / n_;
    scale_ = input(attrs, "scale", shapes);
    bias_ = input(attrs, "bias", shapes);
    for (const int64_t parameter : {scale_, bias_}) {
      HONE_CHECK(parameter < 0 || elements(shapes.inputs[static_cast<size_t>(parameter)].dims) == n_,
                 "a normalization kernel in the plan has parameters of another size");
      if (parameter < 0 && parameter != kNone) require_constant(shapes, -1 - parameter, DType::f32, Dims{n_});
    }
    HONE_CHECK(elements(shapes.outputs[0].dims) == count, "a normalization kernel in the plan changes the size");
    const DType dtype = shapes.outputs[0].dtype;
    if (dtype == DType::f32) return;
    HONE_CHECK(scale_ < 0 && bias_ < 0, "a normalization kernel in the plan has parameters that are not f32");
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
    const auto parameter = [&](int64_t place) {
      return static_cast<const float*>(place == kNone ? nullptr
                                       : place >= 0   ? bindings.inputs[static_cast<size_t>(place)]
                                                      : bindings.constants[static_cast<size_t>(-1 - place)]);
    };
    const void* x = bindings.inputs[static_cast<size_t>(x_)];
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
  static int64_t input(const Attrs& attrs, std::string_view name, const KernelShapes& shapes) {
    const int64_t place = attrs.integer(name);
    HONE_CHECK(place == kNone || (place >= -2 && place < static_cast<int64_t>(shapes.inputs.size())),
               "a normalization kernel in the plan reads operand {}", place);
    return place;
  }

  void (*kernel_)(const NormArgs&);
  ConvertElements widen_ = nullptr, narrow_ = nullptr;  // where the tensors are not f32
  float epsilon_;
  int64_t x_ = 0, scale_ = kNone, bias_ = kNone, rows_ = 0, n_ = 1;
  int64_t size_ = sizeof(float), block_ = 1, room_ = 0,
          workers_ = 1;  // of an element; rows at a time; floats of a worker
};

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  check_f32_or_bf16(shapes, 1, "normalization");
  return std::make_shared<Normalization>(attrs, shapes, info);
}

}  // namespace

const CpuTactic tactics::normalization = {"normalization", propose, compile, load};

}  // namespace hone::cpu
