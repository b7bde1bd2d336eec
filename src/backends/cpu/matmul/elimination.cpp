// SPDX-License-Identifier: Apache-2.0
//
// Det and Inverse of many small matrices. Each is brought into a worker's own memory as f64, and eliminated there.
#include <algorithm>

#include "backends/cpu/matmul/elimination_kernel.h"
#include "backends/cpu/support/node_code.h"
#include "base/checked.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kMostRows = 4096;

struct EliminationCode {
  NodeCode node;
  bool inverse = false;  // otherwise the determinant
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("inverse", self.inverse);
  }
};

class Eliminate final : public CpuKernel {
 public:
  Eliminate(const EliminationCode& code, const BoundNode& node, const CpuInfo& info)
      : inverse_(code.inverse),
        x_(node.operand(0)),
        y_(node.result()),
        kernels_(elimination_kernels(info.isa)),
        workers_(info.workers) {
    const Dims& dims = x_.type.dims;
    node.require(dims.size() >= 2 && dims.back() == dims[dims.size() - 2] && dims.back() <= kMostRows);
    const Dims before(dims.begin(), dims.end() - 2);
    n_ = dims.back(), matrices_ = elements(before), stride_ = round_up(n_, kEliminationLanes);
    node.require((x_.type.dtype == DType::f32 || x_.type.dtype == DType::f64) &&
                 y_.type == ConcreteType{x_.type.dtype, inverse_ ? dims : before});
  }
  bool serial() const override { return matrices_ < 2 || matrices_ * n_ * n_ * n_ < 16384; }
  size_t workspace_bytes() const override { return static_cast<size_t>(workers_) * bytes_per_worker(); }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    auto* room = static_cast<std::byte*>(bindings.workspace) + static_cast<size_t>(worker) * bytes_per_worker();
    auto* matrix = reinterpret_cast<double*>(room);
    auto* pivots = reinterpret_cast<int64_t*>(matrix + n_ * stride_);
    const Elimination elimination{matrix, n_, stride_, pivots, pivots + n_};
    const Share share = share_of(matrices_, worker, workers);
    for (int64_t i = share.begin; i < share.end; ++i)
      if (x_.type.dtype == DType::f32) eliminate<float>(i, elimination, bindings);
      else eliminate<double>(i, elimination, bindings);
  }

 private:
  size_t bytes_per_worker() const {
    return static_cast<size_t>(round_up(n_ * stride_ + 2 * n_, kEliminationLanes)) * sizeof(double);
  }

  template <typename T>
  void eliminate(int64_t index, const Elimination& e, const Bindings& bindings) const {
    const T* x = x_.as<T>(bindings) + index * n_ * n_;
    for (int64_t i = 0; i < n_; ++i) {
      std::copy_n(x + i * n_, n_, e.matrix + i * stride_);
      std::fill_n(e.matrix + i * stride_ + n_, stride_ - n_, 0.0);
    }
    if (!inverse_) {
      y_.as<T>(bindings)[index] = static_cast<T>(kernels_.determinant(e));
      return;
    }
    kernels_.invert(e);
    T* y = y_.as<T>(bindings) + index * n_ * n_;
    for (int64_t i = 0; i < n_; ++i, y += n_)
      for (int64_t k = 0; k < n_; ++k) y[k] = static_cast<T>(e.matrix[i * stride_ + e.places[k]]);
  }

  bool inverse_;
  NodeOperand x_;
  NodeResult y_;
  EliminationKernels kernels_;
  int64_t workers_, n_ = 0, stride_ = 0, matrices_ = 0;
};

struct EliminationFamily : NodeFamily<EliminationCode> {
  static constexpr std::string_view kName = "elimination";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !(node->is(ops::det) || node->is(ops::inverse))) return;
    const DType dtype = node->input(0)->type.dtype;
    if (dtype != DType::f32 && dtype != DType::f64)
      return out.refuse(kName, fmt::format("{} is neither f32 nor f64", name_of(dtype)));
    const Shape& shape = problem.region.nodes()[0]->input(0)->type.shape;
    if (shape[shape.rank() - 1].value() > kMostRows) return out.refuse(kName, "too many rows");
    offer_linear(problem, kName, out);
  }
  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    Built<Code> built;
    built.code = {describe_node(problem, built.constants), single_node(problem)->is(ops::inverse)};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    return std::make_shared<Eliminate>(code, BoundNode(code.node, shapes, kName), info);
  }
};

}  // namespace

const CpuTactic tactics::elimination = describe<EliminationFamily>();

}  // namespace hone::cpu
