// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale q kT + mask) v in blocks of queries and keys that stay in the worker's own caches, so the matrix of all scores
// never exists.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "backends/cpu/kernel.h"
#include "backends/cpu/matmul/gemm_kernel.h"
#include "backends/cpu/norm/softmax_code.h"
#include "regions/attention_region.h"

namespace hone::cpu {

/// Elements from one image, head and query to the next; 0 repeats the mask.
struct MaskStrides {
  int64_t batch = 0, head = 0, row = 0;
  MaskKind kind = MaskKind::none;
};

struct AttentionShape {
  HeadTensor q, k, v, y;
  MaskStrides mask;
  float scale = 1;
};

/// Queries and keys whose scores are computed together.
struct AttentionBlock {
  int64_t rows = 1, keys = 1;
  static void fields(auto& self, auto& visit) {
    visit("rows", self.rows, 1, 1024);
    visit("keys", self.keys, 1, 1 << 20);
  }
};

struct AttentionArgs {
  const float *q = nullptr, *k = nullptr, *v = nullptr, *mask = nullptr;
  float* y = nullptr;
  float* scratch = nullptr;  // of this worker: scratch_floats(), 64-byte aligned
};

AttentionShape attention_shape(const AttentionLayer& layer);
AttentionArgs attention_args(const AttentionLayer& layer, const Bindings& bindings, float* scratch);

/// Work items are (image, head, group of queries); workers share nothing.
class AttentionKernel {
 public:
  AttentionKernel(const AttentionShape& shape, const AttentionBlock& block, Isa isa, int workers);

  size_t scratch_floats() const { return scratch_floats_; }
  void run(int worker, int workers, const AttentionArgs& args) const;

 private:
  struct Matmuls {
    BatchedGemmKernel scores, result;
  };
  /// Parts of a worker's scratch.
  struct Scratch {
    float *keys, *values, *scores, *weighted, *state;
  };

  void choose_blocks(const AttentionBlock& block, int workers);
  void generate();
  Scratch cut(float* scratch) const;
  int64_t shared_head(int64_t head) const { return head / (s_.q.heads / s_.k.heads); }
  int64_t value_stride() const { return values_in_place_ ? s_.v.row_stride : s_.v.columns; }
  void pack(const float* keys, const float* values, const Scratch& scratch) const;
  void run_item(int64_t batch, int64_t head, int64_t group, const AttentionArgs& args, const Scratch& scratch) const;
  const Matmuls& matmuls(int64_t rows, int64_t keys) const {
    return *matmuls_[(rows != block_.rows) * 2 + (keys != block_.keys)];
  }

  AttentionShape s_;
  Isa isa_;
  AttentionBlock block_{};
  int64_t group_ = 0,
          groups_ = 0;    // queries that take every block of keys and values from the second-level cache together
  bool running_ = false;  // more than one block of keys
  int64_t score_stride_ = 0, weighted_stride_ = 0;
  bool values_in_place_ = false;
  std::array<std::optional<Matmuls>, 4> matmuls_;  // [last, smaller block of queries][of keys]
  std::array<std::optional<SoftmaxCode>, 2> softmax_;
  std::array<int64_t, 5> part_floats_{};
  size_t scratch_floats_ = 0;
};

}  // namespace hone::cpu
