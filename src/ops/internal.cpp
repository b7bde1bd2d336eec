// SPDX-License-Identifier: Apache-2.0
//
// Operators that only Hone's passes and builder make.
#include <algorithm>
#include <cmath>

#include "base/node_error.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone::ops {
namespace {

struct AttentionSizes {
  int64_t batch, heads, key_heads, queries, keys, depth, value_depth;
};

void infer_attention(InferContext& context) {
  const Shape &q = context.shape(0), &k = context.shape(1), &v = context.shape(2);
  HONE_CHECK(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "attention needs operands of rank 4");
  Shape result = q;
  result[3] = v[3];
  context.set(0, context.dtype(0), result);
}

void eval_attention(EvalContext& context) {
  const Tensor &q = context.input(0), &k = context.input(1), &v = context.input(2);
  const bool by_head = context.attrs().text("layout") == "bhsd";
  const auto scale = static_cast<float>(context.attrs().real("scale"));
  const size_t head_axis = by_head ? 1 : 2, seq_axis = by_head ? 2 : 1;
  const AttentionSizes s{q.dims()[0],        q.dims()[head_axis], k.dims()[head_axis], q.dims()[seq_axis],
                         k.dims()[seq_axis], q.dims()[3],         v.dims()[3]};
  HONE_CHECK(s.key_heads > 0 && s.heads % s.key_heads == 0, "attention has {} heads of queries and {} of keys", s.heads,
             s.key_heads);
  const Floats fq(q), fk(k), fv(v);
  std::vector<float> mask_data;
  Dims mask_dims;
  if (context.has(3)) {
    const Floats mask(context.input(3));
    mask_data.assign(mask.data(), mask.data() + context.input(3).size());
    mask_dims = context.input(3).dims();
    mask_dims.insert(mask_dims.begin(), 4 - mask_dims.size(), 1);
  }
  const auto mask_at = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    if (mask_dims.empty()) return 0.0f;
    const int64_t index[] = {b, h, i, j};
    int64_t at = 0;
    for (size_t axis = 0; axis < 4; ++axis) at = at * mask_dims[axis] + (mask_dims[axis] == 1 ? 0 : index[axis]);
    return mask_data[static_cast<size_t>(at)];
  };
  const auto row = [&](int64_t heads, int64_t length, int64_t width, int64_t b, int64_t h, int64_t i) {
    return by_head ? ((b * heads + h) * length + i) * width : ((b * length + i) * heads + h) * width;
  };
  std::vector<float> out(static_cast<size_t>(s.batch * s.heads * s.queries * s.value_depth), 0.0f);
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h) {
      const int64_t kh = h / (s.heads / s.key_heads);
      std::vector<double> scores(static_cast<size_t>(s.keys)), sums(static_cast<size_t>(s.value_depth));
      for (int64_t i = 0; i < s.queries; ++i) {
        const float* query = fq.data() + row(s.heads, s.queries, s.depth, b, h, i);
        double top = -INFINITY, total = 0;
        for (int64_t j = 0; j < s.keys; ++j) {
          const float* key = fk.data() + row(s.key_heads, s.keys, s.depth, b, kh, j);
          double dot = 0;
          for (int64_t d = 0; d < s.depth; ++d) dot += static_cast<double>(query[d]) * key[d];
          scores[static_cast<size_t>(j)] = dot * scale + mask_at(b, h, i, j);
          top = std::max(top, scores[static_cast<size_t>(j)]);
        }
        std::fill(sums.begin(), sums.end(), 0.0);
        for (int64_t j = 0; j < s.keys; ++j) {
          const double weight = std::exp(scores[static_cast<size_t>(j)] - top);
          total += weight;
          const float* value = fv.data() + row(s.key_heads, s.keys, s.value_depth, b, kh, j);
          for (int64_t d = 0; d < s.value_depth; ++d) sums[static_cast<size_t>(d)] += weight * value[d];
        }
        float* result = out.data() + row(s.heads, s.queries, s.value_depth, b, h, i);
        for (int64_t d = 0; d < s.value_depth; ++d)
          result[d] = static_cast<float>(sums[static_cast<size_t>(d)] / total);
      }
    }
  Dims dims = q.dims();
  dims[3] = s.value_depth;
  context.set(0, write_floats(q.dtype(), dims, out));
}

Shape shape_attr(const Attrs& attrs) {
  Shape shape;
  for (const std::string& text : attrs.texts("shape")) shape.push_back(Dim::parse(text));
  return shape;
}

void infer_view(InferContext& context) {
  const Shape shape = shape_attr(context.attrs());
  HONE_CHECK(!shape.is_static() || !context.shape(0).is_static() || shape.elements() == context.shape(0).elements(),
             "cannot view [{}] as [{}]", context.shape(0).text(), shape.text());
  context.set(0, context.dtype(0), shape);
  if (std::optional<SymbolicData> data = context.symbolic(0)) context.set_symbolic(0, std::move(*data));
}
void eval_view(EvalContext& context) {
  context.set(0, context.input(0).reshaped(shape_attr(context.attrs()).values()));
}

void infer_symbolic_constant(InferContext& context) {
  SymbolicData data;
  for (const std::string& text : context.attrs().texts("values")) data.push_back(Dim::parse(text));
  const Dims& dims = context.attrs().integers("dims");
  HONE_CHECK(elements(dims) == static_cast<int64_t>(data.size()), "SymbolicConstant has {} values for [{}]",
             data.size(), join_dims(dims, ","));
  context.set(0, DType::i64, Shape(std::span<const int64_t>(dims)));
  context.set_symbolic(0, std::move(data));
}
void eval_symbolic_constant(EvalContext& context) {
  std::vector<int64_t> values;
  for (const std::string& text : context.attrs().texts("values")) values.push_back(Dim::parse(text).evaluate({}));
  context.set(0, Tensor::of<int64_t>(context.attrs().integers("dims"), std::span<const int64_t>(values)));
}

/// Cosines and sines of one shape, for every value of a vector; they are broadcast to the vectors, whose size is known.
void infer_rotate(InferContext& context) {
  const Shape &x = context.shape(0), &angles = context.shape(1);
  HONE_CHECK(x.rank() > 0 && angles.rank() > 0 && broadcast(x, angles) == x &&
                 x[x.rank() - 1] == angles[angles.rank() - 1] && angles == context.shape(2),
             "vectors [{}] cannot be rotated by [{}] and [{}]", x.text(), angles.text(), context.shape(2).text());
  const Dim& depth = x[x.rank() - 1];
  HONE_CHECK(depth.is_constant() && depth.value() % 2 == 0, "vectors of {} have no halves", depth.text());
  for (size_t i = 1; i < 3; ++i)
    HONE_CHECK_AS(TypeError, context.dtype(i) == context.dtype(0), "vectors of {} cannot be rotated by {}",
                  name_of(context.dtype(0)), name_of(context.dtype(i)));
  context.set(0, context.dtype(0), x);
}
void eval_rotate(EvalContext& context) {
  const Dims &dims = context.input(0).dims(), &angles = context.input(1).dims();
  const Floats x(context.input(0)), cosines(context.input(1)), sines(context.input(2));
  HONE_CHECK(!dims.empty() && dims.back() % 2 == 0 && broadcast_dims(dims, angles) == dims &&
                 angles == context.input(2).dims(),
             "vectors [{}] cannot be rotated by [{}]", join_dims(dims, ","), join_dims(angles, ","));
  const int64_t half = dims.back() / 2;
  std::vector<float> out(x.size());
  for (int64_t i = 0; i < context.input(0).size(); ++i) {
    const float other = i % dims.back() < half ? -x[i + half] : x[i - half];
    const int64_t angle = broadcast_offset(dims, angles, i);
    out[static_cast<size_t>(i)] = x[i] * cosines[angle] + other * sines[angle];
  }
  context.set(0, write_floats(context.input(0).dtype(), dims, out));
}

void eval_same(EvalContext& context) { context.set(0, context.input(0)); }

int64_t flops_of_attention(const Node& node, const SymbolValues& sizes) {
  const auto dims = [&](size_t i) { return node.input(i)->type.shape.evaluate(sizes); };
  const Dims q = dims(0), k = dims(1), v = dims(2);
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || q[3] == 0) return 0;
  const int64_t keys = node.attrs.text("layout") == "bhsd" ? k[2] : k[1];
  return 2 * elements(q) / q[3] * keys * (q[3] + v[3]);
}

/// A query sees all keys and values; a head its own.
std::optional<bool> queries_or_heads_apart(const Node& node, size_t operand) {
  const Shape &given = node.input(operand)->type.shape, &result = node.output()->type.shape;
  if (node.attrs.text("layout") != "bhsd") return operand < 3 ? std::optional(operand == 0) : std::nullopt;
  if (operand < 3) return given[1] == result[1] ? std::optional(true) : std::nullopt;
  return given.rank() == 4 && given[1] != Dim(1);
}

}  // namespace

const OpDef clamp{.name = "Clamp",
                  .attrs = {{"min", AttrKind::real, -INFINITY}, {"max", AttrKind::real, INFINITY}},
                  .pointwise = Expr::parse("min(max(x, min), max)")};
const OpDef silu{.name = "Silu", .pointwise = Expr::parse("x / (1 + exp(-x))")};
const OpDef gelu_tanh{
    .name = "GeluTanh",
    .pointwise = Expr::parse("x * 0.5 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))")};
const OpDef scaled_dot_product_attention{
    .name = "ScaledDotProductAttention",
    .attrs = {{"scale", AttrKind::real, 1.0}, {"layout", AttrKind::text, std::string("bhsd")}},
    .min_inputs = 3,
    .max_inputs = 4,
    .infer = infer_attention,
    .eval = eval_attention,
    .traits = {.few_bits = FewBits::gains,
               .layer = "Attention",
               .entries_apart = all_apart,
               .rows_apart = queries_or_heads_apart,
               .flops = flops_of_attention}};
/// x * cos + (the halves of x exchanged, the first negated) * sin, over the last axis.
const OpDef rotate{.name = "Rotate",
                   .min_inputs = 3,
                   .max_inputs = 3,
                   .infer = infer_rotate,
                   .eval = eval_rotate,
                   .traits = {.few_bits = FewBits::passes, .entries_apart = all_apart}};
const OpDef view{.name = "View",
                 .attrs = {{"shape", AttrKind::texts, std::nullopt, true}},
                 .infer = infer_view,
                 .eval = eval_view,
                 .traits = {.view = true, .few_bits = FewBits::passes, .layer = "Shuffle"}};
const OpDef symbolic_constant{
    .name = "SymbolicConstant",
    .attrs = {{"values", AttrKind::texts, std::nullopt, true}, {"dims", AttrKind::integers, std::nullopt, true}},
    .min_inputs = 0,
    .max_inputs = 0,
    .infer = infer_symbolic_constant,
    .eval = eval_symbolic_constant,
    .traits = {.layer = "Constant"}};
const OpDef reformat{
    .name = "Reformat", .infer = infer_same, .eval = eval_same, .traits = {.entries_apart = first_apart}};

}  // namespace hone::ops
