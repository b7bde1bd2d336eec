// SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear and DequantizeLinear with one scale, one per index of an axis, or one per block along it. Within a stretch
// of elements that share their scale the loop is plain.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/quant/quantize_loops.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/number.h"
#include "backends/cpu/support/region_reader.h"
#include "ops/byte_scale.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kPiece = 4096;

std::string reason_against(const Node& node) {
  if (std::string reason = reason_not_numeric(node); !reason.empty()) return reason;
  const DType scale = node.input(1)->type.dtype;
  if (!is_float(scale)) return fmt::format("the scale is {}", name_of(scale));
  return {};
}

struct QuantizationCode {
  NodeCode node;
  bool quantizes = true;  // otherwise the way back
  int64_t axis = 1;
  int64_t block = 0;  // elements along the axis that share a scale; 0: one scale for each index
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("quantizes", self.quantizes);
    visit("axis", self.axis, -kMostAxes, kMostAxes - 1);
    visit("block", self.block, 0, kMostSize);
  }
};

double real_at(const NodeOperand& operand, const Bindings& bindings, int64_t i) {
  return visit(operand.type.dtype,
               [&]<typename T>() { return static_cast<double>(widened(operand.as<T>(bindings)[i])); });
}

class Quantization final : public ItemKernel {
 public:
  Quantization(const QuantizationCode& code, const BoundNode& node, Isa isa)
      : ItemKernel((elements(node.result().type.dims) + kPiece - 1) / kPiece, elements(node.result().type.dims)),
        x_(node.operand(0)),
        scale_(node.operand(1)),
        y_(node.result()),
        quantizes_(code.quantizes),
        loops_(quantize_loops(isa)) {
    const std::optional<Layout> layout = shared_layout(x_.type, y_.type);
    node.require(x_.type.dims == y_.type.dims && layout &&
                 (elements(scale_.type.dims) == 1 || *layout == Layout::linear));
    if (node.has(2)) zero_ = node.operand(2);
    node.require(!zero_ || elements(zero_->type.dims) == elements(scale_.type.dims));
    for (const DType dtype : {x_.type.dtype, scale_.type.dtype, zero_ ? zero_->type.dtype : y_.type.dtype})
      node.require(dtype != DType::boolean);
    stretch_ = std::max<int64_t>(elements(x_.type.dims), 1);
    if (elements(scale_.type.dims) != 1) read_axis(code, node);
  }

 private:
  void read_axis(const QuantizationCode& code, const BoundNode& node) {
    const Dims& dims = x_.type.dims;
    const size_t axis = normalize_axis(code.axis, dims.size());
    const int64_t block = code.block;
    n_ = dims[axis];
    inner_ = elements(std::span(dims).subspan(axis + 1));
    if (block > 0) {
      node.require(block <= std::max<int64_t>(n_, 1));
      block_ = block;
      scales_ = (n_ + block - 1) / block;
      node.require(elements(scale_.type.dims) == elements(std::span(dims).first(axis)) * scales_ * inner_);
      stretch_ = 1;
    } else {
      scales_ = n_;
      node.require(elements(scale_.type.dims) == n_);
      stretch_ = std::max<int64_t>(inner_, 1);
    }
  }

  int64_t scale_of(int64_t i) const {
    if (scales_ == 0) return 0;
    const int64_t at = i / inner_ % n_;
    return block_ == 0 ? at : (i / (inner_ * n_) * scales_ + at / block_) * inner_ + i % inner_;
  }

  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const int64_t last = std::min(end * kPiece, elements(y_.type.dims));
    for (int64_t i = begin * kPiece; i < last;) {
      const int64_t next = std::min(last, (i / stretch_ + 1) * stretch_), k = scale_of(i);
      run_stretch(i, next, real_at(scale_, bindings, k), zero_ ? real_at(*zero_, bindings, k) : 0.0, bindings);
      i = next;
    }
  }

  void run_stretch(int64_t first, int64_t last, double scale, double zero, const Bindings& bindings) const {
    if (run_bytes(first, last, static_cast<float>(scale), static_cast<float>(zero), bindings)) return;
    visit(x_.type.dtype, [&]<typename X>() {
      const X* x = x_.as<X>(bindings);
      visit(y_.type.dtype, [&]<typename Y>() {
        Y* y = y_.as<Y>(bindings);
        const float divisor = static_cast<float>(scale);
        const DType type = scale_.type.dtype;
        for (int64_t i = first; i < last; ++i) {
          if (quantizes_) {
            const double steps = rounded_quotient(type, static_cast<float>(widened(x[i])) / divisor);
            y[i] = narrowed<Y>(std::nearbyint(steps) + zero);
          } else y[i] = narrowed<Y>((static_cast<double>(widened(x[i])) - zero) * scale);
        }
      });
    });
  }

  /// Between f32 and bytes, as most are.
  bool run_bytes(int64_t first, int64_t last, float scale, float zero, const Bindings& bindings) const {
    const auto pass = [&]<typename X, typename Y>(void (*loop)(const X*, Y*, int64_t, float, float)) {
      loop(x_.as<X>(bindings) + first, y_.as<Y>(bindings) + first, last - first, scale, zero);
      return true;
    };
    const DType from = x_.type.dtype, to = y_.type.dtype;
    if (scale_.type.dtype != DType::f32) return false;
    if (from == DType::f32 && to == DType::u8 && quantizes_) return pass(loops_.to_u8);
    if (from == DType::f32 && to == DType::i8 && quantizes_) return pass(loops_.to_i8);
    if (from == DType::u8 && to == DType::f32 && !quantizes_) return pass(loops_.from_u8);
    if (from == DType::i8 && to == DType::f32 && !quantizes_) return pass(loops_.from_i8);
    return false;
  }

  NodeOperand x_, scale_;
  NodeResult y_;
  std::optional<NodeOperand> zero_;
  bool quantizes_;
  QuantizeLoops loops_;
  int64_t n_ = 1, inner_ = 1, block_ = 0, scales_ = 0;
  int64_t stretch_ = 1;  // elements in a row with the same scale
};

struct QuantizationFamily : NodeFamily<QuantizationCode> {
  static constexpr std::string_view kName = "quantization";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !(node->is(ops::quantize_linear) || node->is(ops::dequantize_linear))) return;
    if (std::string reason = reason_against(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    if (node->input(1)->type.shape.elements() != Dim(1) || node->input(0)->is_constant())
      return offer_linear(problem, kName, out);
    offer_layouts(problem, "cpu", kName, out);
  }
  static Built<QuantizationCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node& node = *single_node(problem);
    Built<QuantizationCode> built;
    built.code = {
        describe_node(problem, built.constants), node.is(ops::quantize_linear),
        std::clamp(node.attrs.integer("axis"), -kMostAxes, kMostAxes - 1),  // any number where one scale serves all
        std::max<int64_t>(node.attrs.integer("block_size"), 0)};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const QuantizationCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    return std::make_shared<Quantization>(code, BoundNode(code.node, shapes, kName), info.isa);
  }
};

}  // namespace

const CpuTactic tactics::quantization = describe<QuantizationFamily>();

}  // namespace hone::cpu
