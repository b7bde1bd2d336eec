// SPDX-License-Identifier: Apache-2.0
//
// Conv (channels last, one group) and Linear on tensor cores with Hone's own epilogues: any activation, and f32 sums up to the one
// rounding at the end; or, where operand and weights are codes, sums of integers up to there. Matmuls of one input (queries, keys and values) are one launch. Tiles and the number of blocks that share one are for the tuner to choose.
#include <algorithm>
#include <array>
#include <optional>

#include "backends/cuda/conv/gemm_region.h"
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "base/checked.h"

namespace hone::cuda {
namespace {

constexpr size_t kOffers = 12;
constexpr int64_t kMostInCluster = 8;  // blocks that run together on every GPU that knows clusters

/// What a block of threads (CTA) computes, and how: its tile of the result, `k` of the inner axis at a time, by so many warps,
/// `warps_m` of them along m; and the software pipeline's stages, each a part of the operands in shared memory.
struct CtaTile {
  int64_t m, n, k, warps, warps_m, stages;
};
constexpr std::array kTiles{CtaTile{64, 64, 32, 4, 2, 4},  CtaTile{32, 64, 32, 4, 1, 4},   CtaTile{64, 32, 32, 4, 2, 4},
                            CtaTile{128, 64, 32, 4, 2, 4}, CtaTile{128, 128, 32, 4, 2, 3}, CtaTile{32, 32, 32, 4, 2, 6},
                            CtaTile{64, 64, 64, 4, 2, 4},  CtaTile{32, 64, 64, 4, 1, 4},   CtaTile{64, 32, 64, 4, 2, 4},
                            CtaTile{128, 64, 64, 4, 2, 3}, CtaTile{128, 128, 64, 4, 2, 3}, CtaTile{32, 32, 64, 4, 2, 6},
                            CtaTile{128, 64, 64, 8, 4, 3}, CtaTile{128, 128, 64, 8, 4, 3}, CtaTile{64, 64, 64, 8, 2, 4},
                            CtaTile{64, 64, 128, 8, 2, 3}};
constexpr int64_t kSplits[] = {1, 2, 4, 8, 16};
constexpr size_t kOffersPerSplit = 4, kOffersWhole = 6;

/// Tiles are counted in halves: of codes there are twice as many along the inner axis.
int64_t shared_bytes(const CtaTile& tile) { return (tile.m + tile.n) * (tile.k + 8) * 2 * tile.stages; }
/// Of the sums that wait for one block or thread to finish them.
int64_t waiting_bytes(const CtaTile& tile) { return tile.m * (tile.n + 8) * 4; }
/// Of operands and then sums: what else a block keeps lies behind.
int64_t working_bytes(const CtaTile& tile) { return round_up(std::max(shared_bytes(tile), waiting_bytes(tile)), 16); }

struct MatmulParameters {
  static constexpr std::string_view kKernel = "implicit_gemm";
  Reads x, weights;
  FinishParameters finish;
  Writes partial;
  Images images;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("weights", self.weights, "T");
    FinishParameters::fields(self.finish, visit);
    visit("partial", self.partial, "float");
    visit("images", self.images);
  }
};

struct SumParameters {
  static constexpr std::string_view kKernel = "implicit_gemm_sum";
  Reads partial;
  FinishParameters finish;
  int32_t pixels = 0;
  static void fields(auto& self, auto& visit) {
    visit("partial", self.partial, "float");
    FinishParameters::fields(self.finish, visit);
    visit("pixels", self.pixels);
  }
};

struct ImplicitGemmTactic {
  int64_t tile = 0, splits = 1;  // of kTiles; blocks that share a tile
  static void fields(auto& self, auto& visit) {
    visit("tile", self.tile, 0, static_cast<int64_t>(kTiles.size()) - 1);
    visit("splits", self.splits, 1, kSplits[std::size(kSplits) - 1]);
  }
};

struct ImplicitGemmCode {
  GemmCode gemm;
  ImplicitGemmTactic choice;
  bool cluster = false;  // the blocks that share a tile are one
  bool keeps = false;    // a block's share of the residual in shared memory
  static void fields(auto& self, auto& visit) {
    GemmCode::fields(self.gemm, visit);
    ImplicitGemmTactic::fields(self.choice, visit);
    visit("cluster", self.cluster);
    visit("keeps", self.keeps);
  }
};

struct Choice {
  size_t tile;
  int64_t splits;
  double cost;
};

/// Microseconds, roughly, on a GPU of the H100's kind: the parts' way from the second-level cache to a processor or to all of
/// them, the matmuls, or the waiting of one block, whichever takes longest. Good enough to leave most choices out.
double cost_of(const CtaTile& tile, int64_t steps, int64_t blocks, int64_t splits, int64_t processors) {
  const auto rounds = static_cast<double>(blocks_of(blocks, std::max<int64_t>(processors, 1)));
  const auto count = static_cast<double>(steps);
  const double bytes = count * static_cast<double>((tile.m + tile.n) * tile.k * 2);
  const double own = rounds * bytes / 70e3, all = static_cast<double>(blocks) * bytes / 5e6;
  const double matmuls = rounds * count * static_cast<double>(2 * tile.m * tile.n * tile.k) / 4.5e6;
  const double resident = static_cast<double>(std::clamp<int64_t>((220 << 10) / shared_bytes(tile), 1, 8));
  const double waiting = (0.9 + 0.12 * count) * std::max(1.0, rounds / resident);
  return std::max({own, all, matmuls, waiting}) + (splits == 1 ? 0.0 : splits <= kMostInCluster ? 1.0 : 3.0);
}

/// The best few for every number of splits, most promising first. A block's filters are of one of the matmuls.
std::vector<Choice> choices(int64_t pixels, const Filters& filters, int64_t matmuls, int64_t piece, int processors) {
  const int64_t depth = filters.taps * filters.channels * 8 / piece;  // in halves
  const auto cheaper = [](const Choice& a, const Choice& b) { return a.cost < b.cost; };
  std::vector<Choice> list;
  for (const int64_t splits : kSplits) {
    std::vector<Choice> own;
    for (size_t i = 0; i < kTiles.size(); ++i) {
      const CtaTile& tile = kTiles[i];
      const int64_t steps = blocks_of(depth, tile.k);
      if (matmuls > 1 && filters.count / matmuls % tile.n != 0) continue;
      if (splits > 1 && (filters.count % 2 != 0 || steps / splits < 1)) continue;
      if (splits > kMostInCluster && splits * pixels * filters.count > int64_t{1} << 24) continue;
      const int64_t blocks = blocks_of(pixels, tile.m) * blocks_of(filters.count, tile.n) * splits;
      if (splits > 1 && blocks > 8 * std::max(processors, 1)) continue;
      own.push_back({i, splits, cost_of(tile, blocks_of(steps, splits), blocks, splits, processors)});
    }
    std::stable_sort(own.begin(), own.end(), cheaper);
    if (const size_t most = splits == 1 ? kOffersWhole : kOffersPerSplit; own.size() > most) own.resize(most);
    list.insert(list.end(), own.begin(), own.end());
  }
  std::stable_sort(list.begin(), list.end(), cheaper);
  if (list.size() > kOffers) list.resize(kOffers);
  return list;
}

/// KEEPS_ADDED.
bool keeps_residual(const Anchors& anchors, const ImplicitGemmTactic& choice) {
  const RegionMatch& match = anchors.match();
  return match.residual_codes && choice.splits == 1 && match.encodes && anchors.filters().count % 16 == 0 &&
         anchors.matmuls() == 1;
}

struct ImplicitGemmFamily {
  static constexpr std::string_view kName = "implicit_gemm";
  static constexpr int kVersion = 10;
  using Params = ImplicitGemmTactic;
  using Code = ImplicitGemmCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Anchors anchors(problem.region);
    if (!anchors.found()) return;
    if (std::string reason = reason_against_anchors(problem, anchors); !reason.empty())
      return out.refuse(kName, std::move(reason));
    const int64_t matmuls = anchors.matmuls();
    Filters filters = anchors.filters();
    filters.count *= matmuls;
    for (const Choice& choice : choices(anchors.pixels(), filters, matmuls, anchors.piece(), problem.device.workers))
      out.offer({"cuda", std::string(kName),
                 write_fields(Params{.tile = static_cast<int64_t>(choice.tile), .splits = choice.splits}),
                 std::vector<Layout>(problem.region.inputs().size(), anchors.layout()),
                 std::vector<Layout>(problem.region.outputs().size(), anchors.layout())});
  }

  static Built<Code> generate(const Problem& problem, const std::string& architecture, const Params& params,
                              const Tactic&) {
    const Anchors anchors(problem.region);
    const Filters filters = anchors.filters();
    const CtaTile& tile = kTiles[static_cast<size_t>(params.tile)];
    Built<Code> built;
    built.constants = constants_for(anchors);
    built.code = {.gemm = gemm_code(problem, anchors),
                  .choice = params,
                  .cluster = params.splits > 1 && params.splits <= kMostInCluster && has_clusters(architecture),
                  .keeps = keeps_residual(anchors, params)};
    built.source = types_text(anchors) +
                   fmt::format("typedef {} Sum;\n#define KEPT_AT {}\n", anchors.sums_integers() ? "int" : "float",
                               working_bytes(tile)) +
                   fmt::format(
                       "#define BM {}\n#define BN {}\n#define BK {}\n#define WARPS {}\n#define WARPS_M {}\n"
                       "#define STAGES {}\n#define SPLITS {}\n#define CLUSTER {:d}\n",
                       tile.m, tile.n, tile.k * anchors.piece() / 8, tile.warps, tile.warps_m, tile.stages,
                       params.splits, built.code.cluster);
    built.source += fmt::format("#define CHANNELS {}\n#define UNIT {}\n#define FILTERS {}\n#define ROW_FILTERS {}\n",
                                filters.channels, anchors.unit(), built.code.gemm.filters, filters.count) +
                    window_text(anchors) + declare<MatmulParameters, SumParameters>() +
                    epilogue_text(anchors.match(), built.code.gemm.epilogue) + kernels::ends + kernels::implicit_gemm;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const FinishParameters finish = finish_parameters(code.gemm, context);
    const auto matmuls = static_cast<int64_t>(context.shapes.outputs.size());
    HONE_CHECK(!context.constants.empty() && context.constants[0].dims.front() == code.gemm.filters,
               "a matmul in the plan has no weights of {} filters", code.gemm.filters);
    const Dims& out = context.shapes.outputs[0].dims;
    const Images images = images_of(code.gemm, context);
    std::vector<GridLaunch> launches{launch_matmul(code, context, finish, images)};
    const int64_t splits = code.choice.splits;
    if (splits == 1 || code.cluster) return std::make_shared<GridKernel>(context.module, std::move(launches));
    require_sizes(Dims{splits, matmuls, elements(out)});
    const SumParameters sum{.partial = from_workspace(), .finish = finish, .pixels = images.pixels};
    launches.push_back(launch_of(*context.module, sum, {{blocks_of(matmuls * elements(out) / 2, 128)}, 128}));
    return std::make_shared<GridKernel>(context.module, std::move(launches),
                                        static_cast<size_t>(splits * matmuls * elements(out)) * sizeof(float));
  }

 private:
  static GridLaunch launch_matmul(const Code& code, const LoadContext& context, const FinishParameters& finish,
                                  const Images& images) {
    const CtaTile& tile = kTiles[static_cast<size_t>(code.choice.tile)];
    const bool encodes = size_of(context.shapes.outputs[0].dtype) == 1;
    const bool waits = code.cluster || (encodes && code.choice.splits == 1);
    const int64_t working = std::max(shared_bytes(tile), waits ? waiting_bytes(tile) : 0);
    const int64_t shared = code.keeps ? working_bytes(tile) + tile.m * tile.n : working;
    const MatmulParameters parameters{
        .x = input(code.gemm.x), .weights = constant(0), .finish = finish, .partial = to_workspace(), .images = images};
    return launch_of(*context.module, parameters,
                     {{blocks_of(code.gemm.filters, tile.n), blocks_of(images.pixels, tile.m), code.choice.splits},
                      static_cast<unsigned>(32 * tile.warps),
                      static_cast<unsigned>(shared)});
  }
};

}  // namespace

const CudaTactic tactics::implicit_gemm = describe<ImplicitGemmFamily>();

}  // namespace hone::cuda
