// SPDX-License-Identifier: Apache-2.0
//
// Conv (channels last, one group) and Linear on tensor cores with Hone's own epilogues: any activation, and f32 sums up to the one
// rounding at the end. Tiles and the number of blocks that share one are for the tuner to choose.
#include <algorithm>
#include <array>

#include "backends/cuda/kernels/embedded.h"
#include "backends/cuda/tactics/filters.h"
#include "backends/cuda/tactics/source_text.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace hone::cuda {
namespace {

constexpr int64_t kStep = 32;  // of the inner axis, BK of the kernel
constexpr size_t kOffers = 8;

struct Tile {
  int64_t m, n, warps_m, stages;
};
constexpr std::array kTiles{Tile{64, 64, 2, 4},  Tile{32, 64, 1, 4},   Tile{64, 32, 2, 4},
                            Tile{128, 64, 2, 4}, Tile{128, 128, 2, 3}, Tile{32, 32, 2, 6}};

struct ImagesArgument {
  int32_t pixels, in_h, in_w, out_h, out_w;
};

const Node* anchor_in(const Graph& region) {
  const Node* conv = anchor_of(region, ops::conv);
  return conv != nullptr ? conv : anchor_of(region, ops::linear);
}

/// The weight's sizes as a product sees them.
struct Filters {
  int64_t count, taps, channels;
};
Filters filters_of(const Node& node) {
  const Dims& w = node.input(1)->constant->dims();
  if (node.is(ops::conv)) return {w[0], elements(spatial_of(w)), w[1]};
  const bool transposed = node.attrs.integer("trans_w") != 0;
  return {transposed ? w[0] : w[1], 1, transposed ? w[1] : w[0]};
}

RegionMatch match_of(const Problem& problem, const Node& node) {
  return match_region(problem.region, &node, node.is(ops::conv) ? node.input(0)->type.shape.rank() - 1 : 1);
}

std::string reason_against(const Problem& problem, const Node& node) {
  const Value* x = node.input(0);
  if (x->type.dtype != DType::f16 && x->type.dtype != DType::bf16)
    return fmt::format("input is {}", name_of(x->type.dtype));
  if (input_index(problem.region, x) < 0) return "its input is a constant";
  if (!node.input(1)->is_constant() || (node.input(2) != nullptr && !node.input(2)->is_constant()))
    return "weights are not constant";
  if (node.output()->type.shape.elements() == Dim(0)) return "empty result";
  if (node.is(ops::conv)) {
    if (x->type.shape.rank() != 3 && x->type.shape.rank() != 4)
      return fmt::format("{} spatial axes", x->type.shape.rank() - 2);
    if (node.attrs.integer("group") != 1) return "groups";
    if (node.attrs.text("auto_pad") != "NOTSET") return "padding depends on the size";
  }
  const Filters filters = filters_of(node);
  if (filters.channels % 8 != 0 || filters.count % 2 != 0)
    return fmt::format("{} channels, {} filters", filters.channels, filters.count);
  return match_of(problem, node).refusal;
}

int64_t pixels_of(const Node& node) {
  const Dims out = node.output()->type.shape.values();
  return elements(out) / (node.is(ops::conv) ? out[1] : out.back());
}

struct Choice {
  size_t tile;
  int64_t splits;
  double cost;  // rough: rounds of blocks x steps of each x work of a step
};

/// Most promising first: enough blocks for all processors, few steps for each.
std::vector<Choice> choices(int64_t pixels, const Filters& filters, int processors) {
  const int64_t steps = blocks_of(filters.taps * filters.channels, kStep);
  std::vector<Choice> list;
  for (size_t i = 0; i < kTiles.size(); ++i)
    for (const int64_t splits : {1, 2, 4, 8, 16}) {
      const Tile& tile = kTiles[i];
      if (splits > 1 && (steps / splits < 4 || splits * pixels * filters.count > int64_t{1} << 24)) continue;
      const int64_t blocks = blocks_of(pixels, tile.m) * blocks_of(filters.count, tile.n) * splits;
      const int64_t at_once = std::max<int64_t>(processors, 1) * std::max<int64_t>(1, 16384 / (tile.m * tile.n));
      const double step = 1.0 + static_cast<double>(tile.m * tile.n) / 4096;
      list.push_back({i, splits,
                      static_cast<double>(blocks_of(blocks, at_once)) *
                              (static_cast<double>(blocks_of(steps, splits)) + 8) * step +
                          (splits > 1 ? 24.0 : 0.0)});
    }
  std::stable_sort(list.begin(), list.end(), [](const Choice& a, const Choice& b) { return a.cost < b.cost; });
  if (list.size() > kOffers) list.resize(kOffers);
  return list;
}

void propose(const Problem& problem, Candidates& out) {
  const Node* node = anchor_in(problem.region);
  if (node == nullptr) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse("implicit_gemm", std::move(reason));
  const Layout layout = node->is(ops::conv) ? Layout::channels_last : Layout::linear;
  for (const Choice& choice : choices(pixels_of(*node), filters_of(*node), problem.device.workers))
    out.offer({"cuda",
               "implicit_gemm",
               {{"tile", static_cast<int64_t>(choice.tile)}, {"splits", choice.splits}},
               std::vector<Layout>(problem.region.inputs().size(), layout),
               {layout}});
}

/// Sizes of the window as switches: always two spatial axes.
std::string window_text(const Node& node) {
  Dims kernel{1, 1}, strides{1, 1}, dilations{1, 1}, pads{0, 0};
  if (node.is(ops::conv)) {
    const Dims spatial = spatial_of(node.input(1)->constant->dims());
    const WindowAttrs window(node.attrs, spatial.size(), spatial);
    const size_t shift = 2 - spatial.size();
    for (size_t i = 0; i < spatial.size(); ++i)
      kernel[shift + i] = window.kernel[i], strides[shift + i] = window.strides[i],
                     dilations[shift + i] = window.dilations[i], pads[shift + i] = window.pads[i];
  }
  std::string text = fmt::format("#define TAPS {}\n#define TAPS_W {}\n", kernel[0] * kernel[1], kernel[1]);
  const char* names[] = {"H", "W"};
  for (size_t i = 0; i < 2; ++i)
    text += fmt::format("#define STRIDE_{0} {1}\n#define DILATION_{0} {2}\n#define PAD_{0} {3}\n", names[i], strides[i],
                        dilations[i], pads[i]);
  return text;
}

Generated generate(const Problem& problem, const Tactic& tactic) {
  const Node& node = *anchor_in(problem.region);
  const RegionMatch match = match_of(problem, node);
  const Filters filters = filters_of(node);
  const Tile& tile = kTiles.at(static_cast<size_t>(tactic.params.integer("tile")));
  Generated result;
  result.constants.push_back(filter_rows(match, node));
  const std::vector<float> bias = collect_bias(match, node.input(2), filters.count);
  if (!bias.empty()) result.constants.push_back(Tensor::of<float>({filters.count}, std::span<const float>(bias)));
  result.attrs = {{"x", int64_t{input_index(problem.region, node.input(0))}},
                  {"images", int64_t{node.is(ops::conv)}},
                  {"filters", filters.count}};
  result.attrs.set("tile", Dims{tile.m, tile.n, tile.stages});
  result.attrs.set("splits", tactic.params.integer("splits"));
  write_epilogue(result.attrs, match, !bias.empty());
  const std::string_view type = type_name(node.output()->type.dtype);
  result.source = fmt::format(
      "typedef {0} T;\n#define MMA_TYPE \"{0}\"\n#define BM {1}\n#define BN {2}\n#define WARPS_M {3}\n#define STAGES "
      "{4}\n#define SPLITS {5}\n",
      type, tile.m, tile.n, tile.warps_m, tile.stages, tactic.params.integer("splits"));
  result.source += fmt::format("#define CHANNELS {}\n#define FILTERS {}\n", filters.channels, filters.count) +
                   window_text(node) + epilogue_text(match, !bias.empty());
  result.source += std::string(kernels::activation) + kernels::implicit_gemm;
  return result;
}

ImagesArgument images_argument(const Dims& in, const Dims& out, bool images, int64_t filters) {
  ImagesArgument argument{
      .pixels = static_cast<int32_t>(elements(out) / filters), .in_h = 1, .in_w = 1, .out_h = 1, .out_w = 1};
  if (!images) return argument;
  argument.in_w = static_cast<int32_t>(in.back());
  argument.out_w = static_cast<int32_t>(out.back());
  if (in.size() == 4) argument.in_h = static_cast<int32_t>(in[2]), argument.out_h = static_cast<int32_t>(out[2]);
  return argument;
}

std::shared_ptr<const CudaKernel> load(const LoadContext& context) {
  const Attrs& attrs = context.attrs;
  const int64_t x = attrs.integer("x"), filters = attrs.integer("filters"), splits = attrs.integer("splits"),
                inputs = static_cast<int64_t>(context.shapes.inputs.size());
  const Dims& tile = attrs.integers("tile");
  const int residual = read_residual(attrs);
  HONE_CHECK(x >= 0 && x < inputs && residual < inputs && filters > 0 && splits > 0 && splits <= 64 &&
                 tile.size() == 3 && context.shapes.outputs.size() == 1,
             "a product in the plan reads input {}", x);
  HONE_CHECK(tile[0] > 0 && tile[0] <= 256 && tile[1] > 0 && tile[1] <= 256 && tile[2] > 0 && tile[2] <= 8,
             "a product in the plan has tiles of {}", join_dims(tile));
  const Dims &in = context.shapes.inputs[static_cast<size_t>(x)].dims, &out = context.shapes.outputs[0].dims;
  const ImagesArgument images = images_argument(in, out, attrs.integer("images") != 0, filters);
  const bool bias = read_epilogue(attrs).bias;
  GridLaunch product{.function = context.module->function("implicit_gemm"),
                     .grid = {blocks_of(filters, tile[1]), blocks_of(images.pixels, tile[0]), splits},
                     .block = 128};
  product.shared_bytes = static_cast<unsigned>((tile[0] + tile[1]) * (kStep + 8) * 2 * tile[2]);
  const auto add_operands = [&](Arguments& arguments) {
    add_place(arguments, bias ? -2 : kNoPlace);
    add_place(arguments, residual >= 0 ? residual : kNoPlace);
    arguments.output(0);
  };
  product.arguments.input(x).constant(0);
  add_operands(product.arguments);
  product.arguments.workspace().value(images);
  std::vector<GridLaunch> launches{std::move(product)};
  if (splits > 1) {
    GridLaunch sum{.function = context.module->function("implicit_gemm_sum"),
                   .grid = {blocks_of(elements(out) / 2, 128), 1, 1},
                   .block = 128};
    sum.arguments.workspace();
    add_operands(sum.arguments);
    sum.arguments.value(images.pixels);
    launches.push_back(std::move(sum));
  }
  const size_t workspace = splits > 1 ? static_cast<size_t>(splits * elements(out)) * sizeof(float) : 0;
  return std::make_shared<GridKernel>(context.module, std::move(launches), workspace);
}

}  // namespace

const CudaTactic tactics::implicit_gemm = {"implicit_gemm", propose, generate, load};

}  // namespace hone::cuda
