// SPDX-License-Identifier: Apache-2.0
//
// RotaryEmbedding and TensorScatter: what stands between a projection and its cache.
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

struct RotarySizes {
  int64_t batch, heads, tokens, depth, rotated;
  bool by_head;  // batch, heads, tokens, depth; else batch, tokens, heads, depth
  int64_t row(int64_t b, int64_t h, int64_t t) const {
    return (by_head ? (b * heads + h) * tokens + t : (b * tokens + t) * heads + h) * depth;
  }
};

RotarySizes rotary_sizes(const EvalContext& context) {
  const Dims& x = context.input(0).dims();
  HONE_CHECK(x.size() == 3 || x.size() == 4, "RotaryEmbedding takes tensors of rank 3 or 4, not {}", x.size());
  const int64_t heads = x.size() == 4 ? x[1] : context.attrs().integer("num_heads");
  HONE_CHECK(heads > 0, "num_heads is needed for an operand of rank 3");
  RotarySizes s{x[0],
                heads,
                x.size() == 4 ? x[2] : x[1],
                x.size() == 4 ? x[3] : x[2] / heads,
                context.attrs().integer("rotary_embedding_dim"),
                x.size() == 4};
  if (s.rotated == 0) s.rotated = s.depth;
  HONE_CHECK(s.rotated > 0 && s.rotated <= s.depth && s.rotated % 2 == 0, "{} of {} values cannot be rotated in pairs",
             s.rotated, s.depth);
  return s;
}

void eval_rotary(EvalContext& context) {
  const RotarySizes s = rotary_sizes(context);
  const Floats x(context.input(0)), cosines(context.input(1)), sines(context.input(2));
  const int64_t half = s.rotated / 2, rows = context.input(1).size() / std::max<int64_t>(half, 1);
  const Dims& angles = context.input(1).dims();
  HONE_CHECK(!angles.empty() && angles.back() == half && context.input(2).dims() == angles,
             "cosines [{}] and sines [{}] do not both have {} values per position", join_dims(angles, ","),
             join_dims(context.input(2).dims(), ","), half);
  const int64_t places = context.has(3) ? context.input(3).size() : rows;
  HONE_CHECK(places >= s.batch * s.tokens, "{} positions are given for {} batches of {} tokens", places, s.batch,
             s.tokens);
  const bool interleaved = context.attrs().integer("interleaved") != 0;
  std::vector<float> out(x.data(), x.data() + x.size());
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t t = 0; t < s.tokens; ++t) {
      const int64_t token = b * s.tokens + t;
      const int64_t position = context.has(3) ? checked_index(context.input(3).integer(token), rows) : token;
      for (int64_t h = 0; h < s.heads; ++h)
        for (int64_t i = 0; i < half; ++i) {
          const int64_t first = s.row(b, h, t) + (interleaved ? 2 * i : i),
                        second = interleaved ? first + 1 : first + half;
          const float c = cosines[position * half + i], z = sines[position * half + i];
          out[static_cast<size_t>(first)] = c * x[first] - z * x[second];
          out[static_cast<size_t>(second)] = z * x[first] + c * x[second];
        }
    }
  context.set(0, write_floats(context.input(0).dtype(), context.input(0).dims(), out));
}

// ---- TensorScatter ----

void infer_tensor_scatter(InferContext& context) {
  const int64_t axis = static_cast<int64_t>(normalize_axis(context.attrs().integer("axis"), context.rank(0)));
  HONE_CHECK(axis != 0, "TensorScatter cannot write along the batch");
  check_rank(context, 1, context.rank(0), "the update of TensorScatter");
  context.set(0, context.dtype(0), context.shape(0));
}

void eval_tensor_scatter(EvalContext& context) {
  const Tensor &cache = context.input(0), &update = context.input(1);
  const size_t axis = normalize_axis(context.attrs().integer("axis"), cache.dims().size());
  const AxisView to(cache.dims(), axis), from(update.dims(), axis);
  HONE_CHECK(to.outer == from.outer && to.inner == from.inner, "the update [{}] does not fit the cache [{}]",
             join_dims(update.dims(), ","), join_dims(cache.dims(), ","));
  HONE_CHECK(to.length > 0 || from.length == 0, "the cache has no place for the update");
  HONE_CHECK(!context.has(2) || context.input(2).size() == cache.dims()[0], "{} batches have {} positions",
             cache.dims()[0], context.input(2).size());
  const bool circular = context.attrs().text("mode") == "circular";
  std::vector<int64_t> source = iota(cache.size());  // element of cache, then of update
  const int64_t per_batch = to.outer / std::max<int64_t>(cache.dims()[0], 1);
  for (int64_t o = 0; o < from.outer; ++o) {
    const int64_t begin = context.has(2) ? context.input(2).integer(o / per_batch) : 0;
    HONE_CHECK(begin >= 0 && begin <= INT64_MAX - from.length, "position {} lies outside the cache", begin);
    for (int64_t i = 0; i < from.length; ++i) {
      const int64_t position = circular ? (begin + i) % to.length : begin + i;
      HONE_CHECK(position >= 0 && position < to.length, "position {} lies outside the cache of {}", position,
                 to.length);
      for (int64_t k = 0; k < to.inner; ++k)
        source[static_cast<size_t>((o * to.length + position) * to.inner + k)] =
            cache.size() + (o * from.length + i) * from.inner + k;
    }
  }
  TensorBuilder builder(cache.dtype(), cache.dims());
  const size_t width = size_of(cache.dtype());
  for (size_t i = 0; i < source.size(); ++i) {
    const bool fresh = source[i] >= cache.size();
    const std::byte* data = fresh ? update.bytes().data() : cache.bytes().data();
    std::copy_n(data + static_cast<size_t>(fresh ? source[i] - cache.size() : source[i]) * width, width,
                builder.bytes() + i * width);
  }
  context.set(0, builder.finish());
}

/// Operand 2 holds positions in the cache, behind which the update has room.
std::optional<IntegerRange> accepts_places(const Node& node, size_t operand) {
  if (operand != 2) return std::nullopt;
  const Shape& cache = node.input(0)->type.shape;
  const size_t axis = normalize_axis(node.attrs.integer("axis"), cache.rank());
  const int64_t room = known_size(cache[axis]) - known_size(node.input(1)->type.shape[axis]);
  return IntegerRange{0,
                      std::max<int64_t>(0, node.attrs.text("mode") == "circular" ? 3 * known_size(cache[axis]) : room)};
}

}  // namespace

const OpDef ops::rotary_embedding{
    .name = "RotaryEmbedding",
    .attrs = {integer_attr("interleaved", 0), integer_attr("num_heads", 0), integer_attr("rotary_embedding_dim", 0)},
    .min_inputs = 3,
    .max_inputs = 4,
    .infer = infer_same,
    .eval = eval_rotary,
    .onnx = {{"RotaryEmbedding", 23}}};

const OpDef ops::tensor_scatter{.name = "TensorScatter",
                                .attrs = {integer_attr("axis", -2), text_attr("mode", "linear")},
                                .min_inputs = 2,
                                .max_inputs = 3,
                                .infer = infer_tensor_scatter,
                                .eval = eval_tensor_scatter,
                                .onnx = {{"TensorScatter", 24}},
                                .traits = {.accepts = accepts_places}};

}  // namespace hone
