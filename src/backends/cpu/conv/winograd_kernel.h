// SPDX-License-Identifier: Apache-2.0
//
// Winograd convolution F(m x m, 3 x 3) for 3x3 filters with stride 1, NHWC: (m+2)^2 multiplications where the direct form
// needs 9 m^2, so 2.25x (m = 2), 4x (m = 4) or 5.06x (m = 6) less arithmetic between two cheap transforms.
// Weights are transformed when they are packed, in double precision. Rounding errors grow with m (see winograd_kernel_test).
#pragma once

#include "backends/cpu/conv/conv_kernel.h"

namespace hone::cpu {

struct TransformArgs;

struct WinogradConfig {
  int output = 4;                // m: 2, 4 or 6
  int tiles = 28;                // Winograd tiles of the output transformed together
  int pixels = 14, vectors = 2;  // of the multiplication's register tile; "pixels" are Winograd tiles
  int panels =
      1;  // panels multiplied per pass over the positions (0: all): more reads the transformed input less often
  static void fields(auto& self, auto& visit) {
    visit("output", self.output, 2, 6);
    visit("tiles", self.tiles, 1, 4096);
    visit("pixels", self.pixels, 1, 64);
    visit("vectors", self.vectors, 1, 16);
    visit("panels", self.panels, 0, 1 << 24);
  }
  bool operator==(const WinogradConfig&) const = default;
  int64_t panel_channels(Isa isa) const { return int64_t{vectors} * lanes_of(isa); }
};

/// A 3x3 stride 1 NHWC convolution with one group.
bool winograd_applies(const ConvShape& shape);

/// Empty when it does not apply, or cannot pay because there are too few channels.
std::vector<WinogradConfig> winograd_candidates(const ConvShape& shape, Isa isa, int workers);

size_t packed_winograd_floats(const ConvShape& shape, const WinogradConfig& config, int64_t panel);
/// [panel][position][ic][panel channel]. The bias is packed by pack_bias as usual.
void pack_winograd_weights(const float* oihw, const ConvShape& shape, const WinogradConfig& config, int64_t panel,
                           float* packed);

class WinogradKernel {
 public:
  WinogradKernel(const ConvShape& shape, const Epilogue& epilogue, const WinogradConfig& config, Isa isa);
  ~WinogradKernel();
  WinogradKernel(WinogradKernel&&) noexcept;

  /// Scratch of one worker, in floats; pass workers times as much, 64-byte aligned.
  size_t scratch_floats() const { return scratch_floats_; }
  void run(int worker, int workers, const ConvArgs& args, float* scratch) const noexcept;

 private:
  using TransformFunction = void (*)(const TransformArgs*);
  using TileFunction = void (*)(const TileArgs*);
  struct Share {
    int64_t tile_begin, tile_end, panel_begin, panel_end;
  };

  Share share(int worker, int workers) const noexcept;
  void transform_input(int64_t tile, int64_t slot, const float* src, float* scratch) const noexcept;
  void multiply(int64_t first_panel, int64_t last_panel, int64_t slots, const float* weights,
                float* scratch) const noexcept;
  void transform_output(int64_t tile, int64_t slot, int64_t panel, int64_t in_group, const ConvArgs& args,
                        float* scratch) const noexcept;
  void generate(const Epilogue& epilogue);

  ConvShape shape_;
  WinogradConfig config_;
  Isa isa_;
  int64_t n_ = 0;  // m + 2
  int64_t tile_rows_ = 0, tile_columns_ = 0, tiles_ = 0;
  int64_t panel_ = 0, panels_ = 0, group_panels_ = 0;
  // Layout of scratch, in floats: transformed input [position][slot][channel], products [position][slot][channel], a
  // zero-padded patch for tiles at the border, and the transforms' temporary.
  int64_t slot_ = 0, position_ = 0, product_slot_ = 0, product_position_ = 0;
  size_t product_offset_ = 0, patch_offset_ = 0, temporary_offset_ = 0, scratch_floats_ = 0;
  TransformFunction input_ = nullptr, patch_input_ = nullptr;
  std::vector<TransformFunction> output_;  // [last panel][cut bottom][cut right]
  std::vector<TileFunction> products_;     // [last panel][slots - 1]
  std::unique_ptr<Emitter> code_;
};

}  // namespace hone::cpu
