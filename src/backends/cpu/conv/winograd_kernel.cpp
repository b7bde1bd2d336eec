// SPDX-License-Identifier: Apache-2.0
//
// A worker owns a range of output tiles times a range of output-channel panels and needs no one else: it transforms a block
// of input tiles into its scratch, then per group of panels multiplies position by position and transforms the products back,
// with the epilogue. Workers that share tiles but not panels transform the same input twice; share() weighs that against the weights.

#include "backends/cpu/conv/winograd_kernel.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/conv/winograd_transform.h"
#include "backends/cpu/jit/tile_code.h"
#include "backends/cpu/run/team.h"
#include "base/error.h"

namespace hone::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

/// An odd number of cache lines: neighbours in the outer dimension then never compete for the same cache set.
int64_t odd_lines(int64_t floats) { return (ceil_div(floats, 16) | 1) * 16; }

}  // namespace

bool winograd_applies(const ConvShape& s) {
  return s.kh == 3 && s.kw == 3 && s.stride_h == 1 && s.stride_w == 1 && s.dilation_h == 1 && s.dilation_w == 1 &&
         s.groups == 1 && s.src_layout == SrcLayout::nhwc && !s.dst_row_stride && !s.dst_image_stride &&
         !s.residual_row_stride && !s.residual_image_stride;
}

size_t packed_winograd_floats(const ConvShape& s, const WinogradConfig& config, int64_t panel) {
  const int64_t n = config.output + 2;
  return size_t(ceil_div(s.oc, panel) * panel * s.ic * n * n);
}

void pack_winograd_weights(const float* oihw, const ConvShape& s, const WinogradConfig& config, int64_t panel,
                           float* packed) {
  const Matrix g = winograd_matrices(config.output).filter;
  const size_t n = g.size(), panel_floats = n * n * size_t(s.ic * panel);
  share_out(ceil_div(s.oc, panel), panel_floats * sizeof(float), [&](int64_t index) {
    const int64_t first = index * panel;
    float* to = packed + size_t(index) * panel_floats;
    std::vector<float> row(n * n *
                           size_t(panel));  // [position][panel channel] of one input channel: written out in runs
    for (int64_t i = 0; i < s.ic; ++i) {
      std::fill(row.begin(), row.end(), 0.0f);
      for (int64_t o = first; o < std::min(s.oc, first + panel); ++o) {
        const float* w = oihw + (o * s.ic + i) * 9;
        for (size_t a = 0; a < n; ++a) {
          double half[3];
          for (size_t x = 0; x < 3; ++x)
            half[x] = g[a][0] * double(w[x]) + g[a][1] * double(w[3 + x]) + g[a][2] * double(w[6 + x]);
          for (size_t b = 0; b < n; ++b)
            row[(a * n + b) * size_t(panel) + size_t(o - first)] =
                float(half[0] * g[b][0] + half[1] * g[b][1] + half[2] * g[b][2]);
        }
      }
      for (size_t position = 0; position < n * n; ++position)
        std::copy_n(row.data() + position * size_t(panel), panel, to + (int64_t(position) * s.ic + i) * panel);
    }
  });
}

WinogradKernel::~WinogradKernel() = default;
WinogradKernel::WinogradKernel(WinogradKernel&&) noexcept = default;

WinogradKernel::WinogradKernel(const ConvShape& shape, const Epilogue& epilogue, const WinogradConfig& config, Isa isa)
    : shape_(shape), config_(config), isa_(isa) {
  const ConvShape& s = shape_;
  HONE_ASSERT(winograd_applies(s), "not a 3x3 convolution with stride 1 in NHWC");
  HONE_ASSERT(tile_fits(isa, config.pixels, config.vectors) && config.tiles > 0, "tile {}x{}", config.pixels,
              config.vectors);
  const int64_t m = config.output;
  n_ = m + 2;
  tile_rows_ = ceil_div(s.oh(), m);
  tile_columns_ = ceil_div(s.ow(), m);
  tiles_ = s.n * tile_rows_ * tile_columns_;
  config_.tiles = int(std::min<int64_t>(config.tiles, tiles_));
  panel_ = config.panel_channels(isa);
  panels_ = ceil_div(s.oc, panel_);

  slot_ = odd_lines(round_up(s.ic, lanes_of(isa)));
  position_ = odd_lines(config_.tiles * slot_);
  group_panels_ = config.panels > 0 ? std::min<int64_t>(config.panels, panels_) : panels_;
  product_slot_ = group_panels_ == 1 ? panel_ : odd_lines(group_panels_ * panel_);
  product_position_ = odd_lines(config_.tiles * product_slot_);
  product_offset_ = size_t(n_ * n_ * position_);
  patch_offset_ = product_offset_ + size_t(n_ * n_ * product_position_);
  temporary_offset_ = patch_offset_ + size_t(n_ * n_ * round_up(s.ic, 16));
  scratch_floats_ = temporary_offset_ + size_t(n_ * n_ * 16);
  generate(epilogue);
}

void WinogradKernel::generate(const Epilogue& epilogue) {
  const ConvShape& s = shape_;
  const int lanes = lanes_of(isa_), m = config_.output;
  std::vector<size_t> inputs, outputs, products;
  code_ = Emitter::generate(isa_, [&](Emitter& emitter) {
    inputs.push_back(
        emit_input_transform(emitter, {m, s.ic, 4 * s.iw * s.src_stride(), 4 * s.src_stride(), 4 * position_}));
    inputs.push_back(emit_input_transform(emitter, {m, s.ic, 4 * n_ * s.ic, 4 * s.ic, 4 * position_}));
    for (int last = 0; last < 2; ++last) {
      const int64_t channels = last ? s.oc - (panels_ - 1) * panel_ : panel_;
      OutputTransformSpec o;
      o.m = m;
      o.vectors = int(ceil_div(channels, lanes));
      o.tail = int(channels % lanes);
      o.position = 4 * product_position_;
      o.dst_pixel = 4 * s.dst_stride();
      o.dst_row = o.dst_pixel * s.ow();
      o.residual_pixel = 4 * s.residual_stride();
      o.residual_row = o.residual_pixel * s.ow();
      o.epilogue = epilogue;
      for (int cut_bottom = 0; cut_bottom < 2; ++cut_bottom)
        for (int cut_right = 0; cut_right < 2; ++cut_right) {
          o.rows = cut_bottom ? int(s.oh() - (tile_rows_ - 1) * m) : m;
          o.columns = cut_right ? int(s.ow() - (tile_columns_ - 1) * m) : m;
          outputs.push_back(emit_output_transform(emitter, o));
        }
      for (int slots = 1; slots <= config_.pixels; ++slots) {
        TileSpec t;
        t.pixels = slots;
        t.vectors = o.vectors;
        t.depth = s.ic;
        t.taps = {{0, 0, 0, slots}};
        t.src_pixel = 4 * slot_;
        t.weights_channel = 4 * panel_;
        t.dst_pixel = 4 * product_slot_;
        t.prefetch_lines = prefetch_lines(t, 1, ceil_div(config_.tiles, config_.pixels), 4 * s.ic * panel_);
        products.push_back(emit_tile(emitter, t));
      }
    }
  });
  input_ = code_->entry<TransformFunction>(inputs[0]);
  patch_input_ = code_->entry<TransformFunction>(inputs[1]);
  for (size_t offset : outputs) output_.push_back(code_->entry<TransformFunction>(offset));
  for (size_t offset : products) products_.push_back(code_->entry<TileFunction>(offset));
}

WinogradKernel::Share WinogradKernel::share(int worker, int workers) const noexcept {
  // Rough cycles: products, input transform, and weights from L3 at 10 bytes per cycle, once per block of tiles.
  const double positions = double(n_ * n_ * shape_.ic), flops_per_cycle = 4.0 * lanes_of(isa_);
  int best_split = 1;
  double best = 1e30;
  for (int split = 1; split <= workers; ++split) {  // of the panels
    if (workers % split || split > panels_) continue;
    const double tiles = double(ceil_div(tiles_, workers / split)), panels = double(ceil_div(panels_, split));
    const double blocks = std::max(1.0, tiles / config_.tiles);
    const double cost = tiles * positions * (panels * double(panel_) * 2 / flops_per_cycle + 5.0 / lanes_of(isa_)) +
                        blocks * panels * positions * double(panel_) * 4 / 10;
    if (cost < best) best = cost, best_split = split;
  }
  const int64_t tile_shares = workers / best_split, t = worker % tile_shares, p = worker / tile_shares;
  return {tiles_ * t / tile_shares, tiles_ * (t + 1) / tile_shares, panels_ * p / best_split,
          panels_ * (p + 1) / best_split};
}

void WinogradKernel::run(int worker, int workers, const ConvArgs& args, float* scratch) const noexcept {
  scratch += size_t(worker) * scratch_floats_;
  const Share mine = share(worker, workers);
  for (int64_t first = mine.tile_begin; first < mine.tile_end; first += config_.tiles) {
    const int64_t slots = std::min<int64_t>(config_.tiles, mine.tile_end - first);
    for (int64_t slot = 0; slot < slots; ++slot) transform_input(first + slot, slot, args.src, scratch);
    for (int64_t panel = mine.panel_begin; panel < mine.panel_end; panel += group_panels_) {
      const int64_t last = std::min(panel + group_panels_, mine.panel_end);
      multiply(panel, last, slots, args.weights, scratch);
      for (int64_t slot = 0; slot < slots; ++slot)
        for (int64_t p = panel; p < last; ++p) transform_output(first + slot, slot, p, p - panel, args, scratch);
    }
  }
}

void WinogradKernel::transform_input(int64_t tile, int64_t slot, const float* src, float* scratch) const noexcept {
  const ConvShape& s = shape_;
  const int64_t column = tile % tile_columns_, row = tile / tile_columns_ % tile_rows_,
                image = tile / tile_columns_ / tile_rows_;
  const int64_t y = row * config_.output - s.pad_top, x = column * config_.output - s.pad_left;
  const int64_t pixel = s.src_stride();
  const float* from = src + ((image * s.ih + y) * s.iw + x) * pixel;
  TransformArgs t{};
  t.dst = scratch + slot * slot_;
  t.temporary = scratch + temporary_offset_;
  if (y >= 0 && x >= 0 && y + n_ <= s.ih && x + n_ <= s.iw) {
    t.src = from;
    input_(&t);
    return;
  }
  float* patch = scratch + patch_offset_;
  std::memset(patch, 0, size_t(n_ * n_ * s.ic) * sizeof(float));
  for (int64_t i = std::max<int64_t>(0, -y); i < std::min(n_, s.ih - y); ++i)
    for (int64_t j = std::max<int64_t>(0, -x); j < std::min(n_, s.iw - x); ++j)
      std::memcpy(patch + (i * n_ + j) * s.ic, from + (i * s.iw + j) * pixel, size_t(s.ic) * sizeof(float));
  t.src = patch;
  patch_input_(&t);
}

void WinogradKernel::multiply(int64_t first_panel, int64_t last_panel, int64_t slots, const float* weights,
                              float* scratch) const noexcept {
  const int64_t position_weights = shape_.ic * panel_, panel_weights = n_ * n_ * position_weights;
  const int64_t strips = ceil_div(slots, config_.pixels);
  TileArgs t{};
  t.rows = 1;
  for (int64_t position = 0; position < n_ * n_; ++position)
    for (int64_t panel = first_panel; panel < last_panel; ++panel) {
      const TileFunction* functions = products_.data() + (panel == panels_ - 1 ? config_.pixels : 0);
      t.weights = weights + panel * panel_weights + position * position_weights;
      const float* next = panel + 1 < last_panel
                              ? t.weights + panel_weights
                              : weights + first_panel * panel_weights + (position + 1) * position_weights;
      for (int64_t strip = 0; strip < strips; ++strip) {
        const int64_t begin = slots * strip / strips, end = slots * (strip + 1) / strips;
        t.src = scratch + position * position_ + begin * slot_;
        t.dst = scratch + product_offset_ +
                size_t(position * product_position_ + begin * product_slot_ + (panel - first_panel) * panel_);
        t.prefetch = next + position_weights * strip / strips / 16 * 16;
        functions[end - begin - 1](&t);
      }
    }
}

void WinogradKernel::transform_output(int64_t tile, int64_t slot, int64_t panel, int64_t in_group, const ConvArgs& args,
                                      float* scratch) const noexcept {
  const ConvShape& s = shape_;
  const int64_t column = tile % tile_columns_, row = tile / tile_columns_ % tile_rows_,
                image = tile / tile_columns_ / tile_rows_;
  const int64_t pixel = (image * s.oh() + row * config_.output) * s.ow() + column * config_.output;
  TransformArgs t{};
  t.src = scratch + product_offset_ + size_t(slot * product_slot_ + in_group * panel_);
  t.dst = args.dst + pixel * s.dst_stride() + panel * panel_;
  if (args.residual) t.residual = args.residual + pixel * s.residual_stride() + panel * panel_;
  if (args.bias) t.bias = args.bias + panel * panel_;
  t.temporary = scratch + temporary_offset_;
  const size_t variant =
      size_t((panel == panels_ - 1) * 4 + (row == tile_rows_ - 1) * 2 + (column == tile_columns_ - 1));
  output_[variant](&t);
}

}  // namespace hone::cpu
