// SPDX-License-Identifier: Apache-2.0
//
// Conv (channels last, one group) and Linear on tensor cores with Hone's own epilogues: any activation, and f32 sums up to the one
// rounding at the end. Products of one input (queries, keys and values) are one launch. Tiles and the number of blocks that share one are for the tuner to choose.
#include <algorithm>
#include <array>

#include "backends/cuda/conv/filters.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/old.h"
#include "backends/cuda/support/source_text.h"
#include "base/checked.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace hone::cuda {
namespace {

constexpr size_t kOffers = 12;
constexpr int64_t kMostInCluster = 8;  // blocks that run together on every card that knows clusters

struct Tile {
  int64_t m, n, k, warps, warps_m, stages;  // k: of the inner axis, a time
};
constexpr std::array kTiles{
    Tile{64, 64, 32, 4, 2, 4},   Tile{32, 64, 32, 4, 1, 4},   Tile{64, 32, 32, 4, 2, 4},   Tile{128, 64, 32, 4, 2, 4},
    Tile{128, 128, 32, 4, 2, 3}, Tile{32, 32, 32, 4, 2, 6},   Tile{64, 64, 64, 4, 2, 4},   Tile{32, 64, 64, 4, 1, 4},
    Tile{64, 32, 64, 4, 2, 4},   Tile{128, 64, 64, 4, 2, 3},  Tile{128, 128, 64, 4, 2, 3}, Tile{32, 32, 64, 4, 2, 6},
    Tile{128, 64, 64, 8, 4, 3},  Tile{128, 128, 64, 8, 4, 3}, Tile{64, 64, 64, 8, 2, 4},   Tile{64, 64, 128, 8, 2, 3}};
constexpr int64_t kSplits[] = {1, 2, 4, 8, 16};
constexpr size_t kOffersPerSplit = 4;

int64_t shared_bytes(const Tile& tile) { return (tile.m + tile.n) * (tile.k + 8) * 2 * tile.stages; }

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

/// Windows that lie side by side without padding (the patches of a vision transformer): a row of one is contiguous, channels
/// last, so that the image is one of wider pixels. Few channels become enough this way.
bool reads_patches(const Node& node) {
  if (!node.is(ops::conv) || node.input(0)->type.shape.rank() != 4) return false;
  const Dims& w = node.input(1)->constant->dims();
  const WindowAttrs window(node.attrs, 2, spatial_of(w));
  const auto width = node.input(0)->type.shape[3].value();
  return w[1] % 8 != 0 && w[1] * w[3] % 8 == 0 && window.strides[1] == w[3] && window.dilations[1] == 1 &&
         window.pads[1] == 0 && window.pads[3] == 0 && width % w[3] == 0;
}

Filters filters_of(const Node& node) {
  const Dims& w = node.input(1)->constant->dims();
  if (reads_patches(node)) return {w[0], w[2], w[1] * w[3]};
  if (node.is(ops::conv)) return {w[0], elements(spatial_of(w)), w[1]};
  const bool transposed = node.attrs.integer("trans_w") != 0;
  return {transposed ? w[0] : w[1], 1, transposed ? w[1] : w[0]};
}

RegionMatch match_of(const Problem& problem, const Node& node) {
  if (!parallel_products(problem.region).empty()) {
    RegionMatch bare;
    bare.anchor = &node;
    return bare;
  }
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
  // What is true at the opt sizes has to hold at all: the width decides whether patches fill it.
  for (const Value* input : problem.symbolic.inputs())
    if (node.is(ops::conv) && reads_patches(node) && input->type.shape.rank() == 4 &&
        !input->type.shape[3].is_constant())
      return "the width is not fixed";
  const Filters filters = filters_of(node);
  if (filters.channels % 8 != 0) return fmt::format("{} channels", filters.channels);
  return match_of(problem, node).refusal;
}

constexpr int64_t kMostProducts = 4;
int64_t product_count(const Problem& problem) {
  return std::max<int64_t>(static_cast<int64_t>(parallel_products(problem.region).size()), 1);
}

int64_t pixels_of(const Node& node) {
  const Dims out = node.output()->type.shape.values();
  return elements(out) / (node.is(ops::conv) ? out[1] : out.back());
}

struct Choice {
  size_t tile;
  int64_t splits;
  double cost;
};

/// Microseconds, roughly, on a card of the H100's kind: the parts' way from the second-level cache to a processor or to all of
/// them, the products, or the waiting of one block, whichever takes longest. Good enough to leave most choices out.
double cost_of(const Tile& tile, int64_t steps, int64_t blocks, int64_t splits, int64_t processors) {
  const auto rounds = static_cast<double>(blocks_of(blocks, std::max<int64_t>(processors, 1)));
  const auto count = static_cast<double>(steps);
  const double bytes = count * static_cast<double>((tile.m + tile.n) * tile.k * 2);
  const double own = rounds * bytes / 70e3, all = static_cast<double>(blocks) * bytes / 5e6;
  const double products = rounds * count * static_cast<double>(2 * tile.m * tile.n * tile.k) / 4.5e6;
  const double resident = static_cast<double>(std::clamp<int64_t>((220 << 10) / shared_bytes(tile), 1, 8));
  const double waiting = (0.9 + 0.12 * count) * std::max(1.0, rounds / resident);
  return std::max({own, all, products, waiting}) + (splits == 1 ? 0.0 : splits <= kMostInCluster ? 1.0 : 3.0);
}

/// The best few for every number of splits, most promising first. A block's filters are of one of the products.
std::vector<Choice> choices(int64_t pixels, const Filters& filters, int64_t products, int processors) {
  const int64_t depth = filters.taps * filters.channels;
  const auto cheaper = [](const Choice& a, const Choice& b) { return a.cost < b.cost; };
  std::vector<Choice> list;
  for (const int64_t splits : kSplits) {
    std::vector<Choice> own;
    for (size_t i = 0; i < kTiles.size(); ++i) {
      const Tile& tile = kTiles[i];
      const int64_t steps = blocks_of(depth, tile.k);
      if (products > 1 && filters.count / products % tile.n != 0) continue;
      if (splits > 1 && (filters.count % 2 != 0 || steps / splits < 1)) continue;
      if (splits > kMostInCluster && splits * pixels * filters.count > int64_t{1} << 24) continue;
      const int64_t blocks = blocks_of(pixels, tile.m) * blocks_of(filters.count, tile.n) * splits;
      if (splits > 1 && blocks > 8 * std::max(processors, 1)) continue;
      own.push_back({i, splits, cost_of(tile, blocks_of(steps, splits), blocks, splits, processors)});
    }
    std::stable_sort(own.begin(), own.end(), cheaper);
    if (own.size() > kOffersPerSplit) own.resize(kOffersPerSplit);
    list.insert(list.end(), own.begin(), own.end());
  }
  std::stable_sort(list.begin(), list.end(), cheaper);
  if (list.size() > kOffers) list.resize(kOffers);
  return list;
}

void propose(const Problem& problem, Candidates& out) {
  const Node* node = anchor_in(problem.region);
  if (node == nullptr) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse("implicit_gemm", std::move(reason));
  const Layout layout = node->is(ops::conv) ? Layout::channels_last : Layout::linear;
  const int64_t products = product_count(problem);
  if (products > kMostProducts) return out.refuse("implicit_gemm", fmt::format("{} products", products));
  Filters filters = filters_of(*node);
  filters.count *= products;
  for (const Choice& choice : choices(pixels_of(*node), filters, products, problem.device.workers))
    out.offer({"cuda",
               "implicit_gemm",
               {{"tile", static_cast<int64_t>(choice.tile)}, {"splits", choice.splits}},
               std::vector<Layout>(problem.region.inputs().size(), layout),
               std::vector<Layout>(problem.region.outputs().size(), layout)});
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
    if (reads_patches(node)) kernel[1] = strides[1] = 1;
  }
  std::string text = fmt::format("#define TAPS {}\n#define TAPS_W {}\n", kernel[0] * kernel[1], kernel[1]);
  const char* names[] = {"H", "W"};
  for (size_t i = 0; i < 2; ++i)
    text += fmt::format("#define STRIDE_{0} {1}\n#define DILATION_{0} {2}\n#define PAD_{0} {3}\n", names[i], strides[i],
                        dilations[i], pads[i]);
  return text;
}

/// The filters of several products, one after the other.
Tensor joined_rows(const RegionMatch& match, const std::vector<const Node*>& nodes) {
  std::vector<Tensor> parts;
  for (const Node* node : nodes) parts.push_back(filter_rows(match, *node));
  Dims dims = parts[0].dims();
  dims[0] *= static_cast<int64_t>(parts.size());
  TensorBuilder joined(parts[0].dtype(), dims);
  std::byte* at = joined.bytes();
  for (const Tensor& part : parts) {
    std::memcpy(at, part.bytes().data(), part.bytes().size());
    at += part.bytes().size();
  }
  return joined.finish();
}

Generated generate(const Problem& problem, const std::string& architecture, const Tactic& tactic) {
  const Node& node = *anchor_in(problem.region);
  const RegionMatch match = match_of(problem, node);
  Filters filters = filters_of(node);
  const int64_t products = product_count(problem);
  const Tile& tile = kTiles.at(static_cast<size_t>(tactic.params.integer("tile")));
  Generated result;
  std::vector<float> bias = collect_bias(match, node.input(2), filters.count);
  if (products == 1) {
    result.constants.push_back(filter_rows(match, node));
  } else {
    const std::vector<const Node*> nodes = parallel_products(problem.region);
    result.constants.push_back(joined_rows(match, nodes));
    for (size_t i = 1; i < nodes.size(); ++i)
      for (const float value : collect_bias(match, nodes[i]->input(2), filters.count)) bias.push_back(value);
    filters.count *= products;
  }
  if (!bias.empty()) result.constants.push_back(Tensor::of<float>({filters.count}, std::span<const float>(bias)));
  result.attrs = {{"x", int64_t{input_index(problem.region, node.input(0))}},
                  {"images", int64_t{node.is(ops::conv)}},
                  {"pixel", reads_patches(node) ? node.input(1)->constant->dims()[3] : int64_t{1}},
                  {"filters", filters.count}};
  const int64_t splits = tactic.params.integer("splits");
  const bool cluster = splits > 1 && splits <= kMostInCluster && has_clusters(architecture);
  result.attrs.set("tile", Dims{tile.m, tile.n, tile.k, tile.stages, tile.warps});
  result.attrs.set("splits", splits);
  result.attrs.set("cluster", int64_t{cluster});
  write_epilogue(result.attrs, match, !bias.empty());
  const std::string_view type = type_name(node.output()->type.dtype);
  result.source = fmt::format(
      "typedef {0} T;\n#define MMA_TYPE \"{0}\"\n#define BM {1}\n#define BN {2}\n#define BK {3}\n#define WARPS "
      "{4}\n#define WARPS_M {5}\n#define STAGES {6}\n#define SPLITS {7}\n#define CLUSTER {8:d}\n",
      type, tile.m, tile.n, tile.k, tile.warps, tile.warps_m, tile.stages, splits, cluster);
  result.source += fmt::format("#define CHANNELS {}\n#define FILTERS {}\n#define ROW_FILTERS {}\n", filters.channels,
                               filters.count, filters.count / products) +
                   window_text(node) + epilogue_text(match, !bias.empty());
  result.source += std::string(kernels::activation) + kernels::implicit_gemm;
  return result;
}

/// `pixel`: how many of the image's the kernel takes for one.
ImagesArgument images_argument(const Dims& in, const Dims& out, bool images, int64_t pixel, int64_t filters) {
  ImagesArgument argument{
      .pixels = static_cast<int32_t>(elements(out) / filters), .in_h = 1, .in_w = 1, .out_h = 1, .out_w = 1};
  if (!images) return argument;
  argument.in_w = static_cast<int32_t>(in.back() / pixel);
  argument.out_w = static_cast<int32_t>(out.back());
  if (in.size() == 4) argument.in_h = static_cast<int32_t>(in[2]), argument.out_h = static_cast<int32_t>(out[2]);
  return argument;
}

std::shared_ptr<const CudaKernel> load(const OldContext& context) {
  const Attrs& attrs = context.attrs;
  const int64_t x = attrs.integer("x"), filters = attrs.integer("filters"), splits = attrs.integer("splits"),
                inputs = static_cast<int64_t>(context.shapes.inputs.size());
  const Dims& tile = attrs.integers("tile");
  const int residual = read_residual(attrs);
  HONE_CHECK(x >= 0 && x < inputs && residual < inputs && filters > 0 && splits > 0 && splits <= 64 &&
                 tile.size() == 5 && !context.shapes.outputs.empty() && context.shapes.outputs.size() <= kMostProducts,
             "a product in the plan reads input {}", x);
  HONE_CHECK(tile[0] > 0 && tile[0] <= 256 && tile[1] > 0 && tile[1] <= 256 && tile[2] > 0 && tile[2] <= 128 &&
                 tile[3] > 0 && tile[3] <= 8 && tile[4] > 0 && tile[4] <= 32,
             "a product in the plan has tiles of {}", join_dims(tile));
  const bool cluster = attrs.integer("cluster") != 0;
  const Dims &in = context.shapes.inputs[static_cast<size_t>(x)].dims, &out = context.shapes.outputs[0].dims;
  const auto products = static_cast<int64_t>(context.shapes.outputs.size());
  HONE_CHECK(!in.empty() && !out.empty() && filters >= products && filters % products == 0,
             "a product in the plan makes {} results of {} filters", products, filters);
  HONE_CHECK(attrs.integer("pixel") > 0 && (attrs.integer("images") == 0 || in.back() % attrs.integer("pixel") == 0),
             "a convolution in the plan reads patches of {}", attrs.integer("pixel"));
  const ImagesArgument images =
      images_argument(in, out, attrs.integer("images") != 0, attrs.integer("pixel"), filters / products);
  const bool bias = read_epilogue(attrs).bias;
  GridLaunch product{.function = context.module->function("implicit_gemm"),
                     .grid = {blocks_of(filters, tile[1]), blocks_of(images.pixels, tile[0]), splits},
                     .block = static_cast<unsigned>(32 * tile[4])};
  product.shared_bytes = static_cast<unsigned>((tile[0] + tile[1]) * (tile[2] + 8) * 2 * tile[3]);
  if (cluster)
    product.shared_bytes = std::max(product.shared_bytes, static_cast<unsigned>(tile[0] * (tile[1] + 8) * 4));
  const auto add_operands = [&](Arguments& arguments) {
    add_place(arguments, bias ? -2 : kNoPlace);
    add_place(arguments, residual >= 0 ? residual : kNoPlace);
    for (int64_t i = 0; i < kMostProducts; ++i) {
      if (i < products) arguments.output(i);
      else arguments.null();
    }
  };
  product.arguments.input(x).constant(0);
  add_operands(product.arguments);
  product.arguments.workspace().value(images);
  std::vector<GridLaunch> launches{std::move(product)};
  if (splits > 1 && !cluster) {
    GridLaunch sum{.function = context.module->function("implicit_gemm_sum"),
                   .grid = {blocks_of(products * elements(out) / 2, 128), 1, 1},
                   .block = 128};
    sum.arguments.workspace();
    add_operands(sum.arguments);
    sum.arguments.value(images.pixels);
    launches.push_back(std::move(sum));
  }
  require_sizes(Dims{splits, products, elements(out)});
  const size_t workspace =
      splits > 1 && !cluster ? static_cast<size_t>(splits * products * elements(out)) * sizeof(float) : 0;
  return std::make_shared<GridKernel>(context.module, std::move(launches), workspace);
}

}  // namespace

const CudaTactic tactics::implicit_gemm = describe_old<generate, load>("implicit_gemm", propose);

}  // namespace hone::cuda
