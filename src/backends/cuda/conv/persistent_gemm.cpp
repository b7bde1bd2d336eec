// SPDX-License-Identifier: Apache-2.0
//
// Products on Hopper whose blocks stay: what implicit_gemm multiplies, where there is enough of it for every processor. Weights are laid out
// for the tile that the tuner chooses, so that a step's come as one copy for all blocks of a cluster.
#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "backends/cuda/conv/tiled_weights.h"
#include "backends/cuda/conv/warp_groups.h"
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "base/checked.h"

namespace hone::cuda {
namespace {

constexpr size_t kOffers = 5;
constexpr int64_t kMostTaps = 64, kMostStages = 8;

constexpr std::array kBlockings{Blocking{2, 1, 256}, Blocking{2, 1, 192}, Blocking{2, 1, 128}, Blocking{2, 1, 64},
                                Blocking{2, 2, 128}, Blocking{1, 2, 128}, Blocking{1, 2, 64},  Blocking{1, 1, 256},
                                Blocking{1, 1, 128}, Blocking{1, 1, 64}};

struct PersistentParameters {
  static constexpr std::string_view kKernel = "persistent_gemm";
  Reads x, weights;
  FinishParameters finish;
  Images images;
  std::optional<MappedOperand> rows;  // instead of x
  static void fields(auto& self, auto& visit) {
    if (self.rows) visit("rows", *self.rows);
    else visit("x", self.x, "T");
    visit("weights", self.weights, "T");
    FinishParameters::fields(self.finish, visit);
    visit("images", self.images);
  }
};

struct PersistentTactic {
  int64_t tile = 0, cluster = 1;  // of kBlockings; blocks that share their weights' way
  bool sparse = false;            // of four weights two are multiplied
  static void fields(auto& self, auto& visit) {
    visit("tile", self.tile, 0, static_cast<int64_t>(kBlockings.size()) - 1);
    visit("cluster", self.cluster, 1, 2);
    visit("sparse", self.sparse);
  }
};

/// Rows are pixels and columns filters, or the other way round: the instruction takes sparse weights as rows.
struct PersistentTile {
  Blocking blocking;
  int64_t pixels, filters;
  int64_t filter_bytes;  // of a step's weights, each
  explicit PersistentTile(const PersistentTactic& choice)
      : blocking(kBlockings[static_cast<size_t>(choice.tile)]),
        pixels(blocking.rows()),
        filters(blocking.columns),
        filter_bytes(choice.sparse ? kSparseBytes : kTiledBytes) {
    if (choice.sparse) std::swap(pixels, filters);
  }
};

struct PersistentCode {
  GemmCode gemm;
  PersistentTactic choice;
  int64_t shared = 0;  // bytes
  bool plain = false;  // operands are rows of a matrix
  static void fields(auto& self, auto& visit) {
    GemmCode::fields(self.gemm, visit);
    PersistentTactic::fields(self.choice, visit);
    visit("shared", self.shared, 0, kGroupSharedBytes);
    visit("plain", self.plain);
  }
};

/// How shared memory is divided; `through` are the bytes through which the results of each finishing warp pass.
struct Division {
  int64_t stages = 0, kept = 1, through = 0, bytes = 0;
};

/// As many tiles of what is added as leave room for four stages, and as many stages as there is room for then.
Division division_of(const PersistentTile& tile, bool sparse, const Anchors& anchors) {
  const int64_t through = sparse ? 64 * 32 : bytes_through(anchors);
  const int64_t reserved = kAlignmentAndBarriers + kFinishers * through;
  const bool residual = anchors.epilogue().residual >= 0;
  const int64_t stage = tile.pixels * kTiledBytes + tile.filters * tile.filter_bytes;
  const int64_t added = residual ? tile.pixels * tile.filters * added_bytes(anchors) : 0;
  // Where groups take turns, a tile's place is not the one of the tile before.
  const int64_t least = residual && tile.blocking.groups == 1 ? 2 : 1;
  Division best;
  for (int64_t kept = residual ? kMostKept : 1; kept >= least; --kept) {
    const int64_t room = kGroupSharedBytes - reserved - kept * added, stages = std::min(room / stage, kMostStages);
    if (stages >= 4 || stages > best.stages) best = {stages, kept, through, stages * stage + kept * added + reserved};
    if (stages >= 4) break;
  }
  return best;
}

std::string reason_against_tiles(const Anchors& anchors) {
  const Filters filters = anchors.filters();
  if (anchors.unit() != anchors.piece()) return fmt::format("{} channels", filters.channels);
  if (filters.taps > kMostTaps) return fmt::format("windows of {}", filters.taps);
  return reason_against_ends(anchors);
}

/// Sparse weights are multiplied by floats of 16 bits, which results and what is added are, too. Rows of patches are no rows of channels.
bool fits_sparse(const Anchors& anchors) {
  const RegionMatch& match = anchors.match();
  return !anchors.coded() && !match.encodes && !match.residual_codes && !anchors.patches() && has_whole_rows(anchors);
}

/// What a group does with a tile, and the instructions for it.
std::string tile_text(const PersistentTile& tile, bool sparse, const Anchors& anchors) {
  const int64_t columns = tile.blocking.columns;
  if (!sparse)
    return instruction_text("multiply_group", columns, anchors, "") + kernels::dense_tile + kernels::dense_ends;
  return instruction_text("multiply_half_0", columns, anchors, "0") +
         instruction_text("multiply_half_1", columns, anchors, "1") + kernels::sparse_tile;
}

/// Whether a pixel's operands are a row of the input.
bool is_plain(const Anchors& anchors) {
  if (!anchors.conv) return true;
  const auto all = [](const Dims& values, int64_t value) {
    return std::ranges::all_of(values, [value](int64_t at) { return at == value; });
  };
  const WindowAttrs& window = anchors.conv->window;
  return !anchors.patches() && all(window.kernel, 1) && all(window.strides, 1) && all(window.pads, 0);
}

struct Choice {
  PersistentTactic tactic;
  double cost;
};

/// Microseconds, roughly, on an H100 or H200: what a block multiplies, what it waits for from the second-level cache, and its ends.
double cost_of(const PersistentTactic& choice, int64_t pixels, int64_t filters, int64_t steps, int64_t processors) {
  const PersistentTile tile(choice);
  const bool in_turns = tile.blocking.groups == 1;
  const int64_t tiles = round_up(blocks_of(pixels, tile.pixels), choice.cluster) * blocks_of(filters, tile.filters);
  const int64_t at_once = std::max<int64_t>(processors, 1) * (in_turns ? 2 : 1);
  const auto rounds = static_cast<double>(blocks_of(tiles, at_once) * (in_turns ? 2 : 1));
  const auto results = static_cast<double>(tile.pixels * tile.filters);
  const double multiply = results * 128 / (choice.sparse ? 12e6 : 7.2e6);
  const double fetch =
      static_cast<double>(tile.pixels * kTiledBytes + tile.filters * tile.filter_bytes / choice.cluster) / 48e3;
  const double end = results / 25e3 * (in_turns ? 0.5 : 1.0);
  return 3.0 + rounds * (static_cast<double>(steps) * std::max(multiply, fetch) + end);
}

/// The best few, most promising first; the first one in the other kind of cluster, too. A tile's filters are of one of the matmuls.
std::vector<PersistentTactic> choices(const Anchors& anchors, int64_t processors, bool sparse) {
  const Filters filters = anchors.filters();
  const int64_t count = filters.count * anchors.matmuls(), pixels = anchors.pixels();
  const int64_t steps = blocks_of(filters.taps * filters.channels, 8 * anchors.piece());
  std::vector<Choice> list;
  for (size_t i = 0; i < kBlockings.size(); ++i) {
    const auto with = [&](int64_t cluster) { return PersistentTactic{static_cast<int64_t>(i), cluster, sparse}; };
    const PersistentTile tile(with(1));
    if (anchors.matmuls() > 1 && filters.count % tile.filters != 0) continue;
    if (division_of(tile, sparse, anchors).stages < 2) continue;
    const auto cost = [&](int64_t cluster) { return cost_of(with(cluster), pixels, count, steps, processors); };
    const int64_t cluster = pixels > tile.pixels && cost(2) < cost(1) ? 2 : 1;
    list.push_back({with(cluster), cost(cluster)});
  }
  std::ranges::stable_sort(list, {}, &Choice::cost);
  if (list.size() > kOffers) list.resize(kOffers);
  std::vector<PersistentTactic> tactics;
  for (const Choice& choice : list) tactics.push_back(choice.tactic);
  if (!tactics.empty() && pixels > PersistentTile(tactics[0]).pixels) {
    tactics.push_back(tactics[0]);
    tactics.back().cluster = 3 - tactics[0].cluster;
  }
  return tactics;
}

/// A pixel's operands behind each other, of a tile's pixels at a time.
MappedOperand rows_of(const PersistentCode& code, const PersistentTile& tile, const Images& images,
                      const LoadContext& context) {
  const ConcreteType& x = context.shapes.inputs.at(static_cast<size_t>(code.gemm.x));
  const int64_t bytes = elements(x.dims) * static_cast<int64_t>(size_of(x.dtype));
  HONE_CHECK(images.pixels > 0 && bytes % images.pixels == 0 && bytes / images.pixels % 16 == 0,
             "a matmul in the plan reads {} bytes as {} rows", bytes, images.pixels);
  return {.from = input(code.gemm.x),
          .sizes = {bytes / images.pixels, images.pixels, 1, 1},
          .box = {kTiledBytes, tile.pixels, 1, 1}};
}

struct PersistentGemmFamily {
  static constexpr std::string_view kName = "persistent_gemm";
  static constexpr int kVersion = 8;
  using Params = PersistentTactic;
  using Code = PersistentCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Anchors anchors(problem.region);
    if (!anchors.found() || !has_warp_groups(problem)) return;
    std::string reason = reason_against_anchors(problem, anchors);
    if (reason.empty()) reason = reason_against_tiles(anchors);
    if (!reason.empty()) return out.refuse(kName, std::move(reason));
    std::vector<PersistentTactic> offers = choices(anchors, problem.device.workers, false);
    if (problem.allowed.sparse && fits_sparse(anchors))
      std::ranges::move(choices(anchors, problem.device.workers, true), std::back_inserter(offers));
    for (const PersistentTactic& choice : offers)
      out.offer({"cuda", std::string(kName), write_fields(choice),
                 std::vector<Layout>(problem.region.inputs().size(), anchors.layout()),
                 std::vector<Layout>(problem.region.outputs().size(), anchors.layout())});
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params& params, const Tactic&) {
    const Anchors anchors(problem.region);
    const Filters filters = anchors.filters();
    const PersistentTile tile(params);
    const Division division = division_of(tile, params.sparse, anchors);
    Built<Code> built;
    built.constants = constants_for(anchors);
    built.constants[0] = params.sparse ? tiled_sparse(built.constants[0], tile.filters)
                                       : tiled(built.constants[0], tile.filters, 16 / result_bytes(anchors));
    finish_in_steps(anchors, built.constants);
    built.code = {
        .gemm = gemm_code(problem, anchors), .choice = params, .shared = division.bytes, .plain = is_plain(anchors)};
    PersistentParameters parameters;
    if (built.code.plain) parameters.rows.emplace();
    Declarations declarations;
    declarations.add_list(parameters);
    built.source =
        types_text(anchors) +
        fmt::format(
            "typedef {} Sum;\n#define GROUPS {}\n#define PARTS {}\n#define BM {}\n#define BN {}\n"
            "#define FILTER_BYTES {}\n#define FILTER_STRIDE {}\n#define STAGES {}\n#define KEPT {}\n#define THROUGH "
            "{}\n#define CLUSTER {}\n"
            "#define PLAIN {:d}\n",
            anchors.sums_integers() ? "int" : "float", tile.blocking.groups, tile.blocking.parts, tile.pixels,
            tile.filters, tile.filter_bytes, tile.filter_bytes + (params.sparse ? kPlacesBytes : 0), division.stages,
            division.kept, division.through, params.cluster, built.code.plain) +
        fmt::format("#define CHANNELS {}\n#define FILTERS {}\n#define ROW_FILTERS {}\n", filters.channels,
                    built.code.gemm.filters, filters.count) +
        window_text(anchors) + declarations.text() + ends_text(anchors, built.code.gemm) + kernels::warp_groups +
        kernels::persistent_fetch + tile_text(tile, params.sparse, anchors) + kernels::persistent_gemm;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const PersistentTile tile(code.choice);
    const FinishParameters finish = finish_parameters(code.gemm, context);
    const Images images = images_of(code.gemm, context);
    HONE_CHECK(
        !context.constants.empty() && context.constants[0].dims.front() == blocks_of(code.gemm.filters, tile.filters),
        "a matmul in the plan has no weights of {} filters", code.gemm.filters);
    PersistentParameters parameters{
        .x = input(code.gemm.x), .weights = constant(0), .finish = finish, .images = images, .rows = {}};
    if (code.plain) parameters.rows = rows_of(code, tile, images, context);
    const int64_t cluster = code.choice.cluster;
    const int64_t tiles =
        blocks_of(blocks_of(images.pixels, tile.pixels), cluster) * blocks_of(code.gemm.filters, tile.filters);
    GridLaunch launch =
        launch_of(*context.module, parameters, {{cluster}, kGroupThreads, static_cast<unsigned>(code.shared)});
    launch.grid.x = blocks_that_stay(launch, cluster, tiles, context);
    return single(context, std::move(launch));
  }
};

}  // namespace

const CudaTactic tactics::persistent_gemm = describe<PersistentGemmFamily>();

}  // namespace hone::cuda
