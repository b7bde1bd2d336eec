// SPDX-License-Identifier: Apache-2.0
//
// ScaledDotProductAttention as one kernel that never writes the scores: on tensor cores where operands are f16 or bf16, with one
// to eight warps to a block (few heads want many blocks), or the warps of a block on the same queries; else, at any depth, in plain
// f32.
#include <algorithm>
#include <optional>

#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/old.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

constexpr int64_t kSplitKeys = 32,
                  kSharedBytes = (48 << 10) - 1024;  // a warp's tile; what all tiles may take on every card
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

struct AttentionArgument {
  int32_t queries, keys, heads, key_heads;
  int64_t q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row;
  int64_t m_batch, m_head, m_row, m_column;
  float scale;
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

void propose(const Problem& problem, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || !node->is(ops::scaled_dot_product_attention)) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse("attention", std::move(reason));
  const auto offer = [&](int64_t warps, bool split = false) {
    out.offer({"cuda",
               "attention",
               {{"warps", warps}, {"split", int64_t{split}}},
               std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
               {Layout::linear}});
  };
  if (!on_tensor_cores(*node)) return offer(0);
  for (const int64_t warps : {2, 4, 8, 1}) offer(warps);
  const Depths depths(*node);
  for (const int64_t warps : {4, 2})
    if (warps * kSplitKeys * (depths.keys + depths.values + 16) * 2 <= kSharedBytes) offer(warps, true);
}

/// Enough of them to hide what each waits for; long rows of results need the registers more.
int64_t blocks_of_an_sm(const Depths& depths, int64_t warps) {
  return std::max<int64_t>((depths.keys + depths.values <= 128 ? 16 : 8) / warps, 1);
}

Generated generate(const Problem& problem, const std::string&, const Tactic& tactic) {
  const Node& node = *problem.only();
  Generated result;
  const int64_t warps = tactic.params.integer("warps");
  const int64_t split = tactic.params.integer("split");
  const Depths depths(node);
  const Tile tile = warps == 0 ? *plain_tile(depths) : Tile{split != 0 ? 16 : 16 * warps, 0};
  result.attrs = {{"warps", warps},
                  {"queries", tile.queries},
                  {"scale", node.attrs.real("scale")},
                  {"layout", node.attrs.text("layout")}};
  const char* names[] = {"q", "k", "v", "mask"};
  for (size_t i = 0; i < 4; ++i) set_place(result, problem, names[i], node.input(i));
  const Value* mask = node.input(3);
  const DType dtype = node.output()->type.dtype;
  result.source = fmt::format(
      "typedef {} T;\ntypedef {} M;\n#define DEPTH {}\n#define VALUE_DEPTH {}\n#define HAS_MASK {}\n", type_name(dtype),
      type_name(mask == nullptr ? dtype : mask->type.dtype), depths.keys, depths.values, mask != nullptr);
  if (warps == 0) result.source += fmt::format("#define QUERIES {}\n#define KEYS {}\n", tile.queries, tile.keys);
  else
    result.source +=
        fmt::format("#define WARPS {}\n#define BLOCKS {}\n#define SPLIT_KEYS {}\n#define MMA_TYPE \"{}\"\n", warps,
                    blocks_of_an_sm(depths, warps), split, type_name(dtype));
  result.source += warps > 0 ? kernels::attention_mma : kernels::attention;
  return result;
}

struct Strides {
  int64_t batch, head, row;
};
Strides strides_of_heads(const Dims& dims, bool by_head) {
  const Dims strides = strides_of(dims);
  return by_head ? Strides{strides[0], strides[1], strides[2]} : Strides{strides[0], strides[2], strides[1]};
}

std::shared_ptr<const CudaKernel> load(const OldContext& context) {
  const Attrs& attrs = context.attrs;
  const bool by_head = attrs.text("layout") == "bhsd";
  const Dims q = dims_of(context, "q"), k = dims_of(context, "k"), v = dims_of(context, "v"),
             out = context.shapes.outputs.at(0).dims;
  for (const Dims* dims : {&q, &k, &v})
    HONE_CHECK(dims->size() == 4 && elements(*dims) > 0, "an attention in the plan reads {}", join_dims(*dims));
  const size_t head = by_head ? 1 : 2, row = by_head ? 2 : 1;
  HONE_CHECK(out.size() == 4 && k[head] > 0 && q[head] % k[head] == 0 && q[0] < 65536 && q[head] < 65536,
             "an attention in the plan has {} heads", q[head]);
  const Dims expected{q[0], q[1], q[2], v[3]};
  HONE_CHECK(k[0] == q[0] && v[0] == q[0] && k[3] == q[3] && v[head] == k[head] && v[row] == k[row] &&
                 out == expected && q[row] < int64_t{1} << 31 && k[row] < int64_t{1} << 31,
             "an attention in the plan has operands that do not fit together");
  AttentionArgument a{};
  a.queries = static_cast<int32_t>(q[row]);
  a.keys = static_cast<int32_t>(k[row]);
  a.heads = static_cast<int32_t>(q[head]);
  a.key_heads = static_cast<int32_t>(k[head]);
  const Strides sq = strides_of_heads(q, by_head), sk = strides_of_heads(k, by_head), sv = strides_of_heads(v, by_head),
                so = strides_of_heads(out, by_head);
  a.q_batch = sq.batch, a.q_head = sq.head, a.q_row = sq.row;
  a.k_batch = sk.batch, a.k_head = sk.head, a.k_row = sk.row;
  a.v_batch = sv.batch, a.v_head = sv.head, a.v_row = sv.row;
  a.o_batch = so.batch, a.o_head = so.head, a.o_row = so.row;
  a.scale = static_cast<float>(attrs.real("scale"));
  const int64_t mask_place = attrs.integer("mask");
  if (mask_place != kNoPlace) {
    Dims mask = dims_of(context, "mask");
    HONE_CHECK(mask.size() <= 4, "an attention in the plan has a mask {}", join_dims(mask));
    mask.insert(mask.begin(), 4 - mask.size(), 1);
    const Dims scores{q[0], q[head], q[row], k[row]};
    for (size_t i = 0; i < 4; ++i)
      HONE_CHECK(mask[i] == 1 || mask[i] == scores[i], "an attention in the plan has a mask {} for scores {}",
                 join_dims(mask), join_dims(scores));
    const Dims strides = strides_of(mask);
    const auto step = [&](size_t axis) { return mask[axis] == 1 ? 0 : strides[axis]; };
    a.m_batch = step(0), a.m_head = step(1), a.m_row = step(2), a.m_column = step(3);
    HONE_CHECK(mask[2] * mask[3] < int64_t{1} << 31, "an attention's mask has {} x {} entries for a head", mask[2],
               mask[3]);
  }
  const int64_t warps = attrs.integer("warps");
  const int64_t queries = attrs.integer("queries");
  HONE_CHECK(warps >= 0 && warps <= 8 && queries > 0 && queries <= 128,
             "an attention in the plan has {} warps for {} queries", warps, queries);
  GridLaunch launch{.function = context.module->function("attention"),
                    .grid = {blocks_of(a.queries, queries), a.heads, q[0]},
                    .block = static_cast<unsigned>(warps > 0 ? 32 * warps : 128)};
  for (const char* name : {"q", "k", "v", "mask"}) add_place(launch.arguments, attrs.integer(name));
  launch.arguments.output(0).value(a);
  return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
}

}  // namespace

const CudaTactic tactics::attention = describe_old<generate, load>("attention", propose);

}  // namespace hone::cuda
