// SPDX-License-Identifier: Apache-2.0
//
// Convolution of NHWC images, and matmuls as convolutions of one pixel, in bf16 on the processor's matrix tiles (AMX),
// with sums of f32. Input and result are f32 or bf16; an f32 input is rounded, or cut into parts of bf16 (tile_operands.h).
//
// The idea: laid out as [channel block][padded pixel][32 channels], the pixels that any tap of the filter reads for 16
// neighbouring results are 16 neighbouring rows, also across the end of an image row: what is computed in between is dropped.
// A stride of s makes s * s such planes, one for each remainder of the coordinates. An input that lies like this is read in
// place; others are packed first, by the whole team.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/conv/conv_kernel.h"
#include "backends/cpu/matmul/matrix_tile_code.h"
#include "backends/cpu/support/tile_operands.h"

namespace hone::cpu {

/// Elements from one weight to the next along each of its axes, in the model's tensor.
struct FilterStrides {
  int64_t oc = 0, ic = 0, tap = 0;
};

/// Weights in the order of the tiles, to be rounded to bf16: [panel of 32][tap][block of 32][part][half][ic pair][oc][2].
size_t tiled_weight_count(const ConvShape& shape, int parts);
void tile_weights(const float* weights, const FilterStrides& strides, const ConvShape& shape, int parts, float* tiled);

struct MatrixTileArgs {
  const void* src = nullptr;
  const void* weights = nullptr;   // tile_weights() in bf16
  const float* bias = nullptr;     // in panels of kTileChannels; only with Epilogue::bias
  const void* residual = nullptr;  // only with Epilogue::residual; may be dst
  void* dst = nullptr;
  void* workspace = nullptr;  // workspace_bytes(), 64-byte aligned
};

class MatrixTileKernel {
 public:
  /// Not for groups, strides between pixels, or channels before pixels. Types are f32 or bf16; the residual has dst's. More than
  /// one part is of f32.
  MatrixTileKernel(const ConvShape& shape, const Epilogue& epilogue, DType src, DType dst, int parts, int workers);
  ~MatrixTileKernel();

  size_t workspace_bytes() const { return workspace_bytes_; }
  /// Two phases where pack() is needed before multiply().
  bool packs() const { return !in_place_; }
  void pack(int worker, int workers, const MatrixTileArgs& args) const noexcept;
  void multiply(int worker, int workers, const MatrixTileArgs& args) const noexcept;

 private:
  /// The pixels of one remainder of the coordinates.
  struct Plane {
    int64_t row, column;
  };
  struct Range {
    int64_t begin, end;
  };

  void lay_out();
  void generate(const Epilogue& epilogue, int workers);
  TileMatmulSpec matmul_spec(int variant, int64_t strips_of_panel) const;
  void pack_row(int64_t image, int64_t plane, int64_t row, Range columns, const MatrixTileArgs& args) const noexcept;
  void multiply_block(Range strips, Range panels, const MatrixTileArgs& args) const noexcept;
  void multiply_tile(int64_t strip, int64_t panel, const MatrixTileArgs& args) const noexcept;
  void store_rows(int64_t image, Range pixels, int64_t panel, const float* sums,
                  const MatrixTileArgs& args) const noexcept;

  ConvShape shape_;
  DType src_, dst_;
  int parts_;
  bool in_place_ = false, split_strips_ = false;
  std::vector<Plane> planes_;
  std::vector<int64_t> taps_;                                  // bytes from a result's place to each tap's
  int64_t plane_rows_ = 0, plane_columns_ = 0;                 // with padding
  int64_t result_columns_ = 0;                                 // of plane_columns_
  int64_t pixels_ = 0, strips_ = 0, panels_ = 0, blocks_ = 0;  // of one image; of output, of input channels
  int64_t part_bytes_ = 0, block_bytes_ = 0, plane_bytes_ = 0, image_bytes_ = 0, panel_bytes_ = 0;
  int64_t block_strips_ = 1;  // strips whose input stays in L2 while the panels pass
  size_t workspace_bytes_ = 0;
  std::vector<TileMatmulSpec> specs_;  // [32 or 16 pixels][32 or 16 channels]
  std::vector<TileMatmul> matmuls_;    // the same; null where there are no tiles
  TileOutputRow outputs_[2] = {};      // a whole panel, the last one
  TilePack packs_[2] = {};             // a whole block, the last one
  TileSwitch on_ = nullptr, off_ = nullptr;
  std::unique_ptr<Emitter> code_;
};

}  // namespace hone::cpu
