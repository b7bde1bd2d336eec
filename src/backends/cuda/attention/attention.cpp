// SPDX-License-Identifier: Apache-2.0
//
// ScaledDotProductAttention as one kernel that never writes the scores: on tensor cores where operands are f16 or bf16, with one
// to eight warps to a block (few heads want many blocks), or the warps of a block on the same queries; else, at any depth, in plain
// f32. What rounds the result does so before it is stored.
#include <algorithm>
#include <optional>

#include "backends/cuda/attention/steps.h"
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/rounding.h"
#include "backends/cuda/support/source_text.h"
#include "regions/attention_region.h"

namespace hone::cuda {
namespace {

constexpr int64_t kSplitKeys = 32,
                  kSharedBytes = (48 << 10) - 1024;  // a warp's tile; what all tiles may take on every GPU
constexpr int64_t kMaxMmaDepth = 128;                // what a warp's registers hold

struct Depths {
  explicit Depths(const AttentionRegion& region) : keys(region.key_depth()), values(region.value_depth()) {}
  int64_t keys, values;
};

/// What a block of the plain kernel works on.
struct Tile {
  int64_t queries, keys;
};
std::optional<Tile> plain_tile(const Depths& depths) {
  for (const Tile& tile : {Tile{32, 32}, Tile{32, 16}, Tile{16, 16}, Tile{16, 8}}) {
    const int64_t floats = (tile.queries + tile.keys) * (depths.keys + 1) + tile.keys * (depths.values + 7) +
                           tile.queries * (tile.keys + 1);
    if (floats * 4 <= kSharedBytes) return tile;
  }
  return std::nullopt;
}

struct AttentionParameters {
  static constexpr std::string_view kKernel = "attention";
  Reads q, k, v, mask;
  Writes out;
  Attention a;
  static void fields(auto& self, auto& visit) {
    visit("q", self.q, "T");
    visit("k", self.k, "T");
    visit("v", self.v, "T");
    visit("mask", self.mask, "M");
    visit("out", self.out, "Result");
    visit("a", self.a);
  }
};

struct AttentionTactic {
  int64_t warps = 0;   // of a block on tensor cores; 0: the plain kernel
  bool split = false;  // they share the keys, not the queries
  static void fields(auto& self, auto& visit) {
    visit("warps", self.warps, 0, 8);
    visit("split", self.split);
  }
};

struct PlacedAttention {
  GivenPlace q, k, v;
  Place mask;
  int64_t warps = 0, queries = 16;  // of a block
  double scale = 1;
  HeadOrder order = HeadOrder::heads_first;
  static void fields(auto& self, auto& visit) {
    GivenPlace::fields(self.q, visit, "q");
    GivenPlace::fields(self.k, visit, "k");
    GivenPlace::fields(self.v, visit, "v");
    Place::fields(self.mask, visit, "mask");
    visit("warps", self.warps, 0, 8);
    visit("queries", self.queries, 1, 128);
    visit("scale", self.scale);
    visit("layout", self.order);
  }
};

std::string reason_against(const Problem& problem, const AttentionRegion& region) {
  if (std::string reason = operands_refusal(problem, *region.node); !reason.empty()) return reason;
  if (const Depths depths(region); !plain_tile(depths))
    return fmt::format("depths are {} and {}", depths.keys, depths.values);
  return {};
}

bool on_tensor_cores(const AttentionRegion& region) {
  const Depths depths(region);
  return region.node->output()->type.dtype != DType::f32 && depths.keys % 16 == 0 && depths.values % 16 == 0 &&
         std::max(depths.keys, depths.values) <= kMaxMmaDepth;
}

/// Enough of them to hide what each waits for; long rows of results need the registers more.
int64_t blocks_of_an_sm(const Depths& depths, int64_t warps) {
  return std::max<int64_t>((depths.keys + depths.values <= 128 ? 16 : 8) / warps, 1);
}

/// Beyond what AttentionSizes says: what grids and 32-bit numbers hold.
void require_launchable(const AttentionSizes& sizes) {
  constexpr int64_t kRows = int64_t{1} << 31, kBlocks = 65536;
  HONE_CHECK(sizes.q.batch < kBlocks && sizes.q.heads < kBlocks && sizes.q.rows < kRows && sizes.k.rows < kRows,
             "an attention in the plan has {} x {} x {} queries for {} keys", sizes.q.batch, sizes.q.heads,
             sizes.q.rows, sizes.k.rows);
  if (sizes.mask)
    HONE_CHECK(sizes.mask->dims[2] * sizes.mask->dims[3] < kRows, "an attention's mask has {} x {} entries for a head",
               sizes.mask->dims[2], sizes.mask->dims[3]);
}

struct AttentionFamily {
  static constexpr std::string_view kName = "attention";
  static constexpr int kVersion = 6;
  using Params = AttentionTactic;
  using Code = PlacedAttention;

  static void propose(const Problem& problem, Candidates& out) {
    const std::optional<AttentionRegion> region = read_attention_region(problem);
    if (!region || read_rounded(problem).node == nullptr) return;
    if (std::string reason = reason_against(problem, *region); !reason.empty())
      return out.refuse(kName, std::move(reason));
    const auto offer = [&](int64_t warps, bool split = false) {
      out.offer({"cuda",
                 std::string(kName),
                 write_fields(Params{.warps = warps, .split = split}),
                 std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
                 {Layout::linear}});
    };
    if (!on_tensor_cores(*region)) return offer(0);
    for (const int64_t warps : {2, 4, 8, 1}) offer(warps);
    const Depths depths(*region);
    for (const int64_t warps : {4, 2})
      if (warps * kSplitKeys * (depths.keys + depths.values + 16) * 2 <= kSharedBytes) offer(warps, true);
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params& params, const Tactic&) {
    AttentionRegion region = *read_attention_region(problem);
    const Depths depths(region);
    const Tile tile =
        params.warps == 0 ? *plain_tile(depths) : Tile{.queries = params.split ? 16 : 16 * params.warps, .keys = 0};
    Built<Code> built;
    Code& code = built.code;
    Place* const places[] = {&code.q, &code.k, &code.v, &code.mask};
    const std::vector<OperandCode>& operands = region.code.operands;
    for (size_t i = 0; i < operands.size(); ++i) *places[i] = place_of(operands[i]);
    built.constants = std::move(region.constants);
    code.warps = params.warps;
    code.queries = tile.queries;
    code.scale = region.scale;
    code.order = region.code.order;
    const Value* mask = region.mask();
    const DType dtype = region.node->output()->type.dtype;
    built.source =
        fmt::format("typedef {} T;\ntypedef {} M;\n#define DEPTH {}\n#define VALUE_DEPTH {}\n#define HAS_MASK {}\n",
                    type_name(dtype), type_name(mask == nullptr ? dtype : mask->type.dtype), depths.keys, depths.values,
                    mask != nullptr);
    if (params.warps == 0)
      built.source += fmt::format("#define QUERIES {}\n#define KEYS {}\n", tile.queries, tile.keys);
    else
      built.source +=
          fmt::format("#define WARPS {}\n#define BLOCKS {}\n#define SPLIT_KEYS {:d}\n#define MMA_TYPE \"{}\"\n",
                      params.warps, blocks_of_an_sm(depths, params.warps), params.split, type_name(dtype));
    built.source += rounding_text(read_rounded(problem)) + declare<AttentionParameters>();
    built.source += params.warps > 0 ? kernels::attention_mma : kernels::attention;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    HONE_CHECK(context.shapes.outputs.size() == 1, "an attention in the plan has {} results",
               context.shapes.outputs.size());
    AttentionSizes::Operands operands{context.dims_of(code.q), context.dims_of(code.k), context.dims_of(code.v),
                                      context.shapes.outputs[0].dims};
    if (code.mask.given()) operands.mask = context.dims_of(code.mask);
    const AttentionSizes sizes(operands, code.order);
    require_launchable(sizes);
    const AttentionParameters parameters{.q = code.q.pointer(),
                                         .k = code.k.pointer(),
                                         .v = code.v.pointer(),
                                         .mask = code.mask.pointer(),
                                         .out = output(0),
                                         .a = attention_of(sizes, code.scale)};
    return single(context, launch_of(*context.module, parameters,
                                     {{blocks_of(sizes.q.rows, code.queries), sizes.q.heads, sizes.q.batch},
                                      static_cast<unsigned>(code.warps > 0 ? 32 * code.warps : 128)}));
  }
};

}  // namespace

const CudaTactic tactics::attention = describe<AttentionFamily>();

}  // namespace hone::cuda
