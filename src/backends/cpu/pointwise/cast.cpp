// SPDX-License-Identifier: Apache-2.0
//
// Cast between any two numeric types: convert.h over pieces of the tensor, in whatever layout it is.
#include <algorithm>

#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/region_reader.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kPiece = 8192;

struct CastCode {
  NodeCode node;
  static void fields(auto& self, auto& visit) { NodeCode::fields(self.node, visit); }
};

class Cast final : public ItemKernel {
 public:
  Cast(const BoundNode& node, Isa isa)
      : ItemKernel((elements(node.result().type.dims) + kPiece - 1) / kPiece, elements(node.result().type.dims)),
        x_(node.operand(0)),
        result_(node.result()),
        convert_(convert_elements(x_.type.dtype, result_.type.dtype, isa)),
        from_size_(size_of(x_.type.dtype)),
        to_size_(size_of(result_.type.dtype)) {
    node.require(x_.type.dims == result_.type.dims && (shared_layout(x_.type, result_.type) || x_.known));
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const size_t first = static_cast<size_t>(begin * kPiece);
    const int64_t count = std::min(end * kPiece, elements(result_.type.dims)) - begin * kPiece;
    convert_(x_.as<std::byte>(bindings) + first * from_size_, result_.as<std::byte>(bindings) + first * to_size_,
             count);
  }

  NodeOperand x_;
  NodeResult result_;
  ConvertElements convert_;
  size_t from_size_, to_size_;
};

struct CastFamily : NodeFamily<CastCode> {
  static constexpr std::string_view kName = "cast";
  static constexpr Cost kCost = {.operands = 0.25};

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !node->is(ops::cast)) return;
    if (std::string reason = reason_not_numeric(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    if (problem.region.inputs().size() == 1) offer_layouts(problem, "cpu", kName, out);
    else offer_linear(problem, kName, out);
  }
  static Built<CastCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    Built<CastCode> built;
    built.code = {describe_node(problem, built.constants)};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const CastCode& code, const KernelShapes& shapes, const CpuInfo& info) {
    return std::make_shared<Cast>(BoundNode(code.node, shapes, kName), info.isa);
  }
};

}  // namespace

const CpuTactic tactics::cast = describe<CastFamily>();

}  // namespace hone::cpu
