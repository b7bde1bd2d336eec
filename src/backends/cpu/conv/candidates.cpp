// SPDX-License-Identifier: Apache-2.0
//
// First guesses for tile and blocking, from a small model of the inner loop: per input channel a tile costs the larger of its
// FMAs (two a cycle), its loads (two a cycle) and the FMA latency. Guesses only order what a tuner times.

#include <algorithm>
#include <cmath>

#include "backends/cpu/conv/conv_kernel.h"
#include "backends/cpu/conv/depthwise_kernel.h"
#include "backends/cpu/conv/winograd_kernel.h"
#include "backends/cpu/jit/tile_code.h"
#include "backends/cpu/matmul/gemm_kernel.h"

namespace hone::cpu {
namespace {

constexpr int64_t kWeightsInL2 = 400 << 10;  // bytes of one panel that leave room for the input in a 1 MB L2
constexpr double kWeightsInL1 = 24 << 10;
constexpr double kL2BytesPerCycle = 21;  // sustained beside the FMAs
constexpr int64_t kCallCycles = 30;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Cycles per input channel of one tile.
double tile_cycles(Isa isa, double pixels, int64_t most_pixels, int64_t vectors, bool weights_in_l1) {
  const int64_t spare = registers_of(isa) - most_pixels * vectors;
  const int64_t in_registers = most_pixels == 1 ? 0 : std::min(vectors, spare - 1);
  const double loads = pixels + double(in_registers) + pixels * double(vectors - in_registers);
  // A load that hides behind FMAs still costs a little of the front end and of L2's bandwidth; one vector per element
  // (embedded broadcasts) leaves nothing to hide behind.
  const double l2 = weights_in_l1 ? 0 : double(vectors * lanes_of(isa) * 4) / kL2BytesPerCycle;
  return std::max({pixels * double(vectors) / 2, 0.55 * loads, l2, 4.0}) + 0.03 * loads;
}

double estimate(const ConvShape& s, Isa isa, int pixels, int vectors) {
  const bool flat = s.kh == 1 && s.kw == 1 && s.stride_h == 1 && s.stride_w == 1 &&
                    s.pad_top + s.pad_left + s.pad_bottom + s.pad_right == 0;
  const int64_t row = flat ? s.n * s.oh() * s.ow() : s.ow(), rows = flat ? 1 : s.n * s.oh();
  const int64_t strips = ceil_div(row, pixels), most = ceil_div(row, strips);
  const double size = double(row) / double(strips);
  const int64_t total_vectors = ceil_div(s.group_oc(), lanes_of(isa));
  const double depth = double(s.group_ic() * s.kh * s.kw);
  // Rows of the input a multiple of 4 KB apart fall into the same set of L1, which holds 8 to 12 of them; a strip that is
  // larger than half of L1 comes from L2 again for every panel.
  const bool nhwc = s.src_layout == SrcLayout::nhwc;
  const bool conflict = nhwc && s.src_stride() * s.stride_w % 1024 == 0 && most > 8;
  const double slow = conflict ? 1.4 : nhwc && size * double(s.group_ic()) * 4 > 48 * 1024 ? 1.1 : 1.0;
  const auto tile = [&](int64_t v) {
    return v ? depth * tile_cycles(isa, size, most, v, depth * double(v * lanes_of(isa) * 4) < kWeightsInL1) * slow +
                   double(kCallCycles) + 2 * size * double(v)
             : 0.0;
  };
  return double(rows * strips) * (double(total_vectors / vectors) * tile(vectors) + tile(total_vectors % vectors));
}

}  // namespace

std::vector<ConvConfig> conv_candidates(const ConvShape& s, Isa isa, int workers) {
  std::vector<std::pair<double, ConvConfig>> ranked;
  const int64_t pixels_in_all = s.n * s.oh() * s.ow();
  for (int vectors = 1; vectors <= 8; ++vectors)
    for (int pixels = 1; pixels <= 28; ++pixels) {
      if (!tile_fits(isa, pixels, vectors)) continue;
      if (vectors > ceil_div(s.group_oc(), lanes_of(isa)) || pixels > pixels_in_all) continue;
      if (pixels < 28 && tile_fits(isa, pixels + 1, vectors) && pixels < pixels_in_all) continue;  // only the largest
      ConvConfig c{pixels, vectors, 0, 1, true};
      const int64_t panel = c.panel_channels(isa), per_channel = 4 * s.kh * s.kw * panel;
      if (s.group_ic() * per_channel > kWeightsInL2)
        c.depth = int(std::max<int64_t>(64, kWeightsInL2 / per_channel / 8 * 8));
      // Panels that fit into L2 together share a strip of input, as long as enough work items remain for the team.
      const int64_t panels = s.groups * ceil_div(s.group_oc(), panel);
      const int64_t fit =
          std::clamp<int64_t>(kWeightsInL2 / std::max<int64_t>(1, s.group_ic() * per_channel), 1, panels);
      const int64_t strips = ceil_div(pixels_in_all, pixels);
      c.panels = int(std::clamp<int64_t>(strips * panels / (16 * workers), 1, fit));
      ranked.push_back({estimate(s, isa, pixels, vectors), c});
    }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ConvConfig> best;
  for (const auto& [cost, config] : ranked)
    if (best.size() < 3 && cost < 1.3 * ranked.front().first) best.push_back(config);
  // The unblocked form of the first guess: one pass over the sum, panel by panel.
  ConvConfig plain = best.front();
  plain.depth = 0;
  plain.panels = 1;
  if (plain != best.front()) best.push_back(plain);
  return best;
}

std::vector<DepthwiseConfig> depthwise_candidates(const ConvShape& shape, Isa isa, int) {
  const int budget = isa == Isa::avx512 ? 24 : 9;  // accumulators; the filter row's weights need registers too
  std::vector<DepthwiseConfig> all;
  for (int vectors : {1, 2}) {
    if (vectors > 1 && shape.oc <= lanes_of(isa)) continue;
    const int most = std::max(1, std::min<int>(budget, registers_of(isa) - 1 - int(shape.kw) * vectors) / vectors);
    const int64_t strips = ceil_div(shape.ow(), most);
    all.push_back({int(ceil_div(shape.ow(), strips)), vectors});
  }
  return all;
}

std::vector<WinogradConfig> winograd_candidates(const ConvShape& s, Isa isa, int workers) {
  std::vector<WinogradConfig> all;
  if (!winograd_applies(s) || s.ic < 8 || s.oc < 8) return all;
  for (int m : {4, 6, 2}) {
    const int64_t n = m + 2, tiles = ceil_div(s.n * ceil_div(s.oh(), m) * ceil_div(s.ow(), m), workers);
    // A block's transforms in about half of a 1 MB L2. Where the weights come from L3 they want to be used often: then the
    // transforms may lie in L3 too, because they are read once per panel and the weights once per block.
    const bool large = n * n * s.ic * s.oc * 4 > (1 << 20);
    const int64_t fit = (large ? 4 << 20 : 512 << 10) / (4 * n * n * (s.ic + 32));
    const int64_t block = ceil_div(tiles, ceil_div(tiles, std::clamp<int64_t>(fit, 12, 112)));
    WinogradConfig best;
    double least = 1e30;
    for (int vectors = 1; vectors <= 4; ++vectors)
      for (int pixels = 1; pixels <= 14; ++pixels) {
        if (!tile_fits(isa, pixels, vectors) || vectors > ceil_div(s.oc, lanes_of(isa))) continue;
        const int64_t strips = ceil_div(block, pixels), most = ceil_div(block, strips);
        const double cycles = tile_cycles(isa, double(block) / double(strips), most, vectors, false);
        const double cost = double(strips * ceil_div(ceil_div(s.oc, lanes_of(isa)), vectors)) *
                            (cycles * double(s.ic) + double(kCallCycles));
        if (cost < least) least = cost, best = {m, int(block), int(most), vectors, 1};
      }
    all.push_back(best);
  }
  return all;
}

std::vector<GemmConfig> batched_gemm_candidates(const BatchedGemmShape& shape, Isa isa, int workers) {
  auto all = gemm_candidates(shape.matrix, isa, workers);
  if (isa == Isa::avx512) all.insert(all.begin(), GemmConfig{6, 4, 0, 1, true});
  // B in place keeps all of its vectors in registers, and attention's matrices are too small to block.
  for (GemmConfig& c : all) {
    c.depth = 0;
    c.panels = 1;
    while (c.pixels * c.vectors + c.vectors + 1 > registers_of(isa)) --(c.pixels > 1 ? c.pixels : c.vectors);
  }
  return all;
}

}  // namespace hone::cpu
