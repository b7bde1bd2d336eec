// SPDX-License-Identifier: Apache-2.0
//
// Softmax and LogSoftmax along any axis, in any dense layout: where the axis lies innermost, whole rows; elsewhere columns.
// bf16 is widened and narrowed by the item, in a worker's own memory.
#include <algorithm>

#include "backends/cpu/family.h"
#include "backends/cpu/norm/vector_kernels.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/support/region_reader.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kStrip = 64;  // columns of an item

struct SoftmaxCode {
  int64_t axis = -1;
  bool log = false;
  static void fields(auto& self, auto& visit) {
    visit("axis", self.axis, -kMostAxes, kMostAxes - 1);
    visit("log", self.log);
  }
};

class Softmax final : public CpuKernel {
 public:
  Softmax(const SoftmaxCode& code, const ConcreteType& type, const CpuInfo& info)
      : kernels_(vector_kernels(info.isa)), log_(code.log) {
    const Dims dims = physical_dims(type);
    const size_t axis = physical_axis(normalize_axis(code.axis, dims.size()), type);
    n_ = dims[axis];
    for (size_t i = axis + 1; i < dims.size(); ++i) inner_ *= dims[i];
    const int64_t count = elements(dims);
    outer_ = count == 0 ? 0 : count / n_ / inner_;
    strips_ = (inner_ + kStrip - 1) / kStrip;
    serial_ = count < 2048;
    if (type.dtype == DType::f32) return;
    widen_ = convert_elements(type.dtype, DType::f32, info.isa);
    narrow_ = convert_elements(DType::f32, type.dtype, info.isa);
    size_ = static_cast<int64_t>(size_of(type.dtype));
    room_ = (n_ * std::min(kStrip, inner_) + 15) / 16 * 16;
    workers_ = info.workers;
  }
  bool serial() const override { return serial_; }
  size_t workspace_bytes() const override { return sizeof(float) * static_cast<size_t>(room_ * workers_); }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const std::byte* x = static_cast<const std::byte*>(bindings.inputs[0]);
    std::byte* y = static_cast<std::byte*>(bindings.outputs[0]);
    float* room = static_cast<float*>(bindings.workspace) + worker * room_;
    const auto kernel = inner_ == 1 ? (log_ ? kernels_.log_softmax_row : kernels_.softmax_row)
                                    : (log_ ? kernels_.log_softmax_columns : kernels_.softmax_columns);
    const Share share = share_of(outer_ * strips_, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t column = item % strips_ * kStrip, offset = (item / strips_ * n_ * inner_ + column) * size_;
      const int64_t columns = std::min(kStrip, inner_ - column);
      if (widen_ == nullptr) {
        kernel({reinterpret_cast<const float*>(x + offset), reinterpret_cast<float*>(y + offset), n_, inner_, columns});
        continue;
      }
      for_rows(columns, [&](int64_t from, int64_t to, int64_t n) { widen_(x + offset + from * size_, room + to, n); });
      kernel({room, room, n_, columns, columns});
      for_rows(columns, [&](int64_t to, int64_t from, int64_t n) { narrow_(room + from, y + offset + to * size_, n); });
    }
  }

 private:
  /// Where each contiguous piece of an item lies in the tensor and in the worker's memory.
  template <typename Piece>
  void for_rows(int64_t columns, const Piece& piece) const {
    if (inner_ == 1) return piece(0, 0, n_);
    for (int64_t i = 0; i < n_; ++i) piece(i * inner_, i * columns, columns);
  }

  const VectorKernels& kernels_;
  bool log_, serial_ = false;
  ConvertElements widen_ = nullptr, narrow_ = nullptr;     // where the tensors are not f32
  int64_t size_ = sizeof(float), room_ = 0, workers_ = 1;  // of an element; floats of a worker
  int64_t outer_ = 0, n_ = 0, inner_ = 1, strips_ = 1;
};

struct SoftmaxFamily {
  static constexpr std::string_view kName = "softmax";
  static constexpr int kVersion = 1;
  static constexpr Cost kCost = {.operands = 3};
  using Params = NoParams;
  using Code = SoftmaxCode;

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !(node->is(ops::softmax) || node->is(ops::log_softmax))) return;
    if (std::string reason = reason_not_f32_or_bf16(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    offer_layouts(problem, "cpu", kName, out);
  }
  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    const Node* node = problem.only();
    return {{.axis = node->attrs.integer("axis"), .log = node->is(ops::log_softmax)}};
  }
  static std::vector<ConstantSpec> constants(const Code&, const KernelShapes&, const CpuInfo&) { return {}; }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    check_f32_or_bf16(shapes, 1, "softmax");
    HONE_CHECK(shapes.inputs[0] == shapes.outputs[0] && !shapes.inputs[0].dims.empty(),
               "a softmax kernel in the plan changes its tensor's type");
    return std::make_shared<Softmax>(code, shapes.inputs[0], info);
  }
};

}  // namespace

const CpuTactic tactics::softmax = describe<SoftmaxFamily>();

}  // namespace hone::cpu
