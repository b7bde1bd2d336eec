// SPDX-License-Identifier: Apache-2.0
//
// ONNX's Attention with everything it may be asked for (caches, masks, windows, soft caps, debug outputs), and
// FlexAttention, whose scores and probabilities pass through bodies of the model. Rows are computed one after the other.
#include <cmath>

#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Q, K or V as batch, heads, length, depth, whichever of the two forms it came in.
struct Heads {
  Floats data;
  int64_t batch, heads, length, depth;
  bool packed;  // batch, length, heads*depth
  Heads(const Tensor& tensor, int64_t head_count) : data(tensor), packed(tensor.dims().size() == 3) {
    const Dims& dims = tensor.dims();
    HONE_CHECK(dims.size() == 3 || dims.size() == 4, "attention takes tensors of rank 3 or 4, not {}", dims.size());
    HONE_CHECK(!packed || (head_count > 0 && dims[2] % head_count == 0), "{} values per token do not make {} heads",
               dims.back(), head_count);
    batch = dims[0];
    heads = packed ? head_count : dims[1];
    length = packed ? dims[1] : dims[2];
    depth = packed ? dims[2] / head_count : dims[3];
  }
  double at(int64_t b, int64_t h, int64_t i, int64_t d) const {
    const int64_t row = packed ? (b * length + i) * heads + h : (b * heads + h) * length + i;
    return data[row * depth + d];
  }
};

/// Keys or values behind those of the cache.
struct Cached {
  const Heads* past;
  const Heads& now;
  int64_t past_length() const { return past == nullptr ? 0 : past->length; }
  int64_t length() const { return past_length() + now.length; }
  double at(int64_t b, int64_t h, int64_t i, int64_t d) const {
    return i < past_length() ? past->at(b, h, i, d) : now.at(b, h, i - past_length(), d);
  }
};

/// Keys and values against queries; `values` have as many heads and positions as keys, but a depth of their own.
void check_heads(const Heads& q, const Heads& keys, const Heads& values) {
  HONE_CHECK(keys.batch == q.batch && values.batch == q.batch, "attention has batches of {}, {} and {}", q.batch,
             keys.batch, values.batch);
  HONE_CHECK(keys.heads > 0 && q.heads % keys.heads == 0 && values.heads == keys.heads,
             "attention has {} heads of queries, {} of keys and {} of values", q.heads, keys.heads, values.heads);
  HONE_CHECK(keys.depth == q.depth, "attention has queries of depth {} and keys of {}", q.depth, keys.depth);
  HONE_CHECK(keys.length == values.length, "attention has {} keys and {} values", keys.length, values.length);
}

/// What is added to the scores: the mask, broadcast, its last axis filled up with what excludes.
class Mask {
 public:
  Mask(const Tensor* tensor, const Heads& q) {
    if (tensor == nullptr) return;
    HONE_CHECK(tensor->dims().size() <= 4, "the mask of attention has rank {}", tensor->dims().size());
    boolean_ = tensor->dtype() == DType::boolean;
    values_ = read_doubles(*tensor);
    dims_ = tensor->dims();
    dims_.insert(dims_.begin(), 4 - dims_.size(), 1);
    const int64_t wanted[] = {q.batch, q.heads, q.length};
    for (size_t axis = 0; axis < 3; ++axis)
      HONE_CHECK(dims_[axis] == 1 || dims_[axis] == wanted[axis], "the mask [{}] of attention does not fit {} queries",
                 join_dims(tensor->dims(), ","), q.length);
    HONE_CHECK(dims_[3] > 0, "the mask of attention is empty");
  }
  double at(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (dims_.empty()) return 0;
    if (j >= dims_[3] && dims_[3] != 1) return -kInfinity;
    const int64_t index[] = {b, h, i, j};
    int64_t flat = 0;
    for (size_t axis = 0; axis < 4; ++axis) flat = flat * dims_[axis] + (dims_[axis] == 1 ? 0 : index[axis]);
    const double value = values_[static_cast<size_t>(flat)];
    return boolean_ ? (value != 0 ? 0 : -kInfinity) : value;
  }

 private:
  bool boolean_ = false;
  std::vector<double> values_;
  Dims dims_;
};

/// Which keys a query may see by its position.
struct Visible {
  bool causal;
  int64_t left, right;
  bool operator()(int64_t position, int64_t key) const {
    if (causal && key > position) return false;
    return (left < 0 || key >= position - left) && (right < 0 || key <= position + right);
  }
};

/// In place; a row of which every key is excluded becomes zeros.
void softmax_row(std::vector<double>& row) {
  const double top = row.empty() ? 0 : *std::max_element(row.begin(), row.end());
  if (top == -kInfinity) return row.assign(row.size(), 0);
  double total = 0;
  for (double& value : row) total += value = std::exp(value - top);
  for (double& value : row) value /= total;
}

size_t heads_of(const InferContext& context, size_t operand, const char* attr, Dim& heads, Dim& length, Dim& depth) {
  const Shape& shape = context.shape(operand);
  HONE_CHECK(shape.rank() == 3 || shape.rank() == 4, "attention takes tensors of rank 3 or 4, not {}", shape.rank());
  if (shape.rank() == 4) {
    heads = shape[1], length = shape[2], depth = shape[3];
    return 4;
  }
  const int64_t count = context.attrs().integer(attr);
  HONE_CHECK(count > 0, "{} is needed for operands of rank 3", attr);
  heads = Dim(count), length = shape[1], depth = floor_divide(shape[2], Dim(count));
  return 3;
}

void infer_attention(InferContext& context) {
  Dim heads, length, depth, key_heads, keys, key_depth, value_heads, values, value_depth;
  const size_t rank = heads_of(context, 0, "q_num_heads", heads, length, depth);
  heads_of(context, 1, "kv_num_heads", key_heads, keys, key_depth);
  heads_of(context, 2, "kv_num_heads", value_heads, values, value_depth);
  check_equal(depth, key_depth, "the depths of queries and keys");
  check_equal(keys, values, "the numbers of keys and values");
  check_equal(key_heads, value_heads, "the heads of keys and values");
  for (size_t i = 1; i < 3; ++i) check_equal(context.shape(i)[0], context.shape(0)[0], "the batches of attention");
  HONE_CHECK(context.has(4) == context.has(5), "past keys and past values belong together");
  const Dim batch = context.shape(0)[0];
  const Dim total = context.has(4) ? context.shape(4)[2] + keys : keys;
  const DType dtype = context.dtype(0);
  context.set(0, dtype,
              rank == 4 ? Shape{batch, heads, length, value_depth} : Shape{batch, length, heads * value_depth});
  context.set(1, context.dtype(1), {batch, key_heads, total, depth});
  context.set(2, context.dtype(2), {batch, key_heads, total, value_depth});
  context.set(3, dtype, {batch, heads, length, total});
}

Tensor gathered(const Cached& cached, DType dtype) {
  const Heads& now = cached.now;
  std::vector<double> values;
  for (int64_t b = 0; b < now.batch; ++b)
    for (int64_t h = 0; h < now.heads; ++h)
      for (int64_t i = 0; i < cached.length(); ++i)
        for (int64_t d = 0; d < now.depth; ++d) values.push_back(cached.at(b, h, i, d));
  return write_doubles(dtype, {now.batch, now.heads, cached.length(), now.depth}, values);
}

/// One row of scores on its way to probabilities, and which of its states the fourth output keeps.
struct RowContext {
  double scale, softcap;
  Visible visible;
  const Mask& mask;
  int64_t offset, valid;  // position of the first query; keys that count
  int64_t kept_state;     // 0 raw, 1 capped, 2 with bias, 3 probabilities
};

void score_row(const RowContext& row, const Heads& q, const Cached& keys, int64_t b, int64_t h, int64_t key_head,
               int64_t i, std::vector<double>& scores, std::vector<double>& kept) {
  const auto keep = [&](int64_t state) {
    if (row.kept_state == state) kept.insert(kept.end(), scores.begin(), scores.end());
  };
  for (int64_t j = 0; j < keys.length(); ++j) {
    double dot = 0;
    for (int64_t d = 0; d < q.depth; ++d) dot += q.at(b, h, i, d) * keys.at(b, key_head, j, d);
    scores[static_cast<size_t>(j)] = dot * row.scale;
  }
  keep(0);
  if (row.softcap > 0)
    for (double& score : scores) score = row.softcap * std::tanh(score / row.softcap);
  keep(1);
  for (int64_t j = 0; j < keys.length(); ++j) {
    double& score = scores[static_cast<size_t>(j)];
    score = j < row.valid && row.visible(row.offset + i, j) ? score + row.mask.at(b, h, i, j) : -kInfinity;
  }
  keep(2);
  softmax_row(scores);
  keep(3);
}

double scale_of(const Attrs& attrs, int64_t depth) {
  return attrs.has("scale") ? attrs.real("scale") : 1 / std::sqrt(static_cast<double>(depth));
}

/// Whether the rows go to batch, heads, length (rank 4) or batch, length, heads (rank 3).
size_t row_of(bool packed, const Heads& q, int64_t b, int64_t h, int64_t i) {
  return static_cast<size_t>(packed ? (b * q.length + i) * q.heads + h : (b * q.heads + h) * q.length + i);
}

void eval_attention(EvalContext& context) {
  const Attrs& attrs = context.attrs();
  const int64_t key_heads = attrs.integer("kv_num_heads");
  const Heads q(context.input(0), attrs.integer("q_num_heads")), k(context.input(1), key_heads),
      v(context.input(2), key_heads);
  std::optional<Heads> past_key, past_value;
  if (context.has(4)) past_key.emplace(context.input(4), 0), past_value.emplace(context.input(5), 0);
  const Cached keys{past_key ? &*past_key : nullptr, k}, values{past_value ? &*past_value : nullptr, v};
  check_heads(q, k, v);
  if (past_key) {
    check_heads(q, *past_key, *past_value);
    HONE_CHECK(past_key->heads == k.heads && past_value->depth == v.depth, "the cache of attention has other heads");
  }
  HONE_CHECK(!context.has(6) || context.input(6).size() == q.batch, "{} batches have {} lengths", q.batch,
             context.has(6) ? context.input(6).size() : 0);
  const Mask mask(context.has(3) ? &context.input(3) : nullptr, q);
  RowContext row{.scale = scale_of(attrs, q.depth),
                 .softcap = attrs.real("softcap"),
                 .visible = {attrs.integer("is_causal") != 0, attrs.integer("left_window_size"),
                             attrs.integer("right_window_size")},
                 .mask = mask,
                 .offset = keys.past_length(),
                 .valid = keys.length(),
                 .kept_state = attrs.integer("qk_matmul_output_mode")};
  std::vector<double> out(static_cast<size_t>(q.batch * q.heads * q.length * v.depth)),
      scores(static_cast<size_t>(keys.length())), kept;
  for (int64_t b = 0; b < q.batch; ++b) {
    if (context.has(6)) {
      row.valid = context.input(6).integer(b);
      row.offset = row.valid - q.length;
    }
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.length; ++i) {
        const int64_t key_head = h / (q.heads / k.heads);
        score_row(row, q, keys, b, h, key_head, i, scores, kept);
        double* result = out.data() + row_of(q.packed, q, b, h, i) * static_cast<size_t>(v.depth);
        for (int64_t j = 0; j < keys.length(); ++j)
          for (int64_t d = 0; d < v.depth && scores[static_cast<size_t>(j)] != 0; ++d)
            result[d] += scores[static_cast<size_t>(j)] * values.at(b, key_head, j, d);
      }
  }
  const DType dtype = context.input(0).dtype();
  context.set(
      0, write_doubles(
             dtype, q.packed ? Dims{q.batch, q.length, q.heads * v.depth} : Dims{q.batch, q.heads, q.length, v.depth},
             out));
  if (context.outputs() > 1) context.set(1, gathered(keys, context.input(1).dtype()));
  if (context.outputs() > 2) context.set(2, gathered(values, context.input(2).dtype()));
  if (context.outputs() > 3) context.set(3, write_doubles(dtype, {q.batch, q.heads, q.length, keys.length()}, kept));
}

void import_attention(ImportContext& context) {
  Attrs attrs = context.attrs();
  attrs.erase("softmax_precision");  // the reference computes in double in any case
  std::vector<Value*> inputs;
  for (size_t i = 0; i < context.inputs(); ++i) inputs.push_back(context.input(i));
  set_outputs(context, *context.add("Attention", std::move(inputs), std::move(attrs), context.outputs()));
}

// ---- FlexAttention: bodies score_mod and prob_mod, which may be missing ----

DType score_type(const Attrs& attrs, DType dtype) {
  if (attrs.has("softmax_precision")) return dtype_of_onnx(attrs.integer("softmax_precision"));
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

void infer_flex(InferContext& context) {
  const Shape &q = context.shape(0), &k = context.shape(1), &v = context.shape(2);
  for (size_t i = 0; i < 3; ++i) check_rank(context, i, 4, "an operand of FlexAttention");
  const TensorType scores{score_type(context.attrs(), context.dtype(0)), {q[0], q[1], q[2], k[2]}, Layout::linear};
  for (const auto& body : context.node().bodies) {
    HONE_CHECK(body->inputs().size() == 1 && body->outputs().size() == 1,
               "a modifier of FlexAttention takes one tensor and gives one");
    if (body->inputs()[0]->type != scores) {
      body->inputs()[0]->type = scores;
      body->infer_all();
    }
  }
  context.set(0, context.dtype(0), {q[0], q[1], q[2], v[3]});
}

void eval_flex(EvalContext& context) {
  const Heads q(context.input(0), 0), k(context.input(1), 0), v(context.input(2), 0);
  const Attrs& attrs = context.attrs();
  check_heads(q, k, v);
  const double scale = scale_of(attrs, q.depth);
  std::vector<double> scores;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.length; ++i)
        for (int64_t j = 0; j < k.length; ++j) {
          double dot = 0;
          for (int64_t d = 0; d < q.depth; ++d) dot += q.at(b, h, i, d) * k.at(b, h / (q.heads / k.heads), j, d);
          scores.push_back(dot * scale);
        }
  const Dims dims{q.batch, q.heads, q.length, k.length};
  const DType type = score_type(attrs, context.input(0).dtype());
  const auto& bodies = context.node().bodies;
  const auto modify = [&](int64_t body) {
    if (body < 0) return;
    const Tensor given = write_doubles(type, dims, scores);
    const Tensor changed = evaluate(*bodies.at(static_cast<size_t>(body)), std::span(&given, 1))[0];
    HONE_CHECK(changed.dims() == dims, "a modifier of FlexAttention gives [{}]", join_dims(changed.dims(), ","));
    scores = read_doubles(changed);
  };
  modify(attrs.integer("score_body"));
  for (size_t begin = 0; begin < scores.size(); begin += static_cast<size_t>(k.length)) {
    std::vector<double> row(scores.begin() + static_cast<std::ptrdiff_t>(begin),
                            scores.begin() + static_cast<std::ptrdiff_t>(begin) + k.length);
    softmax_row(row);
    std::copy(row.begin(), row.end(), scores.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  modify(attrs.integer("prob_body"));
  std::vector<double> out(static_cast<size_t>(q.batch * q.heads * q.length * v.depth));
  size_t at = 0;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.length; ++i)
        for (int64_t j = 0; j < k.length; ++j, ++at)
          for (int64_t d = 0; d < v.depth; ++d)
            out[row_of(false, q, b, h, i) * static_cast<size_t>(v.depth) + static_cast<size_t>(d)] +=
                scores[at] * v.at(b, h / (q.heads / k.heads), j, d);
  context.set(0, write_doubles(context.input(0).dtype(), {q.batch, q.heads, q.length, v.depth}, out));
}

/// Bodies carry the names of their attributes.
void import_flex(ImportContext& context) {
  Attrs attrs = context.attrs();
  for (size_t i = 0; i < context.bodies().size(); ++i)
    attrs.set(context.bodies()[i]->name == "prob_mod" ? "prob_body" : "score_body", static_cast<int64_t>(i));
  set_outputs(context,
              *context.add("FlexAttention", {context.input(0), context.input(1), context.input(2)}, std::move(attrs)));
}

}  // namespace

const OpDef ops::attention{.name = "Attention",
                           .attrs = {{"scale", AttrKind::real, std::nullopt, false, "1/sqrt(depth) when not given"},
                                     integer_attr("q_num_heads", 0),
                                     integer_attr("kv_num_heads", 0),
                                     integer_attr("is_causal", 0),
                                     integer_attr("left_window_size", -1),
                                     integer_attr("right_window_size", -1),
                                     integer_attr("qk_matmul_output_mode", 0),
                                     real_attr("softcap", 0)},
                           .min_inputs = 3,
                           .max_inputs = 7,
                           .infer = infer_attention,
                           .eval = eval_attention,
                           .onnx = {{"Attention", 23, kEveryLater, import_attention}}};

const OpDef ops::flex_attention{
    .name = "FlexAttention",
    .attrs = {{"scale", AttrKind::real, std::nullopt, false, "1/sqrt(depth) when not given"},
              {"softmax_precision", AttrKind::integer, std::nullopt, false, "ONNX element type of the scores"},
              integer_attr("score_body", -1),
              integer_attr("prob_body", -1),
              integer_attr("captures", 0)},
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = infer_flex,
    .eval = eval_flex,
    .onnx = {{"FlexAttention", 1, kEveryLater, import_flex, "ai.onnx.preview"}},
    .traits = {.has_bodies = true}};

}  // namespace hone
