// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale q kT + mask) v for blocks of queries: the scores of one block of one head stay in the worker's own cache, so
// the matrix of all scores never exists. Work items are (image, head, block); workers share nothing.
#include <algorithm>

#include "backends/cpu/jit/gemm_kernel.h"
#include "backends/cpu/tactics/convolution.h"
#include "backends/cpu/tactics/softmax_code.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kScoreKilobytes[] = {
    256, 64};  // of a block: half of a common L2, and what leaves room for keys and values

std::string reason_against(const Problem& problem, const Node& node) {
  if (problem.device.architecture == "scalar") return "needs AVX2";
  if (problem.only() == nullptr) return "more follows in the region";
  for (const Value* operand : node.inputs) {
    if (operand == nullptr) continue;
    if (operand->type.dtype != DType::f32) return fmt::format("operand is {}, not f32", name_of(operand->type.dtype));
    if (operand->type.shape.elements() == Dim(0)) return "empty operands";
  }
  for (size_t i = 0; i < 3; ++i)
    if (input_index(problem.region, node.input(i)) < 0) return "queries, keys or values are constant";
  return {};
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
  for (const auto& [name, index] : {std::pair{"q", 0}, std::pair{"k", 1}, std::pair{"v", 2}})
    attrs.set(name, int64_t{input_index(problem.region, node->input(static_cast<size_t>(index)))});
  attrs.set("scale", node->attrs.real("scale"));
  attrs.set("layout", node->attrs.text("layout"));
  if (const Value* mask = node->input(3); mask != nullptr) {
    attrs.set("mask", int64_t{input_index(problem.region, mask)});  // -1: the kernel's constant
    if (mask->is_constant()) {
      attrs.set("mask_dims", mask->constant->dims());
      compiled.constants.push_back(*mask->constant);
    }
  }
  compiled.code = encode_code("attention", attrs);
  return compiled;
}

/// Sizes and strides (in elements) of a [B, H, S, D] operand in either layout.
struct HeadTensor {
  int64_t batch, heads, rows, columns, batch_stride, head_stride, row_stride;
  HeadTensor(const Dims& d, bool heads_first) {
    HONE_CHECK(d.size() == 4, "attention in the plan has an operand of rank {}", d.size());
    batch = d[0], heads = d[heads_first ? 1 : 2], rows = d[heads_first ? 2 : 1], columns = d[3];
    batch_stride = d[1] * d[2] * d[3];
    head_stride = heads_first ? rows * columns : columns;
    row_stride = heads_first ? columns : heads * columns;
  }
  int64_t offset(int64_t b, int64_t h, int64_t row) const {
    return b * batch_stride + h * head_stride + row * row_stride;
  }
};

struct MaskStrides {
  int64_t batch = 0, head = 0, row = 0;
  MaskKind kind = MaskKind::none;
};

MaskStrides mask_strides(const Dims& dims, const Dims& scores) {
  HONE_CHECK(dims.size() <= 4, "attention in the plan has a mask of rank {}", dims.size());
  Dims aligned(4 - dims.size(), 1);
  aligned.insert(aligned.end(), dims.begin(), dims.end());
  for (size_t i = 0; i < 4; ++i)
    HONE_CHECK(aligned[i] == 1 || aligned[i] == scores[i], "attention in the plan has a mask of {} for scores of {}",
               join_dims(dims), join_dims(scores));
  const Dims strides = strides_of(aligned);
  const auto stride = [&](size_t axis) { return aligned[axis] == 1 ? 0 : strides[axis]; };
  return {stride(0), stride(1), stride(2), aligned[3] == scores[3] ? MaskKind::full : MaskKind::per_row};
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
  struct Operands {
    int q, k, v, mask;
    bool has_mask;
  };

  Attention(const Operands& operands, const HeadTensor& q, const HeadTensor& k, const HeadTensor& v,
            const HeadTensor& y, const MaskStrides& mask, float scale, int64_t block, const CpuInfo& info)
      : operands_(operands),
        q_(q),
        k_(k),
        v_(v),
        y_(y),
        mask_(mask),
        workers_(info.workers),
        block_(block),
        blocks_((q.rows + block - 1) / block),
        score_stride_((k.rows + 15) / 16 * 16),
        softmax_(k.rows, mask.kind, info.isa) {
    const GemmConfig tile = best_config(scores_shape(block_, score_stride_, scale, q, k), info.isa);
    const auto add = [&](int64_t rows) {
      kernels_.emplace_back(scores_shape(rows, score_stride_, scale, q, k), tile,
                            result_shape(rows, score_stride_, k, v, y), info.isa);
    };
    add(block_);
    if (const int64_t rest = q.rows % block_; rest != 0) add(rest);
    score_floats_ = static_cast<size_t>((block_ * score_stride_ + 15) / 16 * 16);
    worker_floats_ = score_floats_ + kernels_.front().scores.scratch_floats();
  }

  size_t workspace_bytes() const override { return worker_floats_ * sizeof(float) * static_cast<size_t>(workers_); }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(q_.batch * q_.heads * blocks_, worker, workers);
    float* scores = static_cast<float*>(bindings.workspace) + static_cast<size_t>(worker) * worker_floats_;
    float* packed_keys = scores + score_floats_;
    const float* packed_from = nullptr;
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t batch = item / blocks_ / q_.heads, head = item / blocks_ % q_.heads;
      const float* keys = input(bindings, operands_.k) + k_.offset(batch, shared_head(head), 0);
      if (keys != packed_from) kernels_.front().scores.pack(keys, packed_keys);
      packed_from = keys;
      run_block(batch, head, item % blocks_, scores, packed_keys, bindings);
    }
  }

 private:
  static const float* input(const Bindings& bindings, int index) {
    return static_cast<const float*>(bindings.inputs[static_cast<size_t>(index)]);
  }
  /// Several query heads may share one of keys and values.
  int64_t shared_head(int64_t head) const { return head / (q_.heads / k_.heads); }

  void run_block(int64_t batch, int64_t head, int64_t block, float* scores, float* packed_keys,
                 const Bindings& bindings) const {
    const int64_t row = block * block_, rows = std::min(block_, q_.rows - row);
    const BlockKernels& kernels = kernels_[rows == block_ ? 0 : 1];
    kernels.scores.run(0, 1,
                       {.a = input(bindings, operands_.q) + q_.offset(batch, head, row),
                        .b = input(bindings, operands_.k) + k_.offset(batch, shared_head(head), 0),
                        .c = scores,
                        .scratch = packed_keys,
                        .packed = true});
    const float* mask = nullptr;
    if (operands_.has_mask) {
      mask = operands_.mask >= 0 ? input(bindings, operands_.mask) : static_cast<const float*>(bindings.constants[0]);
      mask += batch * mask_.batch + head * mask_.head + row * mask_.row;
    }
    constexpr int64_t kBytes = sizeof(float);
    softmax_({scores, mask, rows, score_stride_ * kBytes, mask_.row * kBytes});
    kernels.result.run(0, 1,
                       {.a = scores,
                        .b = input(bindings, operands_.v) + v_.offset(batch, shared_head(head), 0),
                        .c = static_cast<float*>(bindings.outputs[0]) + y_.offset(batch, head, row)});
  }

  Operands operands_;
  HeadTensor q_, k_, v_, y_;
  MaskStrides mask_;
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
  const int64_t last = static_cast<int64_t>(shapes.inputs.size()) - 1;
  const auto index = [&](std::string_view name, int64_t low) {
    return static_cast<int>(bounded(attrs, name, low, last));
  };
  const bool has_mask = attrs.has("mask"), heads_first = attrs.text("layout") == "bhsd";
  const Attention::Operands operands{index("q", 0), index("k", 0), index("v", 0), has_mask ? index("mask", -1) : -1,
                                     has_mask};
  const auto tensor = [&](int i) { return HeadTensor(shapes.inputs[static_cast<size_t>(i)].dims, heads_first); };
  HONE_CHECK(shapes.outputs.size() == 1, "attention in the plan has {} results", shapes.outputs.size());
  const HeadTensor q = tensor(operands.q), k = tensor(operands.k), v = tensor(operands.v),
                   y(shapes.outputs[0].dims, heads_first);
  const bool valid = q.rows > 0 && k.rows > 0 && k.heads > 0 && q.batch > 0 && k.batch == q.batch &&
                     v.batch == q.batch && y.batch == q.batch && v.heads == k.heads && q.heads % k.heads == 0 &&
                     y.heads == q.heads && k.columns == q.columns && v.rows == k.rows && y.rows == q.rows &&
                     y.columns == v.columns;
  HONE_CHECK(valid, "attention in the plan has operands that do not fit together");
  MaskStrides mask;
  if (has_mask)
    mask = mask_strides(
        operands.mask >= 0 ? shapes.inputs[static_cast<size_t>(operands.mask)].dims : attrs.integers("mask_dims"),
        {q.batch, q.heads, q.rows, k.rows});
  const int64_t block = block_rows(q, k.rows, bounded(attrs, "kilobytes", 1, 1 << 20), info.workers);
  return std::make_shared<Attention>(operands, q, k, v, y, mask, static_cast<float>(attrs.real("scale")), block, info);
}

}  // namespace

const CpuTactic tactics::attention = {"attention", propose, compile, load};

}  // namespace hone::cpu
