// SPDX-License-Identifier: Apache-2.0
//
// Softmax and LogSoftmax of f64 along any axis: each line is brought into a worker's own memory and back.
#include <algorithm>

#include "backends/cpu/norm/double_softmax_kernel.h"
#include "backends/cpu/support/node_code.h"
#include "base/checked.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

struct DoubleSoftmaxCode {
  NodeCode node;
  int64_t axis = -1;
  bool log = false;
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("axis", self.axis, -kMostAxes, kMostAxes - 1);
    visit("log", self.log);
  }
};

class SoftmaxOfDoubles final : public CpuKernel {
 public:
  SoftmaxOfDoubles(const DoubleSoftmaxCode& code, const BoundNode& node, const CpuInfo& info)
      : x_(node.operand(0)), y_(node.result()), workers_(info.workers) {
    const Dims& dims = x_.type.dims;
    node.require(x_.type == y_.type && x_.type.dtype == DType::f64 && !dims.empty());
    const DoubleSoftmax kernels = double_softmax_kernels(info.isa);
    kernel_ = code.log ? kernels.log_softmax : kernels.softmax;
    const size_t axis = normalize_axis(code.axis, dims.size());
    n_ = dims[axis], inner_ = elements(std::span(dims).subspan(axis + 1));
    lines_ = n_ == 0 ? 0 : elements(dims) / n_;
    room_ = checked_add(round_up(n_, kDoubleSlack), kDoubleSlack);
  }
  bool serial() const override { return n_ * lines_ < 1024; }
  size_t workspace_bytes() const override { return static_cast<size_t>(workers_ * room_) * sizeof(double); }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    double* line = static_cast<double*>(bindings.workspace) + worker * room_;
    const Share share = share_of(lines_, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t from = item / inner_ * n_ * inner_ + item % inner_;
      const double* x = x_.as<double>(bindings) + from;
      double* y = y_.as<double>(bindings) + from;
      for (int64_t i = 0; i < n_; ++i) line[i] = x[i * inner_];
      kernel_(line, n_);
      for (int64_t i = 0; i < n_; ++i) y[i * inner_] = line[i];
    }
  }

 private:
  NodeOperand x_;
  NodeResult y_;
  int64_t workers_, n_ = 0, inner_ = 1, lines_ = 0, room_ = 0;
  void (*kernel_)(double*, int64_t);
};

struct DoubleSoftmaxFamily : NodeFamily<DoubleSoftmaxCode> {
  static constexpr std::string_view kName = "double_softmax";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !(node->is(ops::softmax) || node->is(ops::log_softmax))) return;
    if (node->input(0)->type.dtype != DType::f64) return;  // of smaller floats there is a family of its own
    offer_linear(problem, kName, out);
  }
  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    const Node& node = *single_node(problem);
    Built<Code> built;
    built.code = {describe_node(problem, built.constants), node.attrs.integer("axis"), node.is(ops::log_softmax)};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    return std::make_shared<SoftmaxOfDoubles>(code, BoundNode(code.node, shapes, kName), info);
  }
};

}  // namespace

const CpuTactic tactics::double_softmax = describe<DoubleSoftmaxFamily>();

}  // namespace hone::cpu
