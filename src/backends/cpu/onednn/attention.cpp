// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale q kT + mask) v with operands rounded to bf16; Hone's own kernel computes it in f32. The scores of a block of
// queries of one head, or of some whole heads, stay in the cache: matmul, softmax and matmul are primitives that follow one
// another block by block. All blocks are of one size, so that one primitive of each kind serves them: the last ones overlap
// and compute some rows twice.
#include "backends/cpu/onednn/support.h"

#if HONE_WITH_ONEDNN
#include "regions/attention_region.h"

namespace hone::cpu::onednn {
namespace {

using Matmul = dnnl::matmul;
using Softmax = dnnl::softmax_forward;
using Sum = dnnl::binary;

constexpr int64_t kScoreKilobytes[] = {1024, 256};  // of a worker's part of a block: half of a common L2, and less
constexpr int64_t kFewestRows = 32;                 // below, matmuls do not pay for reading all keys
constexpr int64_t kMostSteps = 2000;                // each costs some microseconds

struct BlockParams {
  int64_t kilobytes = 1;  // of scores
  OperandType operands;
  static void fields(auto& self, auto& visit) {
    visit("kilobytes", self.kilobytes, 1, 1 << 20);
    OperandType::fields(self.operands, visit);
  }
};

struct BlockedAttention {
  AttentionCode attention;
  BlockParams block;
  static void fields(auto& self, auto& visit) {
    AttentionCode::fields(self.attention, visit);
    BlockParams::fields(self.block, visit);
  }
};

/// Even pieces of at most `most`.
struct Pieces {
  int64_t total, count, size;
  Pieces(int64_t all, int64_t most) : total(all), count((all + most - 1) / most), size((all + count - 1) / count) {}
  int64_t begin(int64_t i) const { return std::min(i * size, total - size); }
};

/// Whether matrix after matrix, through all heads of all images, lies at one stride.
bool is_even(const HeadTensor& t) { return t.batch == 1 || t.heads == 1 || t.batch_stride == t.heads * t.head_stride; }
int64_t matrix_stride(const HeadTensor& t) { return t.heads == 1 ? t.batch_stride : t.head_stride; }

bool differs(const AttentionLayer& layer, size_t axis) { return layer.mask && layer.mask->dims[axis] != 1; }

/// Matrices (heads of an image, or of all) out of which blocks may take several.
int64_t matrices_together(const AttentionLayer& layer) {
  if (layer.queries_per_key() != 1) return 1;
  const bool even = is_even(layer.q) && is_even(layer.k) && is_even(layer.v) && is_even(layer.y),
             even_mask = layer.q.batch == 1 || layer.q.heads == 1 || differs(layer, 0) == differs(layer, 1);
  return even && even_mask ? layer.q.batch * layer.q.heads : layer.q.heads;
}

Dims mask_dims(const AttentionLayer& layer, int64_t together, int64_t matrices, int64_t rows) {
  const bool each_its_own = differs(layer, 1) || (together > layer.q.heads && differs(layer, 0));
  return {each_its_own ? matrices : 1, differs(layer, 2) ? rows : 1, layer.mask->dims[3]};
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
  Matmul::primitive_desc score_matmul, value_matmul;
  Softmax::primitive_desc softmax;
  bool sums_apart = false;  // one matrix of masks to several of scores: a matmul has only its reference for that
  Sum::primitive_desc mask_sum;

  Block(const AttentionLayer& layer, const BlockParams& params)
      : together(matrices_together(layer)),
        heads(together, std::max<int64_t>(1, scores_of(params.kilobytes) / (layer.q.rows * layer.k.rows))),
        rows(layer.q.rows,
             heads.size > 1 ? layer.q.rows : std::max(kFewestRows, scores_of(params.kilobytes) / layer.k.rows)) {
    const ElementType operands = params.operands.element();
    const int64_t keys = layer.k.rows, depth = layer.q.columns;
    const Dims dims{heads.size, rows.size, keys};
    all_queries = plain_desc({heads.size, layer.q.rows, depth}, operands);
    queries = plain_desc({heads.size, rows.size, depth}, operands);
    scores = plain_desc(dims);
    dnnl::post_ops ops;
    if (layer.scale != 1) ops.append_eltwise(dnnl::algorithm::eltwise_linear, layer.scale, 0);
    if (layer.mask) {
      mask = plain_desc(mask_dims(layer, together, heads.size, rows.size));
      sums_apart = heads.size > 1 && mask.get_dims()[0] == 1 && mask.get_dims()[1] > 1;
      if (sums_apart) mask_sum = {engine(), dnnl::algorithm::binary_add, scores, mask, scores, attr_with(), true};
      else ops.append_binary(dnnl::algorithm::binary_add, mask);
    }
    const Desc weights = plain_desc(dims, operands);
    score_matmul = {engine(), queries, any_desc({heads.size, depth, keys}, operands), scores, attr_with(ops), true};
    softmax = {engine(),
               dnnl::prop_kind::forward_inference,
               dnnl::algorithm::softmax_accurate,
               scores,
               weights,
               2,
               attr_with(),
               true};
    value_matmul = {engine(),
                    weights,
                    any_desc({heads.size, keys, layer.v.columns}, operands),
                    plain_desc({heads.size, rows.size, layer.v.columns}),
                    attr_with(),
                    true};
  }

  explicit operator bool() const { return score_matmul && softmax && value_matmul && (!sums_apart || mask_sum); }
  bool fast() const {
    return is_fast(score_matmul) && is_fast(softmax) && is_fast(value_matmul) && (!sums_apart || is_fast(mask_sum));
  }
  int64_t steps(const AttentionLayer& layer) const {
    return layer.q.batch * layer.q.heads / together * heads.count * (4 + (sums_apart ? 4 : 3) * rows.count);
  }
  int mask_argument(const AttentionLayer& layer) const {
    return DNNL_ARG_ATTR_MULTIPLE_POST_OP(layer.scale != 1 ? 1 : 0) | DNNL_ARG_SRC_1;
  }

 private:
  static int64_t scores_of(int64_t kilobytes) { return std::max<int64_t>(1, kilobytes * 256 * omp_get_max_threads()); }
};

/// The steps of a launch.
class Writer {
 public:
  Writer(const AttentionLayer& layer, const Block& block)
      : layer_(layer),
        block_(block),
        direct_(layer.y.row_stride == layer.y.columns),
        queries_(program_.reserve(block.all_queries.get_size())),
        keys_(program_.reserve(block.score_matmul.weights_desc().get_size())),
        values_(program_.reserve(block.value_matmul.weights_desc().get_size())),
        scores_(program_.reserve(block.scores.get_size())),
        weights_(program_.reserve(block.softmax.dst_desc().get_size())),
        result_(direct_ ? Operand{Operand::output, 0} : program_.reserve(matrices(layer.y).get_size())) {}

  Program write() && {
    for (int64_t first = 0; first < layer_.q.batch * layer_.q.heads; first += block_.together)
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

  static Operand input(const hone::OperandCode& operand, const HeadTensor& t, int64_t b, int64_t head) {
    return at(operand_of(operand), t.offset(b, head, 0));
  }

  Operand mask_at(int64_t b, int64_t h, int64_t row) const {
    return at(operand_of(layer_.mask_operand), layer_.mask->offset(b, h, row));
  }

  void write_heads(int64_t matrix) {
    const int64_t b = matrix / layer_.q.heads, h = matrix % layer_.q.heads, shared = layer_.shared_head(h);
    program_.add_reorder(given(layer_.q), input(layer_.q_operand, layer_.q, b, h), block_.all_queries, queries_);
    if (h % layer_.queries_per_key() == 0) {
      program_.add_reorder(given(layer_.k, true), input(layer_.k_operand, layer_.k, b, shared),
                           block_.score_matmul.weights_desc(), keys_);
      program_.add_reorder(given(layer_.v), input(layer_.v_operand, layer_.v, b, shared),
                           block_.value_matmul.weights_desc(), values_);
    }
    const int64_t first = direct_ ? matrix * layer_.y.rows : 0;
    for (int64_t i = 0; i < block_.rows.count; ++i) write_rows(b, h, block_.rows.begin(i), first);
    if (!direct_)
      program_.add_reorder(matrices(layer_.y), result_, given(layer_.y),
                           at({Operand::output, 0}, layer_.y.offset(b, h, 0)));
  }

  /// `first`: of the rows of results, where the block's heads begin.
  void write_rows(int64_t b, int64_t h, int64_t row, int64_t first) {
    std::vector<Program::Argument> arguments{
        {DNNL_ARG_SRC, block_.queries, at(queries_, row * layer_.q.columns, size_of(block_.queries))},
        {DNNL_ARG_WEIGHTS, block_.score_matmul.weights_desc(), keys_},
        {DNNL_ARG_DST, block_.scores, scores_}};
    if (layer_.mask && !block_.sums_apart)
      arguments.push_back({block_.mask_argument(layer_), block_.mask, mask_at(b, h, row)});
    program_.add(score_matmul_, block_.score_matmul.scratchpad_desc(), std::move(arguments));
    if (block_.sums_apart)
      program_.add(mask_sum_, block_.mask_sum.scratchpad_desc(),
                   {{DNNL_ARG_SRC_0, block_.scores, scores_},
                    {DNNL_ARG_SRC_1, block_.mask, mask_at(b, h, row)},
                    {DNNL_ARG_DST, block_.scores, scores_}});
    program_.add(softmax_, block_.softmax.scratchpad_desc(),
                 {{DNNL_ARG_SRC, block_.scores, scores_}, {DNNL_ARG_DST, block_.softmax.dst_desc(), weights_}});
    program_.add(value_matmul_, block_.value_matmul.scratchpad_desc(),
                 {{DNNL_ARG_SRC, block_.value_matmul.src_desc(), weights_},
                  {DNNL_ARG_WEIGHTS, block_.value_matmul.weights_desc(), values_},
                  {DNNL_ARG_DST, block_.value_matmul.dst_desc(), at(result_, (first + row) * layer_.y.columns)}});
  }

  const AttentionLayer& layer_;
  const Block& block_;
  const bool direct_;  // the rows of results lie one after the other
  Program program_;
  const Operand queries_, keys_, values_, scores_, weights_, result_;
  const Matmul score_matmul_{block_.score_matmul}, value_matmul_{block_.value_matmul};
  const Softmax softmax_{block_.softmax};
  const Sum mask_sum_ = block_.sums_apart ? Sum(block_.mask_sum) : Sum();
};

struct AttentionFamily {
  static constexpr std::string_view kName = "attention";
  static constexpr int kVersion = 1;
  static constexpr Cost kCost = {.arithmetic = 5, .operands = 8};
  using Params = BlockParams;
  using Code = BlockedAttention;

  static void propose(const Problem& problem, Candidates& out) {
    const std::optional<AttentionRegion> region = read_attention_region(problem);
    if (!region) return;
    if (!may_round(problem)) return out.refuse(kName, "computes with operands in bf16 only");
    if (!region->refusal.empty()) return out.refuse(kName, region->refusal);
    const AttentionLayer layer(region->code, shapes_of(problem.region, {}, problem.symbols));
    const std::vector<Layout> in(problem.region.inputs().size(), Layout::linear);
    int64_t scores_before = 0;
    for (const int64_t kilobytes : kScoreKilobytes) {
      const BlockParams params{kilobytes, OperandType(ElementType::bf16)};
      const Block block(layer, params);
      if (!block || !block.fast()) return out.refuse(kName, "the library has only its reference implementation");
      const int64_t scores = block.heads.size * block.rows.size;
      if (block.steps(layer) > kMostSteps) out.refuse(kName, fmt::format("takes {} steps", block.steps(layer)));
      else if (scores != scores_before)
        out.offer({"onednn", std::string(kName), write_fields(params), in, {Layout::linear}});
      scores_before = scores;
    }
  }

  static Built<Code> compile(const Problem& problem, const Params& params, const Tactic&) {
    AttentionRegion region = *read_attention_region(problem);
    return {{std::move(region.code), params}, std::move(region.constants)};
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes&) {
    return operand_constants(code.attention.operands);
  }

  static Program load(const Code& code, const KernelShapes& shapes) {
    const AttentionLayer layer(code.attention, shapes);
    const Block block(layer, code.block);
    HONE_CHECK(static_cast<bool>(block), "oneDNN has no attention like the one in the plan");
    HONE_CHECK(block.steps(layer) <= 64 * kMostSteps, "attention in the plan takes {} steps", block.steps(layer));
    return Writer(layer, block).write();
  }
};

}  // namespace

const Family attention = family_of<AttentionFamily>();

}  // namespace hone::cpu::onednn
#endif
