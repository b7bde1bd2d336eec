// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale q kT + mask) v for blocks of queries: the scores of one block of one head stay in the worker's own cache, so
// the matrix of all scores never exists. Work items are (image, head, block); workers share nothing.
#include <algorithm>

#include "backends/cpu/jit/gemm_kernel.h"
#include "backends/cpu/tactics/attention_code.h"
#include "backends/cpu/tactics/convolution.h"
#include "backends/cpu/tactics/softmax_code.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kScoreKilobytes[] = {
    256, 64};  // of a block: half of a common L2, and what leaves room for keys and values

std::string reason_against(const Problem& problem, const Node& node) {
  if (problem.device.architecture == "scalar") return "needs AVX2";
  return reason_against_attention(problem, node);
}

void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
  const Node* node = anchor_of(problem.region, ops::scaled_dot_product_attention);
  if (node == nullptr) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse("attention", std::move(reason));
  for (const int64_t kilobytes : kScoreKilobytes)
    out.offer({"cpu",
               "attention",
               {{"kilobytes", kilobytes}},
               std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
               {Layout::linear}});
}

Compiled compile(const Problem& problem, const Tactic& tactic) {
  const Node* node = anchor_of(problem.region, ops::scaled_dot_product_attention);
  Compiled compiled;
  Attrs attrs = tactic.params;
  write_attention(attrs, problem, *node, compiled.constants);
  compiled.code = encode_code("attention", attrs);
  return compiled;
}

MaskKind kind_of(const AttentionCode& code) {
  if (!code.mask) return MaskKind::none;
  return code.mask->dims[3] == code.k.rows ? MaskKind::full : MaskKind::per_row;
}

constexpr int64_t kValueBytes = 24 << 10;  // of a block of values that stays in the first-level cache

GemmConfig best_config(const BatchedGemmShape& shape, Isa isa) {
  return batched_gemm_candidates(shape, isa, 1).front();
}

/// Every strip of queries reads all values: block by block, each from the first-level cache.
GemmConfig result_config(const BatchedGemmShape& shape, Isa isa) {
  GemmConfig config = best_config(shape, isa);
  const int64_t depth = std::max<int64_t>(32, kValueBytes / 4 / config.panel_channels(isa) / 8 * 8);
  if (shape.matrix.k >= 3 * depth) config.depth = static_cast<int>(depth);
  return config;
}

BatchedGemmShape scores_shape(int64_t rows, int64_t score_stride, float scale, const HeadTensor& q,
                              const HeadTensor& k) {
  return {.matrix = {.m = rows, .n = k.rows, .k = q.columns, .lda = q.row_stride, .ldc = score_stride},
          .ldb = k.row_stride,
          .transposed_b = true,
          .scale = scale};
}

BatchedGemmShape result_shape(int64_t rows, int64_t score_stride, const HeadTensor& k, const HeadTensor& v,
                              const HeadTensor& y) {
  return {.matrix = {.m = rows, .n = v.columns, .k = k.rows, .lda = score_stride, .ldc = y.row_stride},
          .ldb = v.row_stride};
}

/// Both products for a block of `rows` queries. `tile` is that of the first one, the same for all blocks, because they share
/// the packed keys.
struct BlockKernels {
  BatchedGemmKernel scores, result;

  BlockKernels(const BatchedGemmShape& first, const GemmConfig& tile, const BatchedGemmShape& second, Isa isa)
      : scores(first, {}, tile, isa), result(second, {}, result_config(second, isa), isa) {}
};

class Attention final : public CpuKernel {
 public:
  Attention(const AttentionCode& code, int64_t block, const CpuInfo& info)
      : code_(code),
        workers_(info.workers),
        block_(block),
        blocks_((code.q.rows + block - 1) / block),
        score_stride_((code.k.rows + 15) / 16 * 16),
        softmax_(code.k.rows, kind_of(code), info.isa) {
    const HeadTensor &q = code_.q, &k = code_.k, &v = code_.v, &y = code_.y;
    const GemmConfig tile = best_config(scores_shape(block_, score_stride_, code_.scale, q, k), info.isa);
    const auto add = [&](int64_t rows) {
      kernels_.emplace_back(scores_shape(rows, score_stride_, code_.scale, q, k), tile,
                            result_shape(rows, score_stride_, k, v, y), info.isa);
    };
    add(block_);
    if (const int64_t rest = q.rows % block_; rest != 0) add(rest);
    score_floats_ = static_cast<size_t>((block_ * score_stride_ + 15) / 16 * 16);
    worker_floats_ = score_floats_ + kernels_.front().scores.scratch_floats();
  }

  size_t workspace_bytes() const override { return worker_floats_ * sizeof(float) * static_cast<size_t>(workers_); }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(code_.q.batch * code_.q.heads * blocks_, worker, workers);
    float* scores = static_cast<float*>(bindings.workspace) + static_cast<size_t>(worker) * worker_floats_;
    float* packed_keys = scores + score_floats_;
    const float* packed_from = nullptr;
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t batch = item / blocks_ / code_.q.heads, head = item / blocks_ % code_.q.heads;
      const float* keys = input(bindings, code_.k_place) + code_.k.offset(batch, code_.shared_head(head), 0);
      if (keys != packed_from) kernels_.front().scores.pack(keys, packed_keys);
      packed_from = keys;
      run_block(batch, head, item % blocks_, scores, packed_keys, bindings);
    }
  }

 private:
  static const float* input(const Bindings& bindings, int index) {
    return static_cast<const float*>(bindings.inputs[static_cast<size_t>(index)]);
  }

  void run_block(int64_t batch, int64_t head, int64_t block, float* scores, float* packed_keys,
                 const Bindings& bindings) const {
    const int64_t row = block * block_, rows = std::min(block_, code_.q.rows - row);
    const BlockKernels& kernels = kernels_[rows == block_ ? 0 : 1];
    kernels.scores.run(0, 1,
                       {.a = input(bindings, code_.q_place) + code_.q.offset(batch, head, row),
                        .b = input(bindings, code_.k_place) + code_.k.offset(batch, code_.shared_head(head), 0),
                        .c = scores,
                        .scratch = packed_keys,
                        .packed = true});
    const float* mask = nullptr;
    if (code_.mask) {
      mask = code_.mask->place >= 0 ? input(bindings, code_.mask->place)
                                    : static_cast<const float*>(bindings.constants[0]);
      mask += code_.mask->offset(batch, head, row);
    }
    constexpr int64_t kBytes = sizeof(float);
    softmax_({scores, mask, rows, score_stride_ * kBytes, code_.mask ? code_.mask->strides[2] * kBytes : 0});
    kernels.result.run(0, 1,
                       {.a = scores,
                        .b = input(bindings, code_.v_place) + code_.v.offset(batch, code_.shared_head(head), 0),
                        .c = static_cast<float*>(bindings.outputs[0]) + code_.y.offset(batch, head, row)});
  }

  AttentionCode code_;
  int workers_;
  int64_t block_, blocks_, score_stride_;
  SoftmaxCode softmax_;
  std::vector<BlockKernels> kernels_;  // for whole blocks, and for the last one when it is smaller
  size_t score_floats_ = 0, worker_floats_ = 0;
};

/// Queries of a block: as many as the cache allows, but enough blocks for all workers, of even sizes.
int64_t block_rows(const HeadTensor& q, int64_t keys, int64_t kilobytes, int workers) {
  const int64_t most =
      std::clamp<int64_t>(kilobytes * 1024 / 4 / std::max<int64_t>(keys, 1), 8, q.rows < 8 ? 8 : q.rows);
  const int64_t wanted = (2 * workers + q.batch * q.heads - 1) / (q.batch * q.heads);
  const int64_t blocks = std::max((q.rows + most - 1) / most, std::min(wanted, (q.rows + 15) / 16));
  return (q.rows + blocks - 1) / blocks;
}

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  const AttentionCode code(attrs, shapes);
  const int64_t block = block_rows(code.q, code.k.rows, bounded(attrs, "kilobytes", 1, 1 << 20), info.workers);
  return std::make_shared<Attention>(code, block, info);
}

}  // namespace

const CpuTactic tactics::attention = {"attention", propose, compile, load};

}  // namespace hone::cpu
