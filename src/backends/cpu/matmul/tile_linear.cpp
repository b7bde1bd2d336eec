// SPDX-License-Identifier: Apache-2.0
//
// Linear and Conv on the processor's matrix tiles: of bf16 tensors, of f32 ones whose operands may be rounded, and of f32 in parts of bf16.
#include "backends/cpu/matmul/matrix_tiles.h"

#include "backends/cpu/matmul/linear_region.h"
#include "backends/cpu/support/tile_operands.h"
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

Tensor tiled(const Floats& weights, const FilterStrides& strides, const ConvShape& shape, TileOperand operands) {
  const int parts = parts_of(operands);
  std::vector<float> ordered(tiled_weight_count(shape, parts));
  tile_weights(weights.data(), strides, shape, parts, ordered.data());
  return write_floats(DType::bf16, {static_cast<int64_t>(ordered.size())}, ordered);
}

class MatrixTiles final : public CpuKernel {
 public:
  MatrixTiles(const ConvBinding& binding, const Epilogue& epilogue, const ConvShape& shape, TileOperand operands,
              const KernelShapes& shapes, const CpuInfo& info)
      : binding_(binding),
        kernel_(shape, epilogue, shapes.inputs[static_cast<size_t>(binding.input)].dtype, shapes.outputs[0].dtype,
                parts_of(operands), info.workers) {}
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

std::vector<ConstantSpec> tile_constants(const ConvShape& shape, TileOperand operands, const EpilogueCode& epilogue) {
  const int64_t rows = round_up(shape.oc, kTileChannels), columns = round_up(shape.ic, kTileDepth);
  return with_packed_bias({DType::bf16, {rows, columns, shape.kh, shape.kw, parts_of(operands)}}, epilogue, shape.oc, 1,
                          kTileChannels);
}

std::shared_ptr<const CpuKernel> make(int64_t input, const EpilogueCode& epilogue, const ConvShape& shape,
                                      TileOperand operands, const KernelShapes& shapes, const CpuInfo& info) {
  HONE_CHECK(operands == TileOperand::bf16 || shapes.inputs[static_cast<size_t>(input)].dtype == DType::f32,
             "a layer in the plan cuts elements of {} into parts of bf16",
             name_of(shapes.inputs[static_cast<size_t>(input)].dtype));
  HONE_CHECK(has_matrix_tiles(info.isa),
             "a layer in the plan multiplies matrix tiles of bf16 (AMX), which this processor does not have");
  require_sizes(Dims{shape.n, shape.oh() + shape.kh * shape.dilation_h, shape.ow() + shape.kw * shape.dilation_w,
                     shape.ic + kTileDepth, parts_of(operands)});  // what is packed
  return std::make_shared<MatrixTiles>(ConvBinding(input, epilogue), epilogue.epilogue(), shape, operands, shapes,
                                       info);
}

/// Rows of A are pixels.
ConvShape as_convolution(int64_t rows, const LinearCode& code) {
  ConvShape shape;
  shape.ic = code.k, shape.oc = code.n, shape.iw = rows;
  return shape;
}

/// What of the tiles is no padding costs what it costs; `arithmetic` is of one product of bf16.
Cost tile_cost(double arithmetic, int64_t pixels, const ConvShape& shape, TileOperand operands) {
  const int parts = parts_of(operands);
  const auto padded = [](int64_t size, int64_t tile) {
    return static_cast<double>(round_up(size, tile)) / static_cast<double>(size);
  };
  // Loading tiles is most of what a single product costs.
  const double products = 1 + 0.4 * static_cast<double>(products_of(parts).size() - 1);
  return {.arithmetic = arithmetic * products * padded(pixels, kTilePixels / 2) * padded(shape.ic, kTileDepth) *
                        padded(shape.oc, kTileChannels / 2),
          .operands = 1.0 + parts,
          .weights = 0.25 * parts};
}

/// A layer of `Base` on tiles.
template <typename Base>
struct TileCode {
  Base base;
  TileOperands tiles = {};
  static void fields(auto& self, auto& visit) {
    Base::fields(self.base, visit);
    TileOperands::fields(self.tiles, visit);
  }
};

struct TileLinearFamily {
  static constexpr std::string_view kName = "tile_linear";
  static constexpr int kVersion = 3;
  static constexpr bool kPacksForIsa = true;
  using Params = TileOperands;
  using Code = TileCode<LinearCode>;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    if (!offered_linear_region(problem, kName, out)) return;
    if (std::string reason = reason_against(info); !reason.empty()) return out.refuse(kName, std::move(reason));
    for (const TileOperand operands : allowed_operands(problem.allowed))
      out.offer(linear_tactic(kName, problem, write_fields(Params{operands})));
  }
  static Cost cost(const Problem& problem, const Params& params, const Tactic&) {
    const LinearCode code = read_linear_region(problem.region)->code;
    const int64_t rows = elements(problem.region.outputs()[0]->type.shape.values()) / code.n;
    return tile_cost(0.25, rows, as_convolution(rows, code), params.operands);
  }
  static Built<Code> compile(const Problem& problem, const Params& params, const Tactic&) {
    const LinearRegion region = *read_linear_region(problem.region);
    const LinearCode& code = region.code;
    const FilterStrides strides = region.transposed ? FilterStrides{code.k, 1, 0} : FilterStrides{1, code.n, 0};
    return {{code, params},
            with_packed_bias(tiled(region.weights(), strides, as_convolution(1, code), params.operands), region.bias(),
                             code.n, 1, kTileChannels)};
  }
  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes&, const CpuInfo&) {
    return tile_constants(as_convolution(1, code.base), code.tiles.operands, code.base.epilogue);
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const LinearCode& linear = code.base;
    linear.require_operands(shapes);
    return make(linear.input, linear.epilogue, as_convolution(elements(shapes.outputs[0].dims) / linear.n, linear),
                code.tiles.operands, shapes, info);
  }
};

struct TileConvFamily {
  static constexpr std::string_view kName = "tile_conv";
  static constexpr int kVersion = 3;
  static constexpr bool kPacksForIsa = true;
  using Params = TileOperands;
  using Code = TileCode<ConvCode>;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const DType type = problem.region.outputs()[0]->type.dtype;
    const std::optional<ConvRegion> region = offered_conv_region(problem, ops::conv, kName, out, Operands::f32_or_bf16);
    if (!region) return;
    const ConvShape shape = conv_shape(*region, Layout::channels_last);
    std::string reason = reason_against(info);
    if (type != DType::f32 && type != DType::bf16) reason = fmt::format("its result is {}", name_of(type));
    if (shape.groups > 1) reason = "groups leave most of a tile empty";
    if (shape.ic < kFewChannels) reason = "few input channels leave most of a tile empty";
    if (!reason.empty()) return out.refuse(kName, std::move(reason));
    const bool narrow = region->node().input(0)->type.dtype == DType::bf16;
    for (const TileOperand operands :
         allowed_operands({.bf16 = narrow || problem.allowed.bf16, .tf32 = problem.allowed.tf32}))
      out.offer(conv_tactic(kName, problem, *region, Layout::channels_last, write_fields(Params{operands})));
  }
  static Cost cost(const Problem& problem, const Params& params, const Tactic&) {
    const ConvShape shape = conv_shape(*read_conv_region(problem.region), Layout::channels_last);
    return tile_cost(0.4, shape.oh() * shape.ow(), shape, params.operands);
  }
  static Built<Code> compile(const Problem& problem, const Params& params, const Tactic&) {
    const ConvRegion region = *read_conv_region(problem.region);
    const ConvShape shape = conv_shape(region, Layout::channels_last);
    const int64_t filter = shape.kh * shape.kw;
    return {{region.code, params},
            with_packed_bias(tiled(region.weights(), {shape.ic * filter, filter, 1}, shape, params.operands),
                             region.bias(), shape.oc, 1, kTileChannels)};
  }
  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes& shapes, const CpuInfo&) {
    return tile_constants(checked_shape(code.base, shapes), code.tiles.operands, code.base.epilogue);
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    return make(code.base.input, code.base.epilogue, checked_shape(code.base, shapes), code.tiles.operands, shapes,
                info);
  }

 private:
  static ConvShape checked_shape(const ConvCode& code, const KernelShapes& shapes) {
    const ConvShape shape = checked_conv_shape(code, shapes, Operands::f32_or_bf16);
    HONE_CHECK(
        shape.groups == 1 && shape.src_layout == SrcLayout::nhwc && shapes.outputs[0].layout == Layout::channels_last,
        "a convolution on matrix tiles in the plan reads {} in {} groups", name_of(code.input_type(shapes).layout),
        shape.groups);
    return shape;
  }
};

}  // namespace

const CpuTactic tactics::tile_linear = describe<TileLinearFamily>();
const CpuTactic tactics::tile_conv = describe<TileConvFamily>();

}  // namespace hone::cpu
