// SPDX-License-Identifier: Apache-2.0
//
// Conv of few channels (a network's first: colours) on tensor cores, from planes to channels last, with Hone's own epilogues. What a block
// makes is for the tuner to choose.
#include <array>
#include <optional>

#include "backends/cuda/conv/filters.h"
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "base/checked.h"

namespace hone::cuda {
namespace {

constexpr int64_t kMostChannels = 7, kMostDepth = 1024;
constexpr int64_t kQuad = 4;  // channels of a pixel that are read at once, and quads that an instruction multiplies
constexpr int64_t kGap = 8;   // elements behind a filter's: neighbours in shared memory begin in other banks
constexpr int64_t kMostSharedBytes = 96 << 10;

/// Results that a block makes, for so many filters at most; a warp makes 16 of them so many times.
struct BlockTile {
  int64_t h, w, filters, times;
  int64_t threads() const { return h * w / times * 2; }
};
constexpr std::array kTiles{BlockTile{8, 16, 64, 1}, BlockTile{8, 16, 64, 2},  BlockTile{4, 16, 64, 1},
                            BlockTile{8, 16, 32, 1}, BlockTile{16, 16, 64, 2}, BlockTile{8, 32, 64, 2}};

struct Images {
  static constexpr std::string_view kName = "Images";
  int32_t in_h = 0, in_w = 0, out_h = 0, out_w = 0, tiles_w = 0, tiles = 0;  // of an image
  static void fields(auto& self, auto& visit) {
    visit("in_h", self.in_h);
    visit("in_w", self.in_w);
    visit("out_h", self.out_h);
    visit("out_w", self.out_w);
    visit("tiles_w", self.tiles_w);
    visit("tiles", self.tiles);
  }
};

struct FewChannelsParameters {
  static constexpr std::string_view kKernel = "few_channels";
  Reads x, weights;
  EpilogueReads epilogue;
  Writes y;
  Images images;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("weights", self.weights, "T");
    EpilogueReads::fields(self.epilogue, visit);
    visit("y", self.y, "Result");
    visit("images", self.images);
  }
};

struct FewChannelsTactic {
  int64_t tile = 0;  // of kTiles
  static void fields(auto& self, auto& visit) { visit("tile", self.tile, 0, static_cast<int64_t>(kTiles.size()) - 1); }
};

struct FewChannelsCode {
  int64_t x = 0, filters = 1;
  int64_t shared_bytes = 0;
  FewChannelsTactic choice;
  EpilogueCode epilogue;
  std::vector<double> numbers = {};
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, 0, kMostOperands - 1);
    visit("filters", self.filters, 1, kMostSize);
    visit("shared_bytes", self.shared_bytes, 0, kMostSharedBytes);
    FewChannelsTactic::fields(self.choice, visit);
    EpilogueCode::fields(self.epilogue, visit);
    visit("numbers", self.numbers, StepNumbers::kMost);
  }
};

int64_t channels_of(const ConvRegion& region) { return region.node().input(1)->constant->dims()[1]; }
int64_t quads_of_pixel(const ConvRegion& region) { return blocks_of(channels_of(region), kQuad); }
/// Of a window, in elements: with those that are zeros.
int64_t depth_of(const ConvRegion& region) {
  return round_up(quads_of_pixel(region) * elements(region.window.kernel), kQuad) * kQuad;
}

std::string reason_against(const Problem& problem, const ConvRegion& region) {
  const Node& node = region.node();
  const DType dtype = node.input(0)->type.dtype;
  if (dtype != DType::f16 && dtype != DType::bf16) return fmt::format("input is {}", name_of(dtype));
  if (std::string reason = reason_against_operands(problem.region, node); !reason.empty()) return reason;
  if (region.window.kernel.size() != 2) return fmt::format("{} spatial axes", region.window.kernel.size());
  if (region.code.groups != 1) return "groups";
  if (region.window.auto_pad != "NOTSET") return "padding depends on the size";
  if (channels_of(region) > kMostChannels) return fmt::format("{} channels", channels_of(region));
  if (depth_of(region) > kMostDepth) return fmt::format("{} elements of a window", depth_of(region));
  if (node.output()->type.shape.elements() == Dim(0)) return "empty result";
  if (region.match.operand_codes) return "its operand is codes";
  return region.match.refusal;
}

/// Filters of a block: 16, 32 or 64.
int64_t columns_of(const BlockTile& tile, int64_t filters) {
  int64_t columns = 16;
  while (columns < std::min(tile.filters, filters)) columns *= 2;
  return columns;
}
int64_t columns_of(const BlockTile& tile, const ConvRegion& region) { return columns_of(tile, region.code.channels); }

int64_t shared_bytes(const BlockTile& tile, const ConvRegion& region) {
  const WindowAttrs& window = region.window;
  const auto span = [&](size_t axis, int64_t results) {
    return (results - 1) * window.strides[axis] + (window.kernel[axis] - 1) * window.dilations[axis] + 1;
  };
  const int64_t patch = quads_of_pixel(region) * kQuad * span(0, tile.h) * span(1, tile.w);
  const int64_t columns = columns_of(tile, region), sums = tile.h * tile.w * (columns + 4) * 4;
  return std::max(2 * (columns * (depth_of(region) + kGap) + patch), sums);
}

/// [filter][part of four quads][half of a quad][quad][two channels], as blocks of so many filters copy them.
Tensor rows_of_quads(const ConvRegion& region, int64_t columns) {
  const Tensor& weights = *region.node().input(1)->constant;
  const Floats source = region.weights();
  const int64_t filters = region.code.channels, channels = channels_of(region), row = depth_of(region) + kGap,
                taps = elements(region.window.kernel), whole = round_up(filters, columns);
  std::vector<float> rows(static_cast<size_t>(whole * row), 0.0F);
  for (int64_t f = 0; f < filters; ++f)
    for (int64_t channel = 0; channel < channels; ++channel)
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t quad = channel / kQuad * taps + tap;
        const int64_t place = ((quad / kQuad * 2 + channel % kQuad / 2) * kQuad + quad % kQuad) * 2 + channel % 2;
        rows[static_cast<size_t>(f * row + place)] = source[(f * channels + channel) * taps + tap];
      }
  return write_floats(weights.dtype(), {whole, row}, rows);
}

struct FewChannelsFamily {
  static constexpr std::string_view kName = "few_channels";
  static constexpr int kVersion = 4;
  using Params = FewChannelsTactic;
  using Code = FewChannelsCode;

  static void propose(const Problem& problem, Candidates& out) {
    const std::optional<ConvRegion> region = read_conv_region(problem.region, Roundings::codes);
    if (!region || region->transposed) return;
    if (std::string reason = reason_against(problem, *region); !reason.empty())
      return out.refuse(kName, std::move(reason));
    std::vector<Layout> layouts(problem.region.inputs().size(), Layout::channels_last);
    layouts[static_cast<size_t>(region->code.input)] = Layout::linear;
    for (size_t i = 0; i < kTiles.size(); ++i) {
      const bool repeats = kTiles[i].filters < 64 && region->code.channels <= kTiles[i].filters;
      if (repeats || shared_bytes(kTiles[i], *region) > kMostSharedBytes) continue;
      out.offer({"cuda",
                 std::string(kName),
                 write_fields(Params{static_cast<int64_t>(i)}),
                 layouts,
                 {Layout::channels_last}});
    }
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params& params, const Tactic&) {
    const ConvRegion region = *read_conv_region(problem.region, Roundings::codes);
    const BlockTile& tile = kTiles[static_cast<size_t>(params.tile)];
    const std::string_view type = type_name(region.node().output()->type.dtype);
    Built<Code> built;
    built.constants.push_back(rows_of_quads(region, columns_of(tile, region)));
    append_bias(region.bias(), built.constants);
    built.code = {.x = region.code.input,
                  .filters = region.code.channels,
                  .shared_bytes = shared_bytes(tile, region),
                  .choice = params,
                  .epilogue = region.code.epilogue,
                  .numbers = step_numbers(region.match)};
    built.source = fmt::format(
                       "typedef {0} T;\n#define MMA_TYPE \"{0}\"\n#define TILE_H {1}\n#define TILE_W {2}\n#define "
                       "WARP_TILES {3}\n",
                       type, tile.h, tile.w, tile.times) +
                   fmt::format("#define BN {}\n#define CHANNELS {}\n#define FILTERS {}\n#define ROW_FILTERS FILTERS\n",
                               columns_of(tile, region), channels_of(region), region.code.channels) +
                   "#define CODED 0\n#define HAS_ZERO 0\n" + window_text(region.window) +
                   declare<FewChannelsParameters>() + epilogue_text(region.match, region.code.epilogue) +
                   kernels::ends + kernels::few_channels;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const BlockTile& tile = kTiles[static_cast<size_t>(code.choice.tile)];
    const int64_t columns = columns_of(tile, code.filters);
    HONE_CHECK(context.shapes.outputs.size() == 1 && !context.constants.empty() &&
                   context.constants[0].dims.front() == round_up(code.filters, columns),
               "a convolution in the plan has {} results", context.shapes.outputs.size());
    const Place x{PlaceKind::input, code.x};
    const Dims &in = context.dims_of(x), &out = context.shapes.outputs[0].dims;
    HONE_CHECK(in.size() == 4 && out.size() == 4 && in[0] == out[0] && out[1] == code.filters,
               "a convolution in the plan turns {} into {}", join_dims(in), join_dims(out));
    const int64_t tiles_w = blocks_of(out[3], tile.w), tiles = tiles_w * blocks_of(out[2], tile.h);
    HONE_CHECK(elements(out) > 0 && elements(out) < int64_t{1} << 31 && tiles * out[0] < int64_t{1} << 31,
               "a convolution in the plan has {} results", elements(out));
    const FewChannelsParameters parameters{
        .x = x.pointer(),
        .weights = constant(0),
        .epilogue = epilogue_reads(code.epilogue, context, code.filters, code.numbers),
        .y = output(0),
        .images = {.in_h = static_cast<int32_t>(in[2]),
                   .in_w = static_cast<int32_t>(in[3]),
                   .out_h = static_cast<int32_t>(out[2]),
                   .out_w = static_cast<int32_t>(out[3]),
                   .tiles_w = static_cast<int32_t>(tiles_w),
                   .tiles = static_cast<int32_t>(tiles)}};
    return single(context, launch_of(*context.module, parameters,
                                     {{tiles * out[0], blocks_of(code.filters, columns)},
                                      static_cast<unsigned>(tile.threads()),
                                      static_cast<unsigned>(code.shared_bytes)}));
  }
};

}  // namespace

const CudaTactic tactics::few_channels = describe<FewChannelsFamily>();

}  // namespace hone::cuda
