// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft: attention. Every kind becomes ONNX's Attention, with projections, rotations and masks as nodes around it.
#include <cmath>

#include "ops/expansions.h"
#include "ops/movement.h"
#include "ops/support.h"

namespace hone {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

Value* number(ImportContext& context, int64_t value) { return context.constant(Tensor::scalar<int64_t>(value)); }
Value* size_of_axis(ImportContext& context, Value* x, int64_t axis) {
  return made(context, "Gather", {made(context, "Shape", {x}), number(context, axis)});
}
Value* counting(ImportContext& context, Value* count) {
  return made(context, "Range", {number(context, 0), count, number(context, 1)});
}
Value* unsqueezed(ImportContext& context, Value* x, std::vector<int64_t> axes) {
  return made(context, "Unsqueeze", {x, integer_constant(context, std::move(axes))});
}
double real_or(const Attrs& attrs, std::string_view name, double fallback) {
  return attrs.has(name) ? attrs.real(name) : fallback;
}

/// Ones and zeros as what is added to scores: 0 and the value that excludes.
Value* additive(ImportContext& context, Value* mask, DType dtype, double excluded) {
  Value* real = as_type(context, mask, dtype);
  return made(context, "Mul",
              {made(context, "Sub", {scalar_like(context, real, 1), real}), scalar_like(context, real, excluded)});
}

/// A mask of keys, by its rank: lengths per row of the batch, [batch, keys] or [batch, queries, keys]; as batch, 1, queries or 1, keys.
Value* key_mask(ImportContext& context, Value* mask, Value* keys, DType dtype, double excluded) {
  switch (mask->type.shape.rank()) {
    case 1: {
      Value* positions = counting(context, keys);
      Value* inside = made(context, "Less", {positions, unsqueezed(context, as_type(context, mask, DType::i64), {1})});
      return unsqueezed(context, additive(context, inside, dtype, excluded), {1, 2});
    }
    case 2: return unsqueezed(context, additive(context, mask, dtype, excluded), {1, 2});
    case 3: return unsqueezed(context, additive(context, mask, dtype, excluded), {1});
    default:
      throw Error(fmt::format("a mask of rank {} is not known here", mask->type.shape.rank()),
                  "give it as [batch], [batch, keys] or [batch, queries, keys]");
  }
}

Value* sum_of(ImportContext& context, Value* a, Value* b) { return a == nullptr ? b : plus(context, a, b); }

/// What all kinds share once queries, keys and values stand apart.
struct Parts {
  Value *q, *k, *v, *mask = nullptr, *past_key = nullptr, *past_value = nullptr;
  int64_t heads, key_heads;
  bool causal = false;
  int64_t window = -1;
};

const Node* attend(ImportContext& context, const Parts& p, size_t outputs) {
  Attrs attrs{{"q_num_heads", p.heads},
              {"kv_num_heads", p.key_heads},
              {"is_causal", int64_t{p.causal}},
              {"left_window_size", p.window}};
  const double scale = real_or(context.attrs(), "scale", 0), softcap = real_or(context.attrs(), "softcap", 0);
  if (scale != 0) attrs.set("scale", scale);
  if (softcap != 0) attrs.set("softcap", softcap);
  return context.add("Attention", {p.q, p.k, p.v, p.mask, p.past_key, p.past_value}, std::move(attrs), outputs);
}

int64_t heads_of(const Attrs& attrs, const char* name = "num_heads") {
  const int64_t heads = attrs.integer_or(name, 0);
  HONE_CHECK(heads > 0, "{} is {}", name, heads);
  return heads;
}

/// One tensor of queries, keys and values behind each other in the last axis, divided.
std::vector<Value*> divided(ImportContext& context, Value* joined, std::vector<int64_t> sizes) {
  const Node* node =
      context.add("Split", {joined, integer_constant(context, std::move(sizes))}, {{"axis", int64_t{-1}}}, 3);
  return {node->outputs[0], node->outputs[1], node->outputs[2]};
}

// ---- Rotation ----

/// Positions [batch, tokens] from an offset of one element, or as they are.
Value* positions_of(ImportContext& context, Value* ids, Value* x, int64_t token_axis) {
  if (ids->type.shape.rank() == 2) return ids;
  Value* row = made(context, "Add", {counting(context, size_of_axis(context, x, token_axis)), ids});
  Value* shape = made(context, "Concat",
                      {unsqueezed(context, size_of_axis(context, x, 0), {0}),
                       unsqueezed(context, size_of_axis(context, x, token_axis), {0})},
                      {{"axis", int64_t{0}}});
  return made(context, "Expand", {unsqueezed(context, row, {0}), shape});
}

Value* rotated(ImportContext& context, Value* x, Value* positions, Value* cosines, Value* sines, int64_t heads,
               int64_t width) {
  return made(
      context, "RotaryEmbedding", {x, cosines, sines, positions},
      {{"interleaved", context.attrs().integer_or("interleaved", context.attrs().integer_or("rotary_interleaved", 0))},
       {"num_heads", heads},
       {"rotary_embedding_dim", width}});
}

/// Attention without tables: token i behind the past is turned by i / 10000^(2 k / width), k counting pairs.
void turn(ImportContext& context, Parts& parts, Value* past) {
  const Dim& hidden = parts.q->type.shape[2];
  HONE_CHECK(hidden.is_constant() && hidden.value() % parts.heads == 0,
             "heads of a size that is not a number cannot be turned");
  const int64_t given_width = context.attrs().integer_or("rotary_embedding_dim", 0);
  const int64_t width = given_width > 0 ? given_width : hidden.value() / parts.heads;
  std::vector<double> steps;
  for (int64_t k = 0; k < width / 2; ++k)
    steps.push_back(std::pow(10000.0, -2.0 * static_cast<double>(k) / static_cast<double>(width)));
  Value* places = counting(context, size_of_axis(context, parts.q, 1));
  Value* positions = past == nullptr ? places : made(context, "Add", {places, size_of_axis(context, past, 3)});
  Value* angles = made(context, "Mul",
                       {unsqueezed(context, as_type(context, positions, DType::f32), {1}),
                        context.constant(write_doubles(DType::f32, {1, width / 2}, steps))});
  const DType dtype = parts.q->type.dtype;
  Value *cosines = as_type(context, made(context, "Cos", {angles}), dtype),
        *sines = as_type(context, made(context, "Sin", {angles}), dtype);
  Value* rows = positions_of(context, number(context, 0), parts.q, 1);
  parts.q = rotated(context, parts.q, rows, cosines, sines, parts.heads, width);
  parts.k = rotated(context, parts.k, rows, cosines, sines, parts.key_heads, width);
}

// ---- Attention, QAttention: input x weight + bias, then heads ----

/// operands behind the projection: mask, past (keys and values joined), bias of scores
void finish_attention(ImportContext& context, Value* joined, Value* mask, Value* past, Value* score_bias) {
  const Attrs& attrs = context.attrs();
  const Dim& width = joined->type.shape[2];
  HONE_CHECK(width.is_constant(), "the weight of Attention has a size that is not a number");
  std::vector<int64_t> sizes(3, width.value() / 3);
  if (attrs.has("qkv_hidden_sizes") && !attrs.integers("qkv_hidden_sizes").empty())
    sizes = attrs.integers("qkv_hidden_sizes");
  const std::vector<Value*> qkv = divided(context, joined, sizes);
  Parts parts{.q = qkv[0],
              .k = qkv[1],
              .v = qkv[2],
              .heads = heads_of(attrs),
              .key_heads = heads_of(attrs),
              .causal = attrs.integer_or("unidirectional", 0) != 0};
  if (attrs.integer_or("do_rotary", 0) != 0) turn(context, parts, past);
  Value* keys = size_of_axis(context, joined, 1);
  if (past != nullptr) {
    const auto half = [&](int64_t i) {
      return made(context, "Gather", {past, number(context, i)}, {{"axis", int64_t{0}}});
    };
    parts.past_key = half(0), parts.past_value = half(1);
    keys = made(context, "Add", {keys, size_of_axis(context, past, 3)});
  }
  if (mask != nullptr)
    parts.mask = key_mask(context, mask, keys, joined->type.dtype, real_or(attrs, "mask_filter_value", -10000));
  if (score_bias != nullptr) parts.mask = sum_of(context, parts.mask, score_bias);
  const Node* node = attend(context, parts, 3);
  context.set_output(0, node->outputs[0]);
  if (context.outputs() < 2 || !context.output_used(1)) return;
  context.set_output(1, made(context, "Concat",
                             {unsqueezed(context, node->outputs[1], {0}), unsqueezed(context, node->outputs[2], {0})},
                             {{"axis", int64_t{0}}}));
}

void import_attention(ImportContext& context) {
  Value* joined = plus(context, made(context, "MatMul", {context.input(0), context.input(1)}), given(context, 2));
  finish_attention(context, joined, given(context, 3), given(context, 4), given(context, 5));
}

/// x, weight, bias, x_scale, weight_scale, mask?, x_zero?, weight_zero?, past?
void import_q_attention(ImportContext& context) {
  Value* product =
      made(context, "MatMulInteger", {context.input(0), context.input(1), given(context, 6), given(context, 7)});
  Value* scale = made(context, "Mul", {context.input(3), context.input(4)});
  Value* joined =
      plus(context, made(context, "Mul", {as_type(context, product, scale->type.dtype), scale}), context.input(2));
  finish_attention(context, joined, given(context, 5), given(context, 8), nullptr);
}

// ---- MultiHeadAttention(query, key?, value?, bias?, key mask?, score bias?, past key?, past value?) ----

/// Queries, keys and values, each [batch, tokens, hidden] or of keys and values [batch, heads, tokens, depth]: they may come in one tensor
/// [batch, tokens, heads, 3, depth], or keys and values in one with a 2.
std::vector<Value*> separate(ImportContext& context) {
  Value *q = context.input(0), *k = given(context, 1), *v = given(context, 2);
  const auto parts_of = [&](Value* joined, size_t count) {
    const Node* node = context.add("Split", {joined, integer_constant(context, std::vector<int64_t>(count, 1))},
                                   {{"axis", int64_t{3}}}, count);
    std::vector<Value*> parts;
    for (Value* part : node->outputs)
      parts.push_back(made(context, "Reshape", {part, integer_constant(context, {0, 0, -1})}));
    return parts;
  };
  if (k == nullptr && q->type.shape.rank() == 5) return parts_of(q, 3);
  if (k != nullptr && v == nullptr && k->type.shape.rank() == 5) {
    const std::vector<Value*> both = parts_of(k, 2);
    return {q, both[0], both[1]};
  }
  HONE_CHECK(q->type.shape.rank() == 3 && k != nullptr && v != nullptr,
             "MultiHeadAttention has queries of rank {} and {} keys and {} values", q->type.shape.rank(),
             k == nullptr ? "no" : "its", v == nullptr ? "no" : "its");
  return {q, k, v};
}

void import_multi_head(ImportContext& context) {
  const Attrs& attrs = context.attrs();
  const std::vector<Value*> qkv = separate(context);
  Parts parts{.q = qkv[0],
              .k = qkv[1],
              .v = qkv[2],
              .past_key = given(context, 6),
              .past_value = given(context, 7),
              .heads = heads_of(attrs),
              .key_heads = heads_of(attrs),
              .causal = attrs.integer_or("unidirectional", 0) != 0};
  if (Value* bias = given(context, 3)) {
    const Dim &q = parts.q->type.shape[2], &k = parts.k->type.shape.rank() == 3 ? parts.k->type.shape[2] : q;
    HONE_CHECK(q.is_constant() && k.is_constant() && bias->type.shape[0].is_constant(),
               "the bias of MultiHeadAttention needs sizes that are numbers");
    const std::vector<Value*> biases =
        divided(context, bias, {q.value(), k.value(), bias->type.shape[0].value() - q.value() - k.value()});
    parts.q = plus(context, parts.q, biases[0]);
    if (parts.k->type.shape.rank() == 3)
      parts.k = plus(context, parts.k, biases[1]), parts.v = plus(context, parts.v, biases[2]);
  }
  if (Value* mask = given(context, 4)) {
    Value* keys = size_of_axis(context, parts.k, parts.k->type.shape.rank() == 3 ? 1 : 2);
    if (parts.past_key != nullptr) keys = made(context, "Add", {keys, size_of_axis(context, parts.past_key, 2)});
    parts.mask = key_mask(context, mask, keys, parts.q->type.dtype, real_or(attrs, "mask_filter_value", -10000));
  }
  if (Value* bias = given(context, 5)) parts.mask = sum_of(context, parts.mask, bias);
  set_outputs(context, *attend(context, parts, std::max<size_t>(context.outputs(), 1)));
}

// ---- RotaryEmbedding(x, positions, cosines, sines) ----

void import_rotary(ImportContext& context) {
  const Attrs& attrs = context.attrs();
  Value* x = context.input(0);
  HONE_CHECK(context.input(2)->type.shape.rank() == 2 && x->type.shape.rank() >= 3,
             "RotaryEmbedding reads tensors of rank 3 or 4 and cosines of rank 2, not {} and {}", x->type.shape.rank(),
             context.input(2)->type.shape.rank());
  const Dim &half = context.input(2)->type.shape[1], &hidden = x->type.shape[x->type.shape.rank() - 1];
  int64_t heads = attrs.integer_or("num_heads", 0);
  const bool flat = x->type.shape.rank() == 3;
  if (flat && heads == 0) {
    HONE_CHECK(half.is_constant() && hidden.is_constant() && half.value() > 0,
               "RotaryEmbedding needs sizes that are numbers, or num_heads");
    heads = hidden.value() / (2 * half.value());
  }
  Value* positions = positions_of(context, context.input(1), x, flat ? 1 : 2);
  Value* y = rotated(context, x, positions, context.input(2), context.input(3), heads,
                     attrs.integer_or("rotary_embedding_dim", 0));
  const double scale = real_or(attrs, "scale", 1);
  context.set_output(0, scale == 1 ? y : made(context, "Mul", {y, scalar_like(context, y, scale)}));
}

// ---- GroupQueryAttention(q, k?, v?, past key?, past value?, lengths - 1, total length, cosines?, sines?) ----

void import_group_query(ImportContext& context) {
  const Attrs& attrs = context.attrs();
  Parts parts{.q = context.input(0),
              .k = given(context, 1),
              .v = given(context, 2),
              .past_key = given(context, 3),
              .past_value = given(context, 4),
              .heads = heads_of(attrs),
              .key_heads = heads_of(attrs, "kv_num_heads"),
              .causal = true};
  if (parts.k == nullptr) {
    const Dim& width = parts.q->type.shape[2];
    HONE_CHECK(width.is_constant(), "GroupQueryAttention with a joined operand needs a size that is a number");
    const int64_t depth = width.value() / (parts.heads + 2 * parts.key_heads);
    const std::vector<Value*> qkv =
        divided(context, parts.q, {parts.heads * depth, parts.key_heads * depth, parts.key_heads * depth});
    parts.q = qkv[0], parts.k = qkv[1], parts.v = qkv[2];
  }
  if (attrs.integer_or("do_rotary", 0) != 0) {
    HONE_CHECK(given(context, 7) != nullptr && given(context, 8) != nullptr, "do_rotary needs cosines and sines");
    // The last token of a row stands at its length - 1.
    Value* last = unsqueezed(context, as_type(context, context.input(5), DType::i64), {1});
    Value* tokens = size_of_axis(context, parts.q, 1);
    Value* first = made(context, "Sub", {made(context, "Add", {last, number(context, 1)}), tokens});
    Value* positions =
        made(context, "Max", {made(context, "Add", {first, counting(context, tokens)}), number(context, 0)});
    parts.q = rotated(context, parts.q, positions, context.input(7), context.input(8), parts.heads, 0);
    parts.k = rotated(context, parts.k, positions, context.input(7), context.input(8), parts.key_heads, 0);
  }
  const int64_t window = attrs.integer_or("local_window_size", -1);  // a query's own key is one of them
  parts.window = window > 0 ? window - 1 : -1;
  set_outputs(context, *attend(context, parts, std::max<size_t>(context.outputs(), 1)));
}

const OnnxRule kRules[] = {
    {"Attention", 1, kEveryLater, import_attention, kDomain, 0x3},
    {"QAttention", 1, kEveryLater, import_q_attention, kDomain, 0x1f},
    {"MultiHeadAttention", 1, kEveryLater, import_multi_head, kDomain, 0x1},
    {"RotaryEmbedding", 1, kEveryLater, import_rotary, kDomain, 0xf},
    {"GroupQueryAttention", 1, kEveryLater, import_group_query, kDomain, 0x21},
};

}  // namespace

std::span<const OnnxRule> microsoft_attention_rules() { return kRules; }

}  // namespace hone
