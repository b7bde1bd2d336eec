// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale q kT + mask) v with both matmuls in bf16 on matrix tiles (AMX), their operands rounded or cut into parts, softmax and
// sums in f32. A worker packs the
// keys and values of a head once; each strip of 32 queries then passes them block by block, its scores in the first-level cache.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "backends/cpu/attention/attention_kernel.h"
#include "backends/cpu/matmul/matrix_tile_code.h"

namespace hone::cpu {

class TileAttentionKernel {
 public:
  /// `keys`: of a block of scores; `parts`: of each element (tile_operands.h).
  TileAttentionKernel(const AttentionShape& shape, int64_t keys, int parts);
  ~TileAttentionKernel();

  /// Of one worker; AttentionArgs::scratch.
  size_t scratch_bytes() const { return scratch_bytes_; }
  void run(int worker, int workers, const AttentionArgs& args) const;

 private:
  /// Parts of a worker's scratch.
  struct Scratch {
    std::byte *keys, *values, *queries, *weights, *rows;
    float *scores, *weighted, *state;
  };
  /// A matmul for strips of up to 32 and up to 16 queries, by panels of up to 32 and up to 16 results.
  struct Matmul {
    std::array<TileMatmulSpec, 4> specs;
    std::array<TileMatmul, 4> functions{};
    void run(int64_t rows, int64_t columns, const TileMatmulArgs& args) const;
  };

  void generate();
  void measure_parts();
  Scratch cut(float* scratch) const;
  void pack(const float* keys, const float* values, const Scratch& scratch) const;
  void run_strip(int64_t batch, int64_t head, int64_t first, const AttentionArgs& args, const Scratch& scratch) const;
  void score(int64_t rows, int64_t key, int64_t keys, const Scratch& scratch) const;
  void weigh(int64_t rows, int64_t key, int64_t keys, const Scratch& scratch) const;

  AttentionShape s_;
  int parts_;
  int64_t step_bytes_;    // of weights
  int64_t block_ = 0;     // keys
  bool running_ = false;  // more than one block
  int64_t depth_blocks_ = 0, key_blocks_ = 0, value_panels_ = 0, weighted_stride_ = 0;
  Matmul scores_;
  std::array<Matmul, 2> results_;  // of a whole block of keys, and of the last one
  std::array<TilePack, 2> query_packs_{}, key_packs_{}, value_packs_{}, weight_packs_{};  // of 32 columns, of fewer
  std::array<std::optional<SoftmaxCode>, 2> softmax_;
  TileSwitch on_ = nullptr, off_ = nullptr;
  std::unique_ptr<Emitter> code_;
  std::array<int64_t, 8> part_bytes_{};
  size_t scratch_bytes_ = 0;
};

}  // namespace hone::cpu
