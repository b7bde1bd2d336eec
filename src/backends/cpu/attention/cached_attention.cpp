// SPDX-License-Identifier: Apache-2.0
//
// A token's attention to its cache, which goes on to the next token: Concat of keys, Concat of values and attention as one kernel that
// reads the cache once. A worker takes heads of keys with all queries that share them.
#include "regions/cached_attention.h"
#include "backends/cpu/attention/cached_attention_kernel.h"
#include "backends/cpu/family.h"

namespace hone::cpu {
namespace {

using Code = CachedAttentionCode;
constexpr int64_t kMostQueries = 32;  // of a head of keys; more are matmuls

class CachedAttention final : public CpuKernel {
 public:
  CachedAttention(CachedAttentionLayer layer, const CpuInfo& info)
      : layer_(std::move(layer)),
        kernel_(cached_attention_kernel(info.isa)),
        workers_(info.workers),
        scratch_(cached_attention_scratch(layer_.k.columns, layer_.v.columns)) {}

  size_t workspace_bytes() const override { return static_cast<size_t>(workers_ * scratch_) * sizeof(float); }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(layer_.k.batch * layer_.k.heads, worker, workers);
    CachedAttentionArgs args = shared_args();
    args.scratch = static_cast<float*>(bindings.workspace) + worker * scratch_;
    for (int64_t item = share.begin; item < share.end; ++item) {
      give(args, item / layer_.k.heads, item % layer_.k.heads, bindings);
      kernel_(args);
    }
  }

 private:
  CachedAttentionArgs shared_args() const {
    CachedAttentionArgs args;
    args.heads = layer_.queries_per_key(), args.queries = layer_.q.rows;
    args.q_head = layer_.q.head_stride, args.q_row = layer_.q.row_stride;
    args.y_head = layer_.y.head_stride, args.y_row = layer_.y.row_stride;
    args.depth = layer_.k.columns, args.value_depth = layer_.v.columns;
    args.scale = layer_.code.scale;
    if (layer_.mask) {
      args.mask_head = layer_.mask->strides[1], args.mask_row = layer_.mask->strides[2];
      args.mask_key = layer_.mask->strides[3];
    }
    return args;
  }

  void give(CachedAttentionArgs& args, int64_t batch, int64_t key_head, const Bindings& bindings) const {
    const auto operand = [&](size_t i) { return static_cast<const float*>(layer_.code.operands[i].find(bindings)); };
    const int64_t head = key_head * layer_.queries_per_key();
    args.q = operand(Code::kQueries) + layer_.q.offset(batch, head, 0);
    args.y = static_cast<float*>(bindings.outputs[layer_.result]) + layer_.y.offset(batch, head, 0);
    if (layer_.mask) args.mask = operand(Code::kMask) + layer_.mask->offset(batch, head, 0);
    const auto rows = [&](std::array<CachedRows, 2>& parts, const HeadTensor& all, size_t first, int64_t kept) {
      const int64_t sizes[] = {layer_.past, all.rows - layer_.past}, which = batch * all.heads + key_head;
      float* to =
          kept < 0 ? nullptr
                   : static_cast<float*>(bindings.outputs[static_cast<size_t>(kept)]) + all.offset(batch, key_head, 0);
      for (size_t i = 0; i < 2; ++i)
        parts[i] = {operand(first + i) + which * sizes[i] * all.columns,
                    to == nullptr ? nullptr : to + (i == 0 ? 0 : layer_.past * all.columns), sizes[i]};
    };
    rows(args.keys, layer_.k, Code::kPastKeys, layer_.code.keys);
    rows(args.values, layer_.v, Code::kPastValues, layer_.code.values);
  }

  CachedAttentionLayer layer_;
  CachedAttentionKernel kernel_;
  int64_t workers_, scratch_;
};

struct CachedAttentionFamily {
  static constexpr std::string_view kName = "cached_attention";
  static constexpr int kVersion = 1;
  static constexpr Cost kCost = {.arithmetic = 4, .operands = 2};
  using Params = NoParams;
  using Code = CachedAttentionCode;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const std::optional<CachedAttentionRegion> region = read_cached_attention(problem);
    if (!region) return;
    if (!region->refusal.empty()) return out.refuse(kName, region->refusal);
    for (const Value* value : region->node->inputs)
      if (value != nullptr && value->type.dtype != DType::f32)
        return out.refuse(kName, fmt::format("operand is {}, not f32", name_of(value->type.dtype)));
    const Dims q = region->node->input(0)->type.shape.values(), k = region->node->input(1)->type.shape.values();
    if (q[2] * q[1] / k[1] > kMostQueries) return out.refuse(kName, "so many queries are matmuls");
    if (k[0] * k[1] < info.workers) return out.refuse(kName, "fewer heads of keys than workers");
    out.offer({"cpu",
               std::string(kName),
               {},
               std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
               std::vector<Layout>(problem.region.outputs().size(), Layout::linear)});
  }
  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    CachedAttentionRegion region = *read_cached_attention(problem);
    return {std::move(region.code), std::move(region.constants)};
  }
  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes&, const CpuInfo&) {
    return operand_constants(code.operands);
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    return std::make_shared<CachedAttention>(CachedAttentionLayer(code, shapes), info);
  }
};

}  // namespace

const CpuTactic tactics::cached_attention = describe<CachedAttentionFamily>();

}  // namespace hone::cpu
