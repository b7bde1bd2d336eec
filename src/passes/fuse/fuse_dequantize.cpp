// SPDX-License-Identifier: Apache-2.0
//
// DequantizeLinear (or DequantizeTable) of constant weights joins the matmul that reads it: QuantizedLinear, whose weights stay codes of
// few bits in one form: [K, N], a scale and perhaps a zero point for each block of rows of each column. Where the device has no kernels
// for it the weights are folded to floats instead.
#include <algorithm>
#include <cmath>

#include "ops/ops.h"
#include "ops/support.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

/// What a value is or a Cast makes of a constant, which is not folded yet.
std::optional<Tensor> constant_behind(const Value* value) {
  if (value->is_constant()) return *value->constant;
  const Node* cast = producer(value, ops::cast);
  if (cast == nullptr || !cast->input(0)->is_constant()) return std::nullopt;
  return evaluate_node(*cast, {&*cast->input(0)->constant})[0];
}

/// Codes that kernels read; floats of eight bits where all are numbers, since those of E4M3 are read without looking for others.
bool are_codes(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  if (dtype == DType::f8e4m3fn || dtype == DType::f8e5m2)
    return std::ranges::all_of(tensor.codes(),
                               [dtype](uint8_t code) { return std::isfinite(small_to_float(dtype, code)); });
  return dtype == DType::f4e2m1 || (is_integer(dtype) && bits_of(dtype) <= 8);
}

/// DequantizeLinear or DequantizeTable of a constant matrix, perhaps with a Transpose behind.
class QuantizedMatrix {
 public:
  /// `transposed`: the product reads it as [N, K]. Nothing where it is no such matrix.
  static std::optional<QuantizedMatrix> read(const Value* value, bool transposed) {
    QuantizedMatrix matrix;
    if (const Node* turn = producer(value, ops::transpose);
        turn != nullptr && turn->attrs.integers("perm") == Dims{1, 0}) {
      matrix.parts_.push_back(turn);
      transposed = !transposed;
      value = turn->input(0);
    }
    const Node* node = value->producer;
    if (node == nullptr || !(node->is(ops::dequantize_linear) || node->is(ops::dequantize_table)) ||
        !is_float(node->output()->type.dtype) || !node->input(0)->is_constant() || !matrix.read_numbers(*node) ||
        !matrix.read_blocks(*node, transposed))
      return std::nullopt;
    matrix.parts_.push_back(node);
    return matrix;
  }

  Value* weights(Graph& graph) const {
    Value* given = parts_.back()->input(0);
    if (!transposed_) return given;
    TensorBuilder turned(given->type.dtype, {k_, n_});
    const std::byte* from = given->constant->bytes().data();
    for (int64_t p = 0; p < k_; ++p)
      for (int64_t j = 0; j < n_; ++j) turned.bytes()[p * n_ + j] = from[j * k_ + p];
    return graph.add_constant(turned.finish(), given->name);
  }
  Value* scales(Graph& graph) const { return graph.add_constant(by_blocks(*scales_)); }
  Value* zeros(Graph& graph) const { return zeros_ ? graph.add_constant(by_blocks(*zeros_)) : nullptr; }
  int64_t block() const { return block_; }
  std::string table() const {
    const Node& node = *parts_.back();
    return node.is(ops::dequantize_table) ? node.attrs.text("table") : std::string();
  }
  const std::vector<const Node*>& parts() const { return parts_; }

 private:
  bool read_numbers(const Node& node) {
    scales_ = constant_behind(node.input(1));
    const Value* zeros = node.input(2);
    if (zeros != nullptr) zeros_ = constant_behind(zeros);
    if (!scales_ || (zeros != nullptr && !zeros_) || (zeros_ && zeros_->size() != scales_->size())) return false;
    return !is_float(node.input(0)->type.dtype) || hold_floats();
  }

  /// Codes that are floats have no zero points, and scales that leave room for 2^8.
  bool hold_floats() {
    constexpr double kMostScale = 0x1p100;
    if (zeros_ && std::ranges::any_of(numbers_of(*zeros_), [](double zero) { return zero != 0; })) return false;
    zeros_.reset();
    return std::ranges::all_of(numbers_of(*scales_), [](double scale) { return std::fabs(scale) < kMostScale; });
  }

  /// One scale for all, one for each column, or one for each block of a column.
  bool read_blocks(const Node& node, bool transposed) {
    const Tensor& codes = *node.input(0)->constant;
    if (codes.dims().size() != 2 || !are_codes(codes) || codes.size() == 0) return false;
    transposed_ = transposed;
    k_ = codes.dims()[transposed ? 1 : 0], n_ = codes.dims()[transposed ? 0 : 1];
    const int64_t given = node.attrs.integer_or("axis", 0), axis = given < 0 ? given + 2 : given,
                  block = node.attrs.integer("block_size"), column_axis = transposed ? 0 : 1;
    const bool blocked = block > 0 && scales_->size() != 1;
    block_ = blocked ? std::min(block, k_) : k_;
    blocks_ = (k_ + block_ - 1) / block_;
    if (scales_->size() == 1) return true;
    return scales_->size() == blocks_ * n_ && (axis == column_axis) != blocked;
  }

  /// [blocks, N]
  Tensor by_blocks(const Tensor& tensor) const {
    const std::vector<double> from = numbers_of(tensor);
    std::vector<double> result(static_cast<size_t>(blocks_ * n_));
    for (int64_t i = 0; i < blocks_; ++i)
      for (int64_t j = 0; j < n_; ++j)
        result[static_cast<size_t>(i * n_ + j)] =
            from[from.size() == 1 ? 0 : static_cast<size_t>(transposed_ ? j * blocks_ + i : i * n_ + j)];
    return write_doubles(tensor.dtype(), {blocks_, n_}, result);
  }

  std::vector<const Node*> parts_;
  std::optional<Tensor> scales_, zeros_;
  bool transposed_ = false;
  int64_t k_ = 0, n_ = 0, block_ = 0, blocks_ = 0;
};

/// Whether the device multiplies x by codes in the type that x has or will have. Where activations are codes as well, kernels that
/// round their results are worth more than reading fewer bytes of weights.
bool has_kernels(const Node& node, const PassContext& context) {
  const Value* x = node.input(0);
  if (x->type.dtype == DType::f32 && context.quantized_weights) return true;
  if (!context.half_quantized_weights || producer(x, ops::dequantize_linear) != nullptr) return false;
  const bool narrowed = context.precision != DType::f32 && !(context.keeps_f32 && context.keeps_f32(node));
  return x->type.dtype == DType::f32 ? narrowed : x->type.dtype == DType::f16 || x->type.dtype == DType::bf16;
}

void fuse(Graph& graph, Node* node, const PassContext& context) {
  const bool gemm = node->is(ops::gemm), transposed = gemm && node->attrs.integer("transB") != 0;
  Value *x = node->input(0), *bias = gemm ? node->input(2) : nullptr;
  if (gemm && (node->attrs.integer("transA") != 0 || node->attrs.real("alpha") != 1)) return;
  if (bias != nullptr && node->attrs.real("beta") != 1) return;
  if (x->is_constant() || x->type.shape.rank() < 2 || !has_kernels(*node, context)) return;
  const std::optional<QuantizedMatrix> matrix = QuantizedMatrix::read(node->input(1), transposed);
  if (!matrix) return;
  context.report_fusion(matrix->parts().back()->name, node->name);
  std::vector<const Node*> parts = matrix->parts();
  parts.push_back(node);
  std::vector<Value*> inputs{x, matrix->weights(graph), matrix->scales(graph)};
  if (Value* zeros = matrix->zeros(graph)) inputs.push_back(zeros);
  Value* result = insert_for(graph, node, ops::quantized_linear, std::move(inputs),
                             {{"block_size", matrix->block()}, {"table", matrix->table()}}, parts)
                      ->output();
  if (bias != nullptr) result = insert_for(graph, node, ops::add, {result, bias}, {}, {node})->output();
  graph.replace(node->output(), result);
}

}  // namespace

void fuse_dequantize(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes())
    if (node->is(ops::mat_mul) || node->is(ops::gemm)) fuse(graph, node, context);
}

}  // namespace hone::passes
