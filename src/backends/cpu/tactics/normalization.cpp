// SPDX-License-Identifier: Apache-2.0
//
// LayerNormalization and RMSNormalization over the innermost axes: a row stays in L1 while it is read three times.
#include <algorithm>

#include "backends/cpu/kernels/vector_kernels.h"
#include "backends/cpu/tactic_table.h"
#include "backends/cpu/tactics/region_reader.h"
#include "backends/regions/region_match.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

std::string reason_against(const Problem& problem, const Node& node) {
  if (std::string reason = reason_not_f32(problem, node); !reason.empty()) return reason;
  const Shape& x = node.input(0)->type.shape;
  const size_t axis = normalize_axis(node.attrs.integer("axis"), x.rank());
  Dim n = 1;
  for (size_t i = axis; i < x.rank(); ++i) n = n * x[i];
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (node.input(i) != nullptr &&
        (node.input(i)->type.shape.elements() != n || node.input(i)->type.dtype != DType::f32))
      return "scale or bias is broadcast";
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
    compiled.constants.push_back(*value->constant);
  };
  place("scale", node->input(1));
  place("bias", node->input(2));
  compiled.code = encode_code("normalization", attrs);
  return compiled;
}

class Normalization final : public CpuKernel {
 public:
  Normalization(const Attrs& attrs, const KernelShapes& shapes, Isa isa)
      : kernel_(attrs.integer("centred") != 0 ? vector_kernels(isa).layer_norm : vector_kernels(isa).rms_norm),
        epsilon_(static_cast<float>(attrs.real("epsilon"))),
        x_(input(attrs, "x", shapes)) {
    HONE_CHECK(x_ >= 0, "a normalization kernel in the plan has no input");
    const Dims& dims = shapes.inputs[static_cast<size_t>(x_)].dims;
    for (size_t i = normalize_axis(attrs.integer("axis"), dims.size()); i < dims.size(); ++i) n_ *= dims[i];
    const int64_t count = elements(dims);
    rows_ = count == 0 ? 0 : count / n_;
    scale_ = input(attrs, "scale", shapes);
    bias_ = input(attrs, "bias", shapes);
    for (const int64_t parameter : {scale_, bias_})
      HONE_CHECK(parameter < 0 || elements(shapes.inputs[static_cast<size_t>(parameter)].dims) == n_,
                 "a normalization kernel in the plan has parameters of another size");
    HONE_CHECK(elements(shapes.outputs[0].dims) == count, "a normalization kernel in the plan changes the size");
  }
  bool serial() const override { return rows_ * n_ < 4096; }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const auto operand = [&](int64_t place) {
      return static_cast<const float*>(place == kNone ? nullptr
                                       : place >= 0   ? bindings.inputs[static_cast<size_t>(place)]
                                                      : bindings.constants[static_cast<size_t>(-1 - place)]);
    };
    const Share share = share_of(rows_, worker, workers);
    if (share.begin == share.end) return;
    kernel_({operand(x_) + share.begin * n_, operand(scale_), operand(bias_),
             static_cast<float*>(bindings.outputs[0]) + share.begin * n_, share.end - share.begin, n_, epsilon_});
  }

 private:
  static int64_t input(const Attrs& attrs, std::string_view name, const KernelShapes& shapes) {
    const int64_t place = attrs.integer(name);
    HONE_CHECK(place == kNone || (place >= -2 && place < static_cast<int64_t>(shapes.inputs.size())),
               "a normalization kernel in the plan reads operand {}", place);
    return place;
  }

  void (*kernel_)(const NormArgs&);
  float epsilon_;
  int64_t x_ = 0, scale_ = kNone, bias_ = kNone, rows_ = 0, n_ = 1;
};

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  check_f32(shapes, 1, "normalization");
  return std::make_shared<Normalization>(attrs, shapes, info.isa);
}

}  // namespace

const CpuTactic tactics::normalization = {"normalization", propose, compile, load};

}  // namespace hone::cpu
