// SPDX-License-Identifier: Apache-2.0
//
// Attention of the few queries of a token or two, with the Concats before it that put the token's keys and values behind those of a
// cache, where there are such: what is read for the attention is kept on the way.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>

#include "backends/cuda/attention/steps.h"
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "regions/attention_region.h"
#include "regions/cached_attention.h"

namespace hone::cuda {
namespace {

constexpr int64_t kMostRows = 16;  // queries that share a head of keys; more are matmuls
constexpr int64_t kRows = 8;       // of them in a block
constexpr int64_t kMostShared = 47 << 10;

struct FewQueriesTactic {
  int64_t warps = 8, loads = 4;  // of a block; of keys that a warp reads before it computes
  int64_t blocks = 1;            // that share the keys, a cluster
  static void fields(auto& self, auto& visit) {
    visit("warps", self.warps, 1, 16);
    visit("loads", self.loads, 1, 8);
    visit("blocks", self.blocks, 1, 8);
  }
};
constexpr std::array<FewQueriesTactic, 10> kForms{
    {{4, 4, 8}, {8, 4, 8}, {4, 4, 4}, {8, 4, 4}, {4, 4, 2}, {8, 4, 2}, {16, 4, 1}, {8, 4, 1}, {8, 8, 1}, {4, 8, 1}}};

/// Whether the registers of a multiprocessor suffice for a block: rows of queries and results, keys and values on their way, the rest.
bool fits(const FewQueriesTactic& form, int64_t rows, int64_t depth, int64_t width) {
  constexpr int64_t kRegisters = 65536, kMostOfThread = 255, kRest = 48;
  const int64_t registers = 2 * rows * width + 8 * form.loads + kRest;
  return registers <= kMostOfThread && registers * 32 * form.warps <= kRegisters &&
         (form.warps + 1) * rows * (depth + 2) * 4 <= kMostShared;
}

struct FewQueriesParameters {
  static constexpr std::string_view kKernel = "few_queries";
  Reads q, k, v, new_k, new_v, mask;
  Writes out, kept_k, kept_v;
  Attention a;
  int32_t past = 0;
  static void fields(auto& self, auto& visit) {
    visit("q", self.q, "T");
    visit("k", self.k, "T");
    visit("v", self.v, "T");
    visit("new_k", self.new_k, "T");
    visit("new_v", self.new_v, "T");
    visit("mask", self.mask, "M");
    visit("out", self.out, "T");
    visit("kept_k", self.kept_k, "T");
    visit("kept_v", self.kept_v, "T");
    visit("a", self.a);
    visit("past", self.past);
  }
};

struct FewQueriesCode {
  GivenPlace q, k, v;
  Place mask;
  int64_t new_k = -1, new_v = -1;  // inputs behind a cache, where `k` and `v` are what was in it; -1: there is none
  int64_t keys = -1, values = -1;  // results that keep them, or -1
  int64_t warps = 8, rows = 1, blocks = 1;  // of a block
  double scale = 1;
  HeadOrder order = HeadOrder::heads_first;
  static void fields(auto& self, auto& visit) {
    GivenPlace::fields(self.q, visit, "q");
    GivenPlace::fields(self.k, visit, "k");
    GivenPlace::fields(self.v, visit, "v");
    visit("new_k", self.new_k, -1, 5);
    visit("new_v", self.new_v, -1, 5);
    Place::fields(self.mask, visit, "mask");
    visit("keys", self.keys, -1, 2);
    visit("values", self.values, -1, 2);
    visit("warps", self.warps, 1, 16);
    visit("rows", self.rows, 1, kRows);
    visit("blocks", self.blocks, 1, 8);
    visit("scale", self.scale);
    visit("layout", self.order);
  }
  bool cached() const { return new_k >= 0; }
};

/// The place of an input, or nowhere.
Place input_place(int64_t index) { return index < 0 ? Place() : Place{PlaceKind::input, index}; }

/// The attention of a region, and what stands before it.
struct FewQueriesRegion {
  const Node* node = nullptr;
  FewQueriesCode code;
  std::vector<Tensor> constants;
  std::string refusal;
};

std::optional<FewQueriesRegion> read_region(const Problem& problem) {
  if (std::optional<CachedAttentionRegion> cached = read_cached_attention(problem)) {
    FewQueriesRegion region{cached->node, {}, std::move(cached->constants), std::move(cached->refusal)};
    if (!region.refusal.empty()) return region;
    using Code = CachedAttentionCode;
    const auto place = [&](size_t i) { return place_of(cached->code.operands[i]); };
    region.code.q = place(Code::kQueries);
    region.code.k = place(Code::kPastKeys), region.code.new_k = place(Code::kNewKeys).index;
    region.code.v = place(Code::kPastValues), region.code.new_v = place(Code::kNewValues).index;
    if (region.node->input(3) != nullptr) region.code.mask = place(Code::kMask);
    region.code.keys = cached->code.keys, region.code.values = cached->code.values;
    region.code.scale = cached->code.scale;
    return region;
  }
  std::optional<AttentionRegion> plain = read_attention_region(problem);
  if (!plain || problem.only() == nullptr) return std::nullopt;
  FewQueriesRegion region{plain->node, {}, std::move(plain->constants), {}};
  Place* const places[] = {&region.code.q, &region.code.k, &region.code.v, &region.code.mask};
  for (size_t i = 0; i < plain->code.operands.size(); ++i) *places[i] = place_of(plain->code.operands[i]);
  region.code.scale = plain->scale;
  region.code.order = plain->code.order;
  return region;
}

int64_t rows_of(const Node& node) {
  const Dims q = node.input(0)->type.shape.values(), k = node.input(1)->type.shape.values();
  const size_t head = node.attrs.text("layout") == "bhsd" ? 1 : 2;
  return q[head] / std::max<int64_t>(k[head], 1) * q[3 - head];
}

std::string reason_against(const Problem& problem, const FewQueriesRegion& region) {
  if (!region.refusal.empty()) return region.refusal;
  const Node& node = *region.node;
  if (std::string reason = operands_refusal(problem, node); !reason.empty()) return reason;
  const DType dtype = node.input(0)->type.dtype;
  const int64_t depth = node.input(0)->type.shape[3].value(), lanes = depth / vector_width(dtype);
  if (node.input(2)->type.shape[3] != Dim(depth)) return "keys and values are of different depths";
  if (depth % vector_width(dtype) != 0 || lanes > 32 || !std::has_single_bit(static_cast<uint64_t>(lanes)))
    return fmt::format("a depth of {}", depth);
  if (rows_of(node) > kMostRows) return "so many queries are matmuls";
  return {};
}

/// Best guess first: few heads of keys want many blocks.
std::vector<FewQueriesTactic> forms_for(const Problem& problem, const Node& node) {
  const Dims k = node.input(1)->type.shape.values();
  const int64_t heads = k[0] * k[node.attrs.text("layout") == "bhsd" ? 1 : 2], wanted = problem.device.workers / 2;
  std::vector<FewQueriesTactic> forms(kForms.begin(), kForms.end());
  if (!has_clusters(problem.device.architecture))
    std::erase_if(forms, [](const FewQueriesTactic& form) { return form.blocks > 1; });
  std::ranges::stable_sort(forms, {}, [&](const FewQueriesTactic& form) {
    return std::abs(std::log2(static_cast<double>(std::max<int64_t>(heads * form.blocks, 1)) /
                              static_cast<double>(std::max<int64_t>(wanted, 1))));
  });
  return forms;
}

/// What a kernel of the plan works on. Throws Error where it does not fit together.
AttentionSizes sizes_of(const FewQueriesCode& code, const LoadContext& context) {
  const std::vector<ConcreteType>& outputs = context.shapes.outputs;
  const size_t kept = (code.keys >= 0 ? 1U : 0U) + (code.values >= 0 ? 1U : 0U),
               result = attention_result(code.keys, code.values);
  HONE_CHECK(code.cached() == (code.new_v >= 0) && outputs.size() == kept + 1 && result <= kept &&
                 (code.keys != code.values || code.keys < 0) && (kept == 0 || code.cached()) &&
                 std::max(code.keys, code.values) <= static_cast<int64_t>(kept),
             "an attention of few queries in the plan has {} results", outputs.size());
  const auto all = [&](const Place& past, int64_t fresh) {
    return fresh < 0 ? context.dims_of(past)
                     : joined_tokens(context.dims_of(past), context.dims_of(input_place(fresh)));
  };
  AttentionSizes::Operands operands{context.dims_of(code.q), all(code.k, code.new_k), all(code.v, code.new_v),
                                    outputs[result].dims};
  if (code.mask.given()) operands.mask = context.dims_of(code.mask);
  for (const auto& [at, dims] : {std::pair{code.keys, &operands.k}, std::pair{code.values, &operands.v}})
    HONE_CHECK(at < 0 || outputs[static_cast<size_t>(at)].dims == *dims,
               "an attention of few queries in the plan keeps {} as another size", join_dims(*dims));
  AttentionSizes sizes(operands, code.order);
  constexpr int64_t kNumbers = int64_t{1} << 31, kBlocks = 65536;
  HONE_CHECK(sizes.q.batch < kBlocks && sizes.k.heads < kBlocks && sizes.q.columns == sizes.v.columns &&
                 sizes.k.rows < kNumbers - (1 << 16) && sizes.queries_per_key() * sizes.q.rows < kNumbers - kRows,
             "an attention in the plan has {} x {} x {} queries for {} keys", sizes.q.batch, sizes.q.heads,
             sizes.q.rows, sizes.k.rows);
  return sizes;
}

/// Keys that were in the cache; all of them where there is none.
int64_t past_of(const FewQueriesCode& code, const AttentionSizes& sizes, const LoadContext& context) {
  if (!code.cached()) return sizes.k.rows;
  const int64_t past = context.dims_of(code.k)[2];
  HONE_CHECK(context.dims_of(code.v)[2] == past, "an attention in the plan has other numbers of keys and values");
  return past;
}

struct FewQueriesFamily {
  static constexpr std::string_view kName = "few_queries";
  static constexpr int kVersion = 1;
  using Params = FewQueriesTactic;
  using Code = FewQueriesCode;

  static void propose(const Problem& problem, Candidates& out) {
    const std::optional<FewQueriesRegion> region = read_region(problem);
    if (!region) return;
    if (std::string reason = reason_against(problem, *region); !reason.empty())
      return out.refuse(kName, std::move(reason));
    const TensorType& q = region->node->input(0)->type;
    const int64_t rows = std::min(rows_of(*region->node), kRows);
    for (const FewQueriesTactic& form : forms_for(problem, *region->node))
      if (fits(form, rows, q.shape[3].value(), vector_width(q.dtype)))
        out.offer({"cuda", std::string(kName), write_fields(form),
                   std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
                   std::vector<Layout>(problem.region.outputs().size(), Layout::linear)});
  }

  static Built<Code> generate(const Problem& problem, const std::string& architecture, const Params& params,
                              const Tactic&) {
    FewQueriesRegion region = *read_region(problem);
    const Node& node = *region.node;
    const DType dtype = node.input(0)->type.dtype;
    const Value* mask = node.input(3);
    Built<Code> built{region.code, {}, std::move(region.constants)};
    Code& code = built.code;
    code.warps = params.warps;
    code.rows = std::min(rows_of(node), kRows);
    code.blocks = has_clusters(architecture) ? params.blocks : 1;
    built.source = fmt::format(
        "typedef {} T;\ntypedef {} M;\n#define V {}\n#define DEPTH {}\n#define HAS_MASK {:d}\n#define HAS_CACHE {:d}\n"
        "#define KEEPS_KEYS {:d}\n#define KEEPS_VALUES {:d}\n#define ROWS {}\n#define WARPS {}\n#define LOADS "
        "{}\n#define BLOCKS {}\n",
        type_name(dtype), type_name(mask == nullptr ? dtype : mask->type.dtype), vector_width(dtype),
        node.input(0)->type.shape[3].value(), mask != nullptr, code.cached(), code.keys >= 0, code.values >= 0,
        code.rows, params.warps, params.loads, code.blocks);
    built.source += declare<FewQueriesParameters>() + kernels::few_queries;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const AttentionSizes sizes = sizes_of(code, context);
    const FewQueriesParameters parameters{.q = code.q.pointer(),
                                          .k = code.k.pointer(),
                                          .v = code.v.pointer(),
                                          .new_k = input_place(code.new_k).pointer(),
                                          .new_v = input_place(code.new_v).pointer(),
                                          .mask = code.mask.pointer(),
                                          .out = output(static_cast<int64_t>(attention_result(code.keys, code.values))),
                                          .kept_k = result_pointer(code.keys),
                                          .kept_v = result_pointer(code.values),
                                          .a = attention_of(sizes, code.scale),
                                          .past = static_cast<int32_t>(past_of(code, sizes, context))};
    return single(context, launch_of(*context.module, parameters,
                                     {{blocks_of(sizes.queries_per_key() * sizes.q.rows, code.rows) * code.blocks,
                                       sizes.k.heads, sizes.q.batch},
                                      static_cast<unsigned>(32 * code.warps)}));
  }
};

}  // namespace

const CudaTactic tactics::few_queries = describe<FewQueriesFamily>();

}  // namespace hone::cuda
