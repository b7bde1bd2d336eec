// SPDX-License-Identifier: Apache-2.0
//
// Linear and Conv on the processor's matrix tiles: of bf16 tensors, and of f32 ones whose operands may be rounded.
#include "backends/cpu/matmul/matrix_tiles.h"

#include "backends/cpu/matmul/linear_region.h"
#include "base/checked.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone::cpu {
namespace {

constexpr int64_t kFewChannels = 8;  // below, most of a tile is padding

/// Why this machine or build cannot; empty when it can.
std::string reason_against(const CpuInfo& info) {
  return has_matrix_tiles(info.isa) ? "" : "the processor has no matrix tiles of bf16 (AMX)";
}

Tensor tiled(const std::vector<float>& weights, const FilterStrides& strides, const ConvShape& shape) {
  std::vector<float> ordered(tiled_weight_count(shape));
  tile_weights(weights.data(), strides, shape, ordered.data());
  return write_floats(DType::bf16, {static_cast<int64_t>(ordered.size())}, ordered);
}

class MatrixTiles final : public CpuKernel {
 public:
  MatrixTiles(const Attrs& attrs, const ConvShape& shape, const KernelShapes& shapes, const CpuInfo& info)
      : binding_(attrs),
        kernel_(shape, read_epilogue(attrs), shapes.inputs[static_cast<size_t>(binding_.input)].dtype,
                shapes.outputs[0].dtype, info.workers) {}
  size_t workspace_bytes() const override { return kernel_.workspace_bytes(); }
  int phases() const override { return kernel_.packs() ? 2 : 1; }
  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    const ConvArgs args = binding_.args(bindings);
    const MatrixTileArgs tiles{args.src, args.weights, args.bias, args.residual, args.dst, bindings.workspace};
    if (phase + 1 < phases()) kernel_.pack(worker, workers, tiles);
    else kernel_.multiply(worker, workers, tiles);
  }

 private:
  ConvBinding binding_;
  MatrixTileKernel kernel_;
};

std::shared_ptr<const CpuKernel> make(const Attrs& attrs, const ConvShape& shape, const KernelShapes& shapes,
                                      const CpuInfo& info) {
  HONE_CHECK(has_matrix_tiles(info.isa),
             "a layer in the plan multiplies matrix tiles of bf16 (AMX), which this processor does not have");
  const DType type = shapes.outputs[0].dtype;
  HONE_CHECK(type == DType::f32 || type == DType::bf16, "a layer in the plan stores {}", name_of(type));
  require_sizes(Dims{shape.n, shape.oh() + shape.kh * shape.dilation_h, shape.ow() + shape.kw * shape.dilation_w,
                     shape.ic + kTileDepth});  // what is packed
  const auto up = [](int64_t count, int64_t multiple) { return (count + multiple - 1) / multiple * multiple; };
  require_constant(shapes, 0, DType::bf16,
                   Dims{up(shape.oc, kTileChannels), up(shape.ic, kTileDepth), shape.kh, shape.kw});
  require_bias(attrs, shapes, shape.oc, 1, kTileChannels);
  return std::make_shared<MatrixTiles>(attrs, shape, shapes, info);
}

// ---- Linear: rows are pixels ----

ConvShape as_convolution(const Dims& output, int64_t k) {
  ConvShape shape;
  shape.ic = k;
  shape.oc = output.back();
  shape.iw = elements(output) / output.back();
  return shape;
}

void propose_linear(const Problem& problem, const CpuInfo& info, Candidates& out) {
  if (!problem.allowed.bf16) return;
  const std::optional<LinearRegion> region = read_linear_region(problem, "tile_linear", out);
  if (!region) return;
  if (std::string reason = reason_against(info); !reason.empty()) return out.refuse("tile_linear", std::move(reason));
  out.offer(linear_tactic("tile_linear", problem, {}));
}

Compiled compile_linear(const Problem& problem, const Tactic& tactic) {
  const LinearRegion region = linear_region(problem);
  const Node& node = *region.match.anchor;
  const FilterStrides strides = region.transposed ? FilterStrides{region.k, 1, 0} : FilterStrides{1, region.n, 0};
  Tensor weights =
      tiled(scaled_weights(region.match, *node.input(1)->constant), strides, as_convolution({1, region.n}, region.k));
  return finish_linear("tile_linear", problem, region, tactic, std::move(weights), kTileChannels);
}

std::shared_ptr<const CpuKernel> load_linear(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  check_linear(attrs, shapes);
  return make(attrs, as_convolution(shapes.outputs[0].dims, attrs.integer("k")), shapes, info);
}

// ---- Conv ----

void propose_conv(const Problem& problem, const CpuInfo& info, Candidates& out) {
  const DType type = problem.region.outputs()[0]->type.dtype;
  if (!problem.allowed.bf16 && type != DType::bf16) return;
  const std::optional<ConvRegion> region =
      read_conv_region(problem, ops::conv, "tile_conv", info, out, Operands::f32_or_bf16);
  if (!region) return;
  const ConvShape shape = conv_shape(region->attrs, input_dims(problem, *region), Layout::channels_last);
  std::string reason = reason_against(info);
  if (type != DType::f32 && type != DType::bf16) reason = fmt::format("its result is {}", name_of(type));
  if (shape.groups > 1) reason = "groups leave most of a tile empty";
  if (shape.ic < kFewChannels) reason = "few input channels leave most of a tile empty";
  if (!reason.empty()) return out.refuse("tile_conv", std::move(reason));
  out.offer(conv_tactic("tile_conv", problem, *region, Layout::channels_last, {}));
}

Compiled compile_conv(const Problem& problem, const Tactic& tactic) {
  const ConvRegion region = conv_region(problem, ops::conv, Operands::f32_or_bf16);
  const ConvShape shape = conv_shape(region.attrs, input_dims(problem, region), Layout::channels_last);
  const int64_t filter = shape.kh * shape.kw;
  const std::vector<float> weights = scaled_weights(region.match, *region.match.anchor->input(1)->constant);
  return finish_conv("tile_conv", problem, region, tactic, tiled(weights, {shape.ic * filter, filter, 1}, shape),
                     shape.oc, 1, kTileChannels);
}

std::shared_ptr<const CpuKernel> load_conv(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  const ConvShape shape = checked_conv_shape(attrs, shapes, Operands::f32_or_bf16);
  const Layout layout = shapes.inputs[static_cast<size_t>(attrs.integer("input"))].layout;
  HONE_CHECK(
      shape.groups == 1 && shape.src_layout == SrcLayout::nhwc && shapes.outputs[0].layout == Layout::channels_last,
      "a convolution on matrix tiles in the plan reads {} in {} groups", name_of(layout), shape.groups);
  return make(attrs, shape, shapes, info);
}

}  // namespace

const CpuTactic tactics::tile_linear = {"tile_linear", propose_linear, compile_linear, load_linear};
const CpuTactic tactics::tile_conv = {"tile_conv", propose_conv, compile_conv, load_conv};

}  // namespace hone::cpu
