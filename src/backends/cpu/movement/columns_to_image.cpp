// SPDX-License-Identifier: Apache-2.0
//
// Col2Im: the columns of patches are added up where they came from. Of a plane each tap adds a row to a row, behind each other or in
// steps; planes do not depend on each other.
#include <algorithm>

#include "backends/cpu/reduce/row_folds.h"
#include "backends/cpu/support/node_code.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace hone::cpu {
namespace {

struct ColumnsCode {
  NodeCode node;
  WindowAttrs window;
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    WindowAttrs::fields(self.window, visit);
  }
};

/// Of one axis and tap the positions whose elements lie inside of the image, and where the first of them is.
struct Inside {
  int64_t begin = 0, end = 0, first = 0;
  Inside(int64_t image, int64_t positions, int64_t stride, int64_t at) {
    begin = at >= 0 ? 0 : (-at + stride - 1) / stride;
    end = at >= image ? 0 : std::min(positions, (image - 1 - at) / stride + 1);
    begin = std::min(begin, end);
    first = at + begin * stride;
  }
};

class ColumnsToImage final : public ItemKernel {
 public:
  ColumnsToImage(const ColumnsCode& code, const BoundNode& node, const CpuInfo& info)
      : ItemKernel(node.result().type.dims.at(0) * node.result().type.dims.at(1), elements(node.operand(0).type.dims)),
        window_(code.window),
        x_(node.operand(0)),
        y_(node.result()),
        height_(y_.type.dims.at(2)),
        width_(y_.type.dims.at(3)),
        rows_(positions(height_, 0)),
        columns_(positions(width_, 1)),
        taps_(window_.kernel[0] * window_.kernel[1]),
        add_row_(add_row(info.isa)) {
    const Dims& out = y_.type.dims;
    node.require(x_.type.dtype == DType::f32 && y_.type.dtype == DType::f32 && out.size() == 4 &&
                 x_.type.dims == Dims{out[0], out[1] * taps_, rows_ * columns_});
    node.require(node.integers(1) == Dims{height_, width_} && node.integers(2) == window_.kernel);
  }

 private:
  int64_t positions(int64_t size, size_t axis) const {
    return std::max<int64_t>(0, window_.result_size(Dim(size), axis).value());
  }

  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const int64_t area = rows_ * columns_;
    for (int64_t plane = begin; plane < end; ++plane) {
      float* y = y_.as<float>(bindings) + plane * height_ * width_;
      std::fill_n(y, height_ * width_, 0.0F);
      const float* x = x_.as<float>(bindings) + plane * taps_ * area;
      for (int64_t tap = 0; tap < taps_; ++tap, x += area) {
        const int64_t i = tap / window_.kernel[1], k = tap % window_.kernel[1];
        const Inside down(height_, rows_, window_.strides[0], i * window_.dilations[0] - window_.pads[0]),
            across(width_, columns_, window_.strides[1], k * window_.dilations[1] - window_.pads[1]);
        for (int64_t row = down.begin; row < down.end; ++row)
          add(x + row * columns_ + across.begin, across.end - across.begin,
              y + (down.first + (row - down.begin) * window_.strides[0]) * width_ + across.first);
      }
    }
  }

  void add(const float* x, int64_t count, float* y) const {
    const int64_t stride = window_.strides[1];
    if (stride == 1) add_row_(x, count, y);
    else
      for (int64_t i = 0; i < count; ++i) y[i * stride] += x[i];
  }

  WindowAttrs window_;
  NodeOperand x_;
  NodeResult y_;
  int64_t height_, width_, rows_, columns_, taps_;
  AddRow add_row_;
};

struct ColumnsFamily : NodeFamily<ColumnsCode> {
  static constexpr std::string_view kName = "columns_to_image";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !node->is(ops::col2im)) return;
    if (node->input(0)->type.dtype != DType::f32) return out.refuse(kName, "its input is not f32");
    if (node->output()->type.shape.rank() != 4) return out.refuse(kName, "not in two dimensions");
    if (node->input(1)->symbolic == nullptr && !node->input(1)->is_constant())
      return out.refuse(kName, "its image's sizes are known in a run only");
    if (!node->input(2)->is_constant()) return out.refuse(kName, "its block's sizes are known in a run only");
    offer_linear(problem, kName, out);
  }
  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    const Node& node = *single_node(problem);
    Built<Code> built;
    built.code = {describe_node(problem, built.constants),
                  WindowAttrs(node.attrs, 2, node.input(2)->constant->integers())};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    code.window.check(2);
    const BoundNode node(code.node, shapes, kName);
    node.require(node.result().type.dims.size() == 4);
    return std::make_shared<ColumnsToImage>(code, node, info);
  }
};

}  // namespace

const CpuTactic tactics::columns_to_image = describe<ColumnsFamily>();

}  // namespace hone::cpu
