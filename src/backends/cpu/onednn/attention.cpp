// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale q kT + mask) v with operands rounded to bf16; Hone's own kernel computes it in f32. The scores of a block of
// queries of one head, or of some whole heads, stay in the cache: product, softmax and product are primitives that follow one
// another block by block. All blocks are of one size, so that one primitive of each kind serves them: the last ones overlap
// and compute some rows twice.
#include "backends/cpu/onednn/support.h"

#if HONE_WITH_ONEDNN
#include "backends/cpu/attention/attention_code.h"
#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone::cpu::onednn {
namespace {

using Product = dnnl::matmul;
using Softmax = dnnl::softmax_forward;
using Sum = dnnl::binary;

constexpr int64_t kScoreKilobytes[] = {1024, 256};  // of a worker's part of a block: half of a common L2, and less
constexpr int64_t kFewestRows = 32;                 // below, products do not pay for reading all keys
constexpr int64_t kMostSteps = 2000;                // each costs some microseconds

/// Even pieces of at most `most`.
struct Pieces {
  int64_t total, count, size;
  Pieces(int64_t all, int64_t most) : total(all), count((all + most - 1) / most), size((all + count - 1) / count) {}
  int64_t begin(int64_t i) const { return std::min(i * size, total - size); }
};

/// Whether matrix after matrix, through all heads of all images, lies at one stride.
bool is_even(const HeadTensor& t) { return t.batch == 1 || t.heads == 1 || t.batch_stride == t.heads * t.head_stride; }
int64_t matrix_stride(const HeadTensor& t) { return t.heads == 1 ? t.batch_stride : t.head_stride; }

bool differs(const AttentionCode& code, size_t axis) { return code.mask && code.mask->dims[axis] != 1; }

/// Matrices (heads of an image, or of all) out of which blocks may take several.
int64_t matrices_together(const AttentionCode& code) {
  if (code.queries_per_key() != 1) return 1;
  const bool even = is_even(code.q) && is_even(code.k) && is_even(code.v) && is_even(code.y),
             even_mask = code.q.batch == 1 || code.q.heads == 1 || differs(code, 0) == differs(code, 1);
  return even && even_mask ? code.q.batch * code.q.heads : code.q.heads;
}

Dims mask_dims(const AttentionCode& code, int64_t together, int64_t matrices, int64_t rows) {
  const bool each_its_own = differs(code, 1) || (together > code.q.heads && differs(code, 0));
  return {each_its_own ? matrices : 1, differs(code, 2) ? rows : 1, code.mask->dims[3]};
}

dnnl::primitive_attr attr_with(const dnnl::post_ops& ops = {}) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_post_ops(ops);
  return attr;
}

/// How the work is cut, and the primitives of one block.
struct Block {
  int64_t together;
  Pieces heads, rows;
  Desc all_queries, queries, mask, scores;  // all rows of the heads, and a block's
  Product::primitive_desc score_product, value_product;
  Softmax::primitive_desc softmax;
  bool sums_apart = false;  // one matrix of masks to several of scores: a product has only its reference for that
  Sum::primitive_desc mask_sum;

  Block(const AttentionCode& code, ElementType operands, int64_t kilobytes)
      : together(matrices_together(code)),
        heads(together, std::max<int64_t>(1, scores_of(kilobytes) / (code.q.rows * code.k.rows))),
        rows(code.q.rows, heads.size > 1 ? code.q.rows : std::max(kFewestRows, scores_of(kilobytes) / code.k.rows)) {
    const int64_t keys = code.k.rows, depth = code.q.columns;
    const Dims dims{heads.size, rows.size, keys};
    all_queries = plain_desc({heads.size, code.q.rows, depth}, operands);
    queries = plain_desc({heads.size, rows.size, depth}, operands);
    scores = plain_desc(dims);
    dnnl::post_ops ops;
    if (code.scale != 1) ops.append_eltwise(dnnl::algorithm::eltwise_linear, code.scale, 0);
    if (code.mask) {
      mask = plain_desc(mask_dims(code, together, heads.size, rows.size));
      sums_apart = heads.size > 1 && mask.get_dims()[0] == 1 && mask.get_dims()[1] > 1;
      if (sums_apart) mask_sum = {engine(), dnnl::algorithm::binary_add, scores, mask, scores, attr_with(), true};
      else ops.append_binary(dnnl::algorithm::binary_add, mask);
    }
    const Desc weights = plain_desc(dims, operands);
    score_product = {engine(), queries, any_desc({heads.size, depth, keys}, operands), scores, attr_with(ops), true};
    softmax = {engine(),
               dnnl::prop_kind::forward_inference,
               dnnl::algorithm::softmax_accurate,
               scores,
               weights,
               2,
               attr_with(),
               true};
    value_product = {engine(),
                     weights,
                     any_desc({heads.size, keys, code.v.columns}, operands),
                     plain_desc({heads.size, rows.size, code.v.columns}),
                     attr_with(),
                     true};
  }

  explicit operator bool() const { return score_product && softmax && value_product && (!sums_apart || mask_sum); }
  bool fast() const {
    return is_fast(score_product) && is_fast(softmax) && is_fast(value_product) && (!sums_apart || is_fast(mask_sum));
  }
  int64_t steps(const AttentionCode& code) const {
    return code.q.batch * code.q.heads / together * heads.count * (4 + (sums_apart ? 4 : 3) * rows.count);
  }
  int mask_argument(const AttentionCode& code) const {
    return DNNL_ARG_ATTR_MULTIPLE_POST_OP(code.scale != 1 ? 1 : 0) | DNNL_ARG_SRC_1;
  }

 private:
  static int64_t scores_of(int64_t kilobytes) { return std::max<int64_t>(1, kilobytes * 256 * omp_get_max_threads()); }
};

KernelShapes shapes_of(const Graph& region) {
  KernelShapes shapes;
  const auto type_of = [](const Value* value) {
    return ConcreteType{value->type.dtype, value->type.shape.values(), Layout::linear};
  };
  for (const Value* value : region.inputs()) shapes.inputs.push_back(type_of(value));
  for (const Value* value : region.outputs()) shapes.outputs.push_back(type_of(value));
  return shapes;
}

void propose(const Problem& problem, Candidates& out) {
  const Node* node = anchor_of(problem.region, ops::scaled_dot_product_attention);
  if (node == nullptr) return;
  if (!may_round(problem)) return out.refuse("attention", "computes with operands in bf16 only");
  if (std::string reason = reason_against_attention(problem, *node); !reason.empty())
    return out.refuse("attention", std::move(reason));
  Attrs attrs;
  std::vector<Tensor> constants;
  write_attention(attrs, problem, *node, constants);
  const AttentionCode code(attrs, shapes_of(problem.region));
  int64_t scores_before = 0;
  for (const int64_t kilobytes : kScoreKilobytes) {
    const Block block(code, ElementType::bf16, kilobytes);
    if (!block || !block.fast()) return out.refuse("attention", "the library has only its reference implementation");
    const int64_t scores = block.heads.size * block.rows.size;
    if (block.steps(code) > kMostSteps) out.refuse("attention", fmt::format("takes {} steps", block.steps(code)));
    else if (scores != scores_before) {
      Attrs params{{"kilobytes", kilobytes}};
      set_operands(params, ElementType::bf16);
      out.offer({"onednn",
                 "attention",
                 std::move(params),
                 std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
                 {Layout::linear}});
    }
    scores_before = scores;
  }
}

/// The steps of a launch.
class Writer {
 public:
  Writer(const AttentionCode& code, const Block& block)
      : code_(code),
        block_(block),
        direct_(code.y.row_stride == code.y.columns),
        queries_(program_.reserve(block.all_queries.get_size())),
        keys_(program_.reserve(block.score_product.weights_desc().get_size())),
        values_(program_.reserve(block.value_product.weights_desc().get_size())),
        scores_(program_.reserve(block.scores.get_size())),
        weights_(program_.reserve(block.softmax.dst_desc().get_size())),
        result_(direct_ ? Operand{Operand::output, 0} : program_.reserve(matrices(code.y).get_size())) {}

  Program write() && {
    for (int64_t first = 0; first < code_.q.batch * code_.q.heads; first += block_.together)
      for (int64_t i = 0; i < block_.heads.count; ++i) write_heads(first + block_.heads.begin(i));
    return std::move(program_);
  }

 private:
  Desc matrices(const HeadTensor& t) const { return plain_desc({block_.heads.size, t.rows, t.columns}); }
  /// The block's matrices where they lie, as they are or each transposed.
  Desc given(const HeadTensor& t, bool transposed = false) const {
    const int64_t n = block_.heads.size, stride = matrix_stride(t);
    if (transposed) return {{n, t.columns, t.rows}, ElementType::f32, Dims{stride, 1, t.row_stride}};
    return {{n, t.rows, t.columns}, ElementType::f32, Dims{stride, t.row_stride, 1}};
  }
  static int64_t size_of(const Desc& desc) {
    return static_cast<int64_t>(dnnl::memory::data_type_size(desc.get_data_type()));
  }
  static Operand at(Operand operand, int64_t elements, int64_t bytes = sizeof(float)) {
    operand.offset = elements * bytes;
    return operand;
  }

  Operand input(int place, const HeadTensor& t, int64_t b, int64_t head) const {
    return at({Operand::input, place}, t.offset(b, head, 0));
  }

  Operand mask_at(int64_t b, int64_t h, int64_t row) const {
    const int place = code_.mask->place;
    return at(place >= 0 ? Operand{Operand::input, place} : Operand{Operand::constant, 0},
              code_.mask->offset(b, h, row));
  }

  void write_heads(int64_t matrix) {
    const int64_t b = matrix / code_.q.heads, h = matrix % code_.q.heads, shared = code_.shared_head(h);
    program_.add_reorder(given(code_.q), input(code_.q_place, code_.q, b, h), block_.all_queries, queries_);
    if (h % code_.queries_per_key() == 0) {
      program_.add_reorder(given(code_.k, true), input(code_.k_place, code_.k, b, shared),
                           block_.score_product.weights_desc(), keys_);
      program_.add_reorder(given(code_.v), input(code_.v_place, code_.v, b, shared),
                           block_.value_product.weights_desc(), values_);
    }
    const int64_t first = direct_ ? matrix * code_.y.rows : 0;
    for (int64_t i = 0; i < block_.rows.count; ++i) write_rows(b, h, block_.rows.begin(i), first);
    if (!direct_)
      program_.add_reorder(matrices(code_.y), result_, given(code_.y),
                           at({Operand::output, 0}, code_.y.offset(b, h, 0)));
  }

  /// `first`: of the rows of results, where the block's heads begin.
  void write_rows(int64_t b, int64_t h, int64_t row, int64_t first) {
    std::vector<Program::Argument> arguments{
        {DNNL_ARG_SRC, block_.queries, at(queries_, row * code_.q.columns, size_of(block_.queries))},
        {DNNL_ARG_WEIGHTS, block_.score_product.weights_desc(), keys_},
        {DNNL_ARG_DST, block_.scores, scores_}};
    if (code_.mask && !block_.sums_apart)
      arguments.push_back({block_.mask_argument(code_), block_.mask, mask_at(b, h, row)});
    program_.add(score_product_, block_.score_product.scratchpad_desc(), std::move(arguments));
    if (block_.sums_apart)
      program_.add(mask_sum_, block_.mask_sum.scratchpad_desc(),
                   {{DNNL_ARG_SRC_0, block_.scores, scores_},
                    {DNNL_ARG_SRC_1, block_.mask, mask_at(b, h, row)},
                    {DNNL_ARG_DST, block_.scores, scores_}});
    program_.add(softmax_, block_.softmax.scratchpad_desc(),
                 {{DNNL_ARG_SRC, block_.scores, scores_}, {DNNL_ARG_DST, block_.softmax.dst_desc(), weights_}});
    program_.add(value_product_, block_.value_product.scratchpad_desc(),
                 {{DNNL_ARG_SRC, block_.value_product.src_desc(), weights_},
                  {DNNL_ARG_WEIGHTS, block_.value_product.weights_desc(), values_},
                  {DNNL_ARG_DST, block_.value_product.dst_desc(), at(result_, (first + row) * code_.y.columns)}});
  }

  const AttentionCode& code_;
  const Block& block_;
  const bool direct_;  // the rows of results lie one after the other
  Program program_;
  const Operand queries_, keys_, values_, scores_, weights_, result_;
  const Product score_product_{block_.score_product}, value_product_{block_.value_product};
  const Softmax softmax_{block_.softmax};
  const Sum mask_sum_ = block_.sums_apart ? Sum(block_.mask_sum) : Sum();
};

Program load(const Attrs& attrs, const KernelShapes& shapes) {
  const AttentionCode code(attrs, shapes);
  const Block block(code, operands_of(attrs), bounded(attrs, "kilobytes", 1, 1 << 20));
  HONE_CHECK(static_cast<bool>(block), "oneDNN has no attention like the one in the plan");
  HONE_CHECK(block.steps(code) <= 64 * kMostSteps, "attention in the plan takes {} steps", block.steps(code));
  return Writer(code, block).write();
}

}  // namespace

const Family attention{"attention", propose, compile_attention, load};

}  // namespace hone::cpu::onednn
#endif
