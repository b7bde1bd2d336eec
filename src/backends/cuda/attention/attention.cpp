// SPDX-License-Identifier: Apache-2.0
//
// ScaledDotProductAttention as one kernel that never writes the scores: on tensor cores where operands are f16 or bf16, with one
// to eight warps to a block (few heads want many blocks), or the warps of a block on the same queries; else, at any depth, in plain
// f32.
#include <algorithm>
#include <array>
#include <optional>

#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

constexpr int64_t kSplitKeys = 32,
                  kSharedBytes = (48 << 10) - 1024;  // a warp's tile; what all tiles may take on every GPU
constexpr int64_t kMaxMmaDepth = 128;                // what a warp's registers hold

struct Depths {
  explicit Depths(const Node& node)
      : keys(node.input(0)->type.shape[3].value()), values(node.input(2)->type.shape[3].value()) {}
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

/// Steps in elements.
struct Attention {
  static constexpr std::string_view kName = "Attention";
  int32_t queries = 0, keys = 0, heads = 0, key_heads = 0;
  int64_t q_batch = 0, q_head = 0, q_row = 0, k_batch = 0, k_head = 0, k_row = 0;
  int64_t v_batch = 0, v_head = 0, v_row = 0, o_batch = 0, o_head = 0, o_row = 0;
  int64_t m_batch = 0, m_head = 0, m_row = 0, m_column = 0;
  float scale = 1;
  static void fields(auto& self, auto& visit) {
    visit("queries", self.queries);
    visit("keys", self.keys);
    visit("heads", self.heads);
    visit("key_heads", self.key_heads);
    visit("q_batch", self.q_batch);
    visit("q_head", self.q_head);
    visit("q_row", self.q_row);
    visit("k_batch", self.k_batch);
    visit("k_head", self.k_head);
    visit("k_row", self.k_row);
    visit("v_batch", self.v_batch);
    visit("v_head", self.v_head);
    visit("v_row", self.v_row);
    visit("o_batch", self.o_batch);
    visit("o_head", self.o_head);
    visit("o_row", self.o_row);
    visit("m_batch", self.m_batch);
    visit("m_head", self.m_head);
    visit("m_row", self.m_row);
    visit("m_column", self.m_column);
    visit("scale", self.scale);
  }
};

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
    visit("out", self.out, "T");
    visit("a", self.a);
  }
};

/// Axes of the operands: batch, head, row, depth; or batch, row, head, depth.
enum class HeadLayout { bhsd, bshd };
constexpr std::array<std::string_view, 2> field_names(HeadLayout) { return {"bhsd", "bshd"}; }

struct AttentionTactic {
  int64_t warps = 0;   // of a block on tensor cores; 0: the plain kernel
  bool split = false;  // they share the keys, not the queries
  static void fields(auto& self, auto& visit) {
    visit("warps", self.warps, 0, 8);
    visit("split", self.split);
  }
};

struct AttentionCode {
  GivenPlace q, k, v;
  Place mask;
  int64_t warps = 0, queries = 16;  // of a block
  double scale = 1;
  HeadLayout layout = HeadLayout::bhsd;
  static void fields(auto& self, auto& visit) {
    GivenPlace::fields(self.q, visit, "q");
    GivenPlace::fields(self.k, visit, "k");
    GivenPlace::fields(self.v, visit, "v");
    Place::fields(self.mask, visit, "mask");
    visit("warps", self.warps, 0, 8);
    visit("queries", self.queries, 1, 128);
    visit("scale", self.scale);
    visit("layout", self.layout);
  }
};

std::string reason_against(const Problem& problem, const Node& node) {
  for (size_t i = 0; i < 3; ++i) {
    const Value* operand = node.input(i);
    if (!is_kernel_float(operand->type.dtype) || operand->type.dtype != node.input(0)->type.dtype)
      return fmt::format("operand is {}", name_of(operand->type.dtype));
  }
  for (const Node* symbolic : problem.symbolic.nodes())
    for (size_t i = 0; i < 3 && symbolic->is(ops::scaled_dot_product_attention); ++i)
      if (!symbolic->input(i)->type.shape[3].is_constant()) return "the depth is not fixed";
  if (const Depths depths(node); !plain_tile(depths))
    return fmt::format("depths are {} and {}", depths.keys, depths.values);
  if (node.input(3) != nullptr && !is_kernel_float(node.input(3)->type.dtype)) return "the mask is no float";
  return {};
}

bool on_tensor_cores(const Node& node) {
  const Depths depths(node);
  return node.output()->type.dtype != DType::f32 && depths.keys % 16 == 0 && depths.values % 16 == 0 &&
         std::max(depths.keys, depths.values) <= kMaxMmaDepth;
}

/// Enough of them to hide what each waits for; long rows of results need the registers more.
int64_t blocks_of_an_sm(const Depths& depths, int64_t warps) {
  return std::max<int64_t>((depths.keys + depths.values <= 128 ? 16 : 8) / warps, 1);
}

struct Strides {
  int64_t batch, head, row;
};
Strides strides_of_heads(const Dims& dims, bool by_head) {
  const Dims strides = strides_of(dims);
  return by_head ? Strides{strides[0], strides[1], strides[2]} : Strides{strides[0], strides[2], strides[1]};
}

struct Operands {
  const Dims &q, &k, &v, &out;
};

void require_fitting(const Operands& operands, size_t head, size_t row) {
  const auto& [q, k, v, out] = operands;
  for (const Dims* dims : {&q, &k, &v})
    HONE_CHECK(dims->size() == 4 && elements(*dims) > 0, "an attention in the plan reads {}", join_dims(*dims));
  HONE_CHECK(out.size() == 4 && k[head] > 0 && q[head] % k[head] == 0 && q[0] < 65536 && q[head] < 65536,
             "an attention in the plan has {} heads", q[head]);
  const Dims expected{q[0], q[1], q[2], v[3]};
  HONE_CHECK(k[0] == q[0] && v[0] == q[0] && k[3] == q[3] && v[head] == k[head] && v[row] == k[row] &&
                 out == expected && q[row] < int64_t{1} << 31 && k[row] < int64_t{1} << 31,
             "an attention in the plan has operands that do not fit together");
}

/// `scores` are [batch, head, query, key].
void set_mask_steps(Attention& a, Dims mask, const Dims& scores) {
  HONE_CHECK(mask.size() <= 4, "an attention in the plan has a mask {}", join_dims(mask));
  mask.insert(mask.begin(), 4 - mask.size(), 1);
  for (size_t i = 0; i < 4; ++i)
    HONE_CHECK(mask[i] == 1 || mask[i] == scores[i], "an attention in the plan has a mask {} for scores {}",
               join_dims(mask), join_dims(scores));
  const Dims strides = strides_of(mask);
  const auto step = [&](size_t axis) { return mask[axis] == 1 ? 0 : strides[axis]; };
  a.m_batch = step(0), a.m_head = step(1), a.m_row = step(2), a.m_column = step(3);
  HONE_CHECK(mask[2] * mask[3] < int64_t{1} << 31, "an attention's mask has {} x {} entries for a head", mask[2],
             mask[3]);
}

Attention attention_of(const Operands& operands, bool by_head, double scale) {
  const auto& [q, k, v, out] = operands;
  const size_t head = by_head ? 1 : 2, row = by_head ? 2 : 1;
  Attention a{.queries = static_cast<int32_t>(q[row]),
              .keys = static_cast<int32_t>(k[row]),
              .heads = static_cast<int32_t>(q[head]),
              .key_heads = static_cast<int32_t>(k[head]),
              .scale = static_cast<float>(scale)};
  const Strides sq = strides_of_heads(q, by_head), sk = strides_of_heads(k, by_head), sv = strides_of_heads(v, by_head),
                so = strides_of_heads(out, by_head);
  a.q_batch = sq.batch, a.q_head = sq.head, a.q_row = sq.row;
  a.k_batch = sk.batch, a.k_head = sk.head, a.k_row = sk.row;
  a.v_batch = sv.batch, a.v_head = sv.head, a.v_row = sv.row;
  a.o_batch = so.batch, a.o_head = so.head, a.o_row = so.row;
  return a;
}

struct AttentionFamily {
  static constexpr std::string_view kName = "attention";
  static constexpr int kVersion = 2;
  using Params = AttentionTactic;
  using Code = AttentionCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !node->is(ops::scaled_dot_product_attention)) return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    const auto offer = [&](int64_t warps, bool split = false) {
      out.offer({"cuda",
                 std::string(kName),
                 write_fields(Params{.warps = warps, .split = split}),
                 std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
                 {Layout::linear}});
    };
    if (!on_tensor_cores(*node)) return offer(0);
    for (const int64_t warps : {2, 4, 8, 1}) offer(warps);
    const Depths depths(*node);
    for (const int64_t warps : {4, 2})
      if (warps * kSplitKeys * (depths.keys + depths.values + 16) * 2 <= kSharedBytes) offer(warps, true);
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params& params, const Tactic&) {
    const Node& node = *problem.only();
    const Depths depths(node);
    const Tile tile =
        params.warps == 0 ? *plain_tile(depths) : Tile{.queries = params.split ? 16 : 16 * params.warps, .keys = 0};
    Built<Code> built;
    Code& code = built.code;
    Place* const places[] = {&code.q, &code.k, &code.v, &code.mask};
    for (size_t i = 0; i < 4; ++i) *places[i] = place_of(problem, node.input(i), built.constants);
    code.warps = params.warps;
    code.queries = tile.queries;
    code.scale = node.attrs.real("scale");
    code.layout = node.attrs.text("layout") == "bhsd" ? HeadLayout::bhsd : HeadLayout::bshd;
    const Value* mask = node.input(3);
    const DType dtype = node.output()->type.dtype;
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
    built.source += declare<AttentionParameters>() + (params.warps > 0 ? kernels::attention_mma : kernels::attention);
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    HONE_CHECK(context.shapes.outputs.size() == 1, "an attention in the plan has {} results",
               context.shapes.outputs.size());
    const bool by_head = code.layout == HeadLayout::bhsd;
    const Operands operands{context.dims_of(code.q), context.dims_of(code.k), context.dims_of(code.v),
                            context.shapes.outputs[0].dims};
    require_fitting(operands, by_head ? 1 : 2, by_head ? 2 : 1);
    AttentionParameters parameters{.q = code.q.pointer(),
                                   .k = code.k.pointer(),
                                   .v = code.v.pointer(),
                                   .mask = code.mask.pointer(),
                                   .out = output(0),
                                   .a = attention_of(operands, by_head, code.scale)};
    Attention& a = parameters.a;
    if (code.mask.given()) set_mask_steps(a, context.dims_of(code.mask), {operands.q[0], a.heads, a.queries, a.keys});
    return single(context, launch_of(*context.module, parameters,
                                     {{blocks_of(a.queries, code.queries), a.heads, operands.q[0]},
                                      static_cast<unsigned>(code.warps > 0 ? 32 * code.warps : 128)}));
  }
};

}  // namespace

const CudaTactic tactics::attention = describe<AttentionFamily>();

}  // namespace hone::cuda
