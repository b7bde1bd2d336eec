// SPDX-License-Identifier: Apache-2.0
//
// Convolutions on Hopper that read each pixel from memory once for all taps: windows of several taps in steps of one, on images whose sizes are
// known. persistent_gemm reads every tap's anew, which the second-level cache is too slow for.
#include <algorithm>
#include <array>
#include <optional>

#include "backends/cuda/conv/tiled_weights.h"
#include "backends/cuda/conv/warp_groups.h"
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "base/checked.h"

namespace hone::cuda {
namespace {

constexpr size_t kOffers = 4;
constexpr int64_t kMostTaps = 49, kMostStages = 8, kMostResident = 20, kFewestStages = 3, kMostBuffers = 4,
                  kMostPitch = 256;
constexpr std::array kBlockings{Blocking{2, 2, 128}, Blocking{2, 2, 64}, Blocking{2, 1, 256}, Blocking{2, 1, 128},
                                Blocking{1, 2, 128}, Blocking{1, 4, 64}, Blocking{1, 2, 64}};

struct HaloParameters {
  static constexpr std::string_view kKernel = "halo_conv";
  MappedOperand x;
  Reads weights;
  FinishParameters finish;
  Images images;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x);
    visit("weights", self.weights, "T");
    FinishParameters::fields(self.finish, visit);
    visit("images", self.images);
  }
};

struct HaloTactic {
  int64_t tile = 0, cluster = 1;  // of kBlockings; blocks that share their weights' way
  static void fields(auto& self, auto& visit) {
    visit("tile", self.tile, 0, static_cast<int64_t>(kBlockings.size()) - 1);
    visit("cluster", self.cluster, 1, 2);
  }
};

/// Sizes that the kernel is compiled for.
struct HaloImages {
  int64_t in_h = 1, in_w = 1, out_h = 1, out_w = 1;
  int64_t rows = 1, pitch = 1;  // of an image and of a row, with the zeros behind it
  static void fields(auto& self, auto& visit) {
    visit("in_h", self.in_h, 1, kMostSize);
    visit("in_w", self.in_w, 1, kMostSize);
    visit("out_h", self.out_h, 1, kMostSize);
    visit("out_w", self.out_w, 1, kMostSize);
    visit("rows", self.rows, 1, kMostSize);
    visit("pitch", self.pitch, 1, kMostSize);
  }
};

struct HaloCode {
  GemmCode gemm;
  HaloTactic choice;
  HaloImages images;
  int64_t chunk = 32, shared = 0;  // bytes of a pixel at a time, and in all
  static void fields(auto& self, auto& visit) {
    GemmCode::fields(self.gemm, visit);
    HaloTactic::fields(self.choice, visit);
    HaloImages::fields(self.images, visit);
    visit("chunk", self.chunk, 32, kTiledBytes);
    visit("shared", self.shared, 0, kGroupSharedBytes);
  }
};

/// What lies around a pixel of the result along an axis: zeros before the image and behind it.
struct ZeroPixels {
  int64_t before, behind;
};

ZeroPixels padding_of(const WindowAttrs& window, size_t axis, int64_t in, int64_t out) {
  const int64_t before = window.pads[axis], reach = (window.kernel[axis] - 1) * window.dilations[axis];
  return {before, std::max<int64_t>(out - 1 + reach - before - (in - 1), 0)};
}

int64_t channel_bytes(const Anchors& anchors) {
  return anchors.filters().channels * (anchors.coded() ? 1 : static_cast<int64_t>(size_of(anchors.floats())));
}

/// Of a pixel's channels, so many bytes are in shared memory at a time; 0 where that does not divide them.
int64_t chunk_of(const Anchors& anchors) {
  for (const int64_t chunk : {128, 64, 32})
    if (channel_bytes(anchors) % chunk == 0) return chunk;
  return 0;
}

HaloImages images_of(const Anchors& anchors) {
  const Dims in = anchors.node().input(0)->type.shape.values(), out = anchors.node().output()->type.shape.values();
  const auto rows = padding_of(anchors.conv->window, 0, in[2], out[2]),
             columns = padding_of(anchors.conv->window, 1, in[3], out[3]);
  // Rows begin at multiples of 128 bytes, as the engine that copies them wants it.
  return {.in_h = in[2],
          .in_w = in[3],
          .out_h = out[2],
          .out_w = out[3],
          .rows = in[2] + std::max(rows.before, rows.behind),
          .pitch = round_up(in[3] + std::max(columns.before, columns.behind), kTiledBytes / chunk_of(anchors))};
}

bool has_padding(const Anchors& anchors) {
  const HaloImages images = images_of(anchors);
  const auto pads = [&](size_t axis, int64_t in, int64_t out) {
    const ZeroPixels zeros = padding_of(anchors.conv->window, axis, in, out);
    return zeros.before > 0 || zeros.behind > 0;
  };
  return pads(0, images.in_h, images.out_h) || pads(1, images.in_w, images.out_w);
}

/// What comes to shared memory for a tile.
struct Covering {
  int64_t chunks, steps;  // of the channels; of 128 bytes of each filter
  int64_t rows, bytes;    // of images that a tile's windows touch; of a chunk of them
};

Covering covering_of(const Anchors& anchors, const Blocking& blocking) {
  const WindowAttrs& window = anchors.conv->window;
  const int64_t chunk = chunk_of(anchors), chunks = channel_bytes(anchors) / chunk, pitch = images_of(anchors).pitch;
  const int64_t covered = blocking.rows() + (window.kernel[0] - 1) * window.dilations[0] * pitch +
                          (window.kernel[1] - 1) * window.dilations[1];
  const int64_t rows = blocks_of(pitch - 1 + covered, pitch);
  return {.chunks = chunks,
          .steps = chunks * blocks_of(anchors.filters().taps * chunk, kTiledBytes),
          .rows = rows,
          .bytes = round_up(rows * pitch * chunk, 1024)};
}

/// How shared memory is divided; no stages where it does not suffice.
struct Division {
  int64_t stages = 0, buffers = 0, kept = 1, bytes = 0;
  bool resident = false;  // all weights of a block's tiles
};

Division division_of(const Blocking& blocking, const Anchors& anchors) {
  const Covering covering = covering_of(anchors, blocking);
  const int64_t step = blocking.columns * kTiledBytes;
  const bool residual = anchors.epilogue().residual >= 0;
  const int64_t added = residual ? blocking.rows() * blocking.columns * added_bytes(anchors) : 0;
  const int64_t reserved = kAlignmentAndBarriers + kFinishers * bytes_through(anchors);
  // Where groups take turns, a tile's place is not the one of the tile before.
  const int64_t least = blocking.groups == 1 ? 2 : 1, kept = residual ? least : 1;
  const auto room = [&](int64_t buffers) {
    return kGroupSharedBytes - reserved - kept * added - buffers * covering.bytes;
  };
  const auto divided = [&](int64_t stages, int64_t buffers, bool resident) {
    return Division{stages, buffers, kept, kGroupSharedBytes - room(buffers) + stages * step, resident};
  };
  // Where groups take turns, each has a buffer while the next one comes.
  if (anchors.filters().count <= blocking.columns && covering.steps <= kMostResident)
    for (int64_t buffers = kMostBuffers; buffers >= least + 1; --buffers)
      if (covering.steps * step <= room(buffers)) return divided(covering.steps, buffers, true);
  // More buffers than two only where enough weights are on their way, too.
  for (int64_t buffers = kMostBuffers; buffers >= 2; --buffers) {
    const int64_t stages = room(buffers) > 0 ? std::min(room(buffers) / step, kMostStages) : 0;
    if (stages >= (buffers > 2 ? kMostStages / 2 + 1 : kFewestStages)) return divided(stages, buffers, false);
  }
  return {};
}

/// Whether the images' sizes hold for all that the network may be given.
bool has_fixed_sizes(const Problem& problem) {
  return std::ranges::all_of(problem.symbolic.inputs(), [](const Value* input) {
    const Shape& shape = input->type.shape;
    return shape.rank() != 4 || (shape[2].is_constant() && shape[3].is_constant());
  });
}

std::string reason_against_window(const Problem& problem, const Anchors& anchors) {
  const Filters filters = anchors.filters();
  const WindowAttrs& window = anchors.conv->window;
  if (window.kernel.size() != 2) return fmt::format("{} spatial axes", window.kernel.size());
  if (anchors.unit() != anchors.piece() || chunk_of(anchors) == 0) return fmt::format("{} channels", filters.channels);
  if (anchors.patches() || filters.taps == 1 || filters.taps > kMostTaps)
    return fmt::format("windows of {}", filters.taps);
  if (window.strides != Dims{1, 1}) return "steps of more than one";
  if (!has_fixed_sizes(problem)) return "the images' sizes are not fixed";
  if (window.auto_pad != "NOTSET" || window.pads[0] < 0 || window.pads[1] < 0) return "its padding";
  const HaloImages images = images_of(anchors);
  if (images.out_h > images.rows || images.out_w > images.pitch) return "a result wider than its images";
  if (images.pitch > kMostPitch) return fmt::format("rows of {} pixels", images.in_w);
  if (anchors.coding().zero != 0 && has_padding(anchors)) return "padding of codes whose zero is another one";
  return reason_against_ends(anchors);
}

/// Microseconds, roughly, on an H200: what a block multiplies or waits for, and its ends.
double cost_of(const HaloTactic& choice, const Anchors& anchors, int64_t processors) {
  const Blocking& blocking = kBlockings[static_cast<size_t>(choice.tile)];
  const Covering covering = covering_of(anchors, blocking);
  const HaloImages images = images_of(anchors);
  const Division division = division_of(blocking, anchors);
  const bool in_turns = blocking.groups == 1;
  const int64_t pixels = anchors.pixels() / (images.out_h * images.out_w) * images.rows * images.pitch;
  const int64_t tiles = round_up(blocks_of(pixels, blocking.rows()), choice.cluster) *
                        blocks_of(anchors.filters().count, blocking.columns);
  const auto rounds = static_cast<double>(blocks_of(tiles, std::max<int64_t>(processors, 1)));
  const auto results = static_cast<double>(blocking.rows() * blocking.columns);
  const double multiply = results * static_cast<double>(covering.steps) * 128 / 7.2e6;
  const int64_t weights = division.resident ? 0 : covering.steps * blocking.columns * kTiledBytes / choice.cluster;
  const double fetch = static_cast<double>(covering.chunks * covering.bytes + weights) / 48e3;
  return 3.0 + rounds * (std::max(multiply, fetch) + results / 25e3 * (in_turns ? 0.2 : 1.0));
}

std::vector<HaloTactic> choices(const Anchors& anchors, int64_t processors) {
  std::vector<std::pair<double, HaloTactic>> list;
  for (size_t i = 0; i < kBlockings.size(); ++i) {
    const Division division = division_of(kBlockings[i], anchors);
    // One group alone multiplies by 64 columns at half the speed of two.
    const bool slow = kBlockings[i].groups == 1 && kBlockings[i].columns == 64 && !division.resident;
    if (division.stages == 0 || slow) continue;
    for (int64_t cluster = 1; cluster <= (division.resident ? 1 : 2); ++cluster) {
      const HaloTactic choice{static_cast<int64_t>(i), cluster};
      list.emplace_back(cost_of(choice, anchors, processors), choice);
    }
  }
  std::ranges::stable_sort(list, {}, &std::pair<double, HaloTactic>::first);
  if (list.size() > kOffers) list.resize(kOffers);
  std::vector<HaloTactic> tactics;
  for (const auto& [cost, choice] : list) tactics.push_back(choice);
  return tactics;
}

/// What the kernel is compiled for, but for how shared memory is divided.
std::string sizes_text(const Anchors& anchors, const Blocking& blocking) {
  const Filters filters = anchors.filters();
  const HaloImages images = images_of(anchors);
  return fmt::format("typedef {} Sum;\n#define GROUPS {}\n#define PARTS {}\n#define BM {}\n#define BN {}\n",
                     anchors.sums_integers() ? "int" : "float", blocking.groups, blocking.parts, blocking.rows(),
                     blocking.columns) +
         fmt::format(
             "#define CHANNELS {}\n#define FILTERS {}\n#define ROW_FILTERS {}\n#define CHUNK {}\n"
             "#define MOST_ROWS {}\n",
             filters.channels, filters.count, filters.count, chunk_of(anchors), covering_of(anchors, blocking).rows) +
         fmt::format("#define OUT_H {}\n#define OUT_W {}\n#define IMAGE_ROWS {}\n#define PITCH {}\n", images.out_h,
                     images.out_w, images.rows, images.pitch);
}

/// A row of the images at a time, with the zeros behind it, and a chunk of each pixel's channels.
MappedOperand images_in_boxes(const HaloCode& code, int64_t count, const LoadContext& context) {
  const HaloImages& images = code.images;
  const ConcreteType& x = context.shapes.inputs.at(static_cast<size_t>(code.gemm.x));
  const int64_t bytes = elements(x.dims) * static_cast<int64_t>(size_of(x.dtype)),
                pixels = count * images.in_h * images.in_w;
  HONE_CHECK(pixels > 0 && bytes % (pixels * code.chunk) == 0, "a convolution in the plan reads {} bytes as {} pixels",
             bytes, pixels);
  return {.from = input(code.gemm.x),
          .axes = 4,
          .sizes = {bytes / pixels, images.in_w, images.in_h, count},
          .box = {code.chunk, images.pitch, 1, 1}};
}

struct HaloConvFamily {
  static constexpr std::string_view kName = "halo_conv";
  static constexpr int kVersion = 1;
  using Params = HaloTactic;
  using Code = HaloCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Anchors anchors(problem.region);
    if (!anchors.conv || !has_warp_groups(problem)) return;
    std::string reason = reason_against_anchors(problem, anchors);
    if (reason.empty()) reason = reason_against_window(problem, anchors);
    if (!reason.empty()) return out.refuse(kName, std::move(reason));
    for (const HaloTactic& choice : choices(anchors, problem.device.workers))
      out.offer({"cuda", std::string(kName), write_fields(choice),
                 std::vector<Layout>(problem.region.inputs().size(), anchors.layout()),
                 std::vector<Layout>(problem.region.outputs().size(), anchors.layout())});
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params& params, const Tactic&) {
    const Anchors anchors(problem.region);
    const Blocking& blocking = kBlockings[static_cast<size_t>(params.tile)];
    const Division division = division_of(blocking, anchors);
    Built<Code> built;
    built.constants = constants_for(anchors);
    built.constants[0] =
        tiled(in_chunks(built.constants[0], chunk_of(anchors)), blocking.columns, 16 / result_bytes(anchors));
    finish_in_steps(anchors, built.constants);
    built.code = {.gemm = gemm_code(problem, anchors),
                  .choice = params,
                  .images = images_of(anchors),
                  .chunk = chunk_of(anchors),
                  .shared = division.bytes};
    built.source = types_text(anchors) + sizes_text(anchors, blocking) +
                   fmt::format(
                       "#define STAGES {}\n#define BUFFERS {}\n#define RESIDENT {:d}\n#define KEPT {}\n"
                       "#define THROUGH {}\n#define CLUSTER {}\n",
                       division.stages, division.buffers, division.resident, division.kept, bytes_through(anchors),
                       params.cluster) +
                   window_text(anchors) + declare<HaloParameters>() + ends_text(anchors, built.code.gemm) +
                   kernels::warp_groups + instruction_text("multiply_group", blocking.columns, anchors, "") +
                   kernels::dense_ends + kernels::halo_conv;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const Blocking& blocking = kBlockings[static_cast<size_t>(code.choice.tile)];
    const FinishParameters finish = finish_parameters(code.gemm, context);
    const Images images = cuda::images_of(code.gemm, context);
    const HaloImages& sizes = code.images;
    HONE_CHECK(images.in_h == sizes.in_h && images.in_w == sizes.in_w && images.out_h == sizes.out_h &&
                   images.out_w == sizes.out_w && sizes.rows >= sizes.in_h && sizes.pitch >= sizes.in_w &&
                   sizes.out_h <= sizes.rows && sizes.out_w <= sizes.pitch && sizes.pitch <= kMostPitch &&
                   kTiledBytes % code.chunk == 0,
               "a convolution in the plan is of images of {}x{}, not {}x{}", sizes.in_h, sizes.in_w, images.in_h,
               images.in_w);
    HONE_CHECK(!context.constants.empty() &&
                   context.constants[0].dims.front() == blocks_of(code.gemm.filters, blocking.columns),
               "a convolution in the plan has no weights of {} filters", code.gemm.filters);
    const int64_t count = images.pixels / (sizes.out_h * sizes.out_w);
    const int64_t pixels = checked_multiply(count, checked_multiply(sizes.rows, sizes.pitch));
    HONE_CHECK(pixels + blocking.rows() * 4 < int64_t{1} << 31, "a convolution in the plan is of {} pixels", pixels);
    const HaloParameters parameters{
        .x = images_in_boxes(code, count, context), .weights = constant(0), .finish = finish, .images = images};
    const int64_t cluster = code.choice.cluster;
    const int64_t tiles =
        blocks_of(blocks_of(pixels, blocking.rows()), cluster) * blocks_of(code.gemm.filters, blocking.columns);
    GridLaunch launch =
        launch_of(*context.module, parameters, {{cluster}, kGroupThreads, static_cast<unsigned>(code.shared)});
    launch.grid.x = blocks_that_stay(launch, cluster, tiles, context);
    return single(context, std::move(launch));
  }
};

}  // namespace

const CudaTactic tactics::halo_conv = describe<HaloConvFamily>();

}  // namespace hone::cuda
