// SPDX-License-Identifier: Apache-2.0
//
// Softmax and LogSoftmax along any axis, in any dense layout: where the axis lies innermost, whole rows; elsewhere columns.
#include <algorithm>

#include "backends/cpu/kernels/vector_kernels.h"
#include "backends/cpu/tactic_table.h"
#include "backends/cpu/tactics/region_reader.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kStrip = 64;  // columns of an item

void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || !(node->is(ops::softmax) || node->is(ops::log_softmax))) return;
  if (std::string reason = reason_not_f32(problem, *node); !reason.empty())
    return out.refuse("softmax", std::move(reason));
  offer_layouts(problem, "cpu", "softmax", out);
}

Compiled compile(const Problem& problem, const Tactic&) {
  const Node* node = problem.only();
  return {encode_code("softmax", {{"axis", node->attrs.integer("axis")}, {"log", int64_t{node->is(ops::log_softmax)}}}),
          {}};
}

class Softmax final : public CpuKernel {
 public:
  Softmax(const Attrs& attrs, const ConcreteType& type, Isa isa)
      : kernels_(vector_kernels(isa)), log_(attrs.integer("log") != 0) {
    const Dims dims = physical_dims(type);
    const size_t axis = physical_axis(normalize_axis(attrs.integer("axis"), dims.size()), type);
    n_ = dims[axis];
    for (size_t i = axis + 1; i < dims.size(); ++i) inner_ *= dims[i];
    const int64_t count = elements(dims);
    outer_ = count == 0 ? 0 : count / n_ / inner_;
    strips_ = (inner_ + kStrip - 1) / kStrip;
    serial_ = count < 2048;
  }
  bool serial() const override { return serial_; }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const float* x = static_cast<const float*>(bindings.inputs[0]);
    float* y = static_cast<float*>(bindings.outputs[0]);
    const auto kernel = inner_ == 1 ? (log_ ? kernels_.log_softmax_row : kernels_.softmax_row)
                                    : (log_ ? kernels_.log_softmax_columns : kernels_.softmax_columns);
    const Share share = share_of(outer_ * strips_, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t column = item % strips_ * kStrip, offset = item / strips_ * n_ * inner_ + column;
      kernel({x + offset, y + offset, n_, inner_, std::min(kStrip, inner_ - column)});
    }
  }

 private:
  const VectorKernels& kernels_;
  bool log_, serial_ = false;
  int64_t outer_ = 0, n_ = 0, inner_ = 1, strips_ = 1;
};

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  check_f32(shapes, 1, "softmax");
  HONE_CHECK(shapes.inputs[0] == shapes.outputs[0] && !shapes.inputs[0].dims.empty(),
             "a softmax kernel in the plan changes its tensor's type");
  return std::make_shared<Softmax>(attrs, shapes.inputs[0], info.isa);
}

}  // namespace

const CpuTactic tactics::softmax = {"softmax", propose, compile, load};

}  // namespace hone::cpu
