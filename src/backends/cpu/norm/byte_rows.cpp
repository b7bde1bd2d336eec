// SPDX-License-Identifier: Apache-2.0
//
// Softmax and normalizations of rows whose operand comes as bytes, or whose result becomes bytes: both conversions happen a few rows at
// a time, in a worker's own memory, so that no tensor of floats passes through the caches.
#include <algorithm>
#include <array>

#include "backends/cpu/family.h"
#include "backends/cpu/norm/vector_kernels.h"
#include "backends/cpu/quant/quantize_loops.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "regions/region_match.h"

namespace hone::cpu {
namespace {

constexpr int64_t kWidened = 4096;  // elements at a time

enum class RowOperation { softmax, layer_norm, rms_norm };
constexpr std::array<std::string_view, 3> field_names(RowOperation) { return {"softmax", "layer_norm", "rms_norm"}; }

struct ByteRowsCode {
  RowOperation operation = RowOperation::softmax;
  int64_t row = 1;  // elements
  double epsilon = 0;
  bool scale = false, bias = false;  // constants, in this order
  Quantization operand = {}, result = {};
  static void fields(auto& self, auto& visit) {
    visit("operation", self.operation);
    visit("row", self.row, 1, kMostSize);
    visit("epsilon", self.epsilon);
    visit("scale", self.scale);
    visit("bias", self.bias);
    Quantization::fields(self.operand, visit, "operand");
    Quantization::fields(self.result, visit, "result");
  }
};

std::optional<RowOperation> operation_of(const Node& node) {
  if (node.is(ops::softmax)) return RowOperation::softmax;
  if (node.is(ops::layer_normalization)) return RowOperation::layer_norm;
  if (node.is(ops::rms_normalization)) return RowOperation::rms_norm;
  return std::nullopt;
}

/// DequantizeLinear, the operation, QuantizeLinear; one of the outer two may be missing.
struct ByteRows {
  const Node *before = nullptr, *node = nullptr, *behind = nullptr;
  RowOperation operation = RowOperation::softmax;
};
std::optional<ByteRows> read_byte_rows(const Graph& region) {
  std::vector<Node*> nodes = region.nodes();
  if (nodes.size() < 2 || nodes.size() > 3 || region.outputs().size() != 1) return std::nullopt;
  ByteRows rows;
  if (nodes.front()->is(ops::dequantize_linear)) rows.before = nodes.front(), nodes.erase(nodes.begin());
  if (nodes.back()->is(ops::quantize_linear)) rows.behind = nodes.back(), nodes.pop_back();
  const std::optional<RowOperation> operation = nodes.size() == 1 ? operation_of(*nodes[0]) : std::nullopt;
  if (!operation) return std::nullopt;
  rows.node = nodes[0], rows.operation = *operation;
  return rows;
}

std::string reason_against(const Graph& region, const ByteRows& rows) {
  const Node& node = *rows.node;
  const Shape& x = node.input(0)->type.shape;
  if (node.outputs.size() != 1 || node.output()->type.dtype != DType::f32 || x.elements() == Dim(0))
    return "results besides the normalised rows, no elements, or another type than f32";
  for (const Node* edge : {rows.before, rows.behind})
    if (edge != nullptr && !quantization_of(*edge)) return "a scale of bytes is not one number that is known";
  if (rows.before != nullptr && node.input(0) != rows.before->output()) return "bytes that are no rows";
  if (rows.behind != nullptr && rows.behind->input(0) != node.output()) return "bytes that are no rows";
  if (input_index(region, rows.before == nullptr ? node.input(0) : rows.before->input(0)) < 0)
    return "its operand is a constant";
  const size_t axis = normalize_axis(node.attrs.integer("axis"), x.rank());
  if (rows.operation == RowOperation::softmax) return axis + 1 == x.rank() ? "" : "its axis is not the innermost one";
  Dim row = 1;
  for (size_t i = axis; i < x.rank(); ++i) row = row * x[i];
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Value* parameter = node.input(i);
    if (parameter != nullptr && (!parameter->is_constant() || parameter->type.shape.elements() != row))
      return "a scale or bias of rows that is no constant, or is broadcast";
  }
  return {};
}

class ByteRowsKernel final : public CpuKernel {
 public:
  ByteRowsKernel(const ByteRowsCode& code, const KernelShapes& shapes, const CpuInfo& info)
      : code_(code),
        kernels_(vector_kernels(info.isa)),
        loops_(quantize_loops(info.isa)),
        rows_(elements(shapes.inputs[0].dims) / code.row),
        block_(std::max<int64_t>(1, kWidened / code.row)),
        room_((block_ * code.row + 15) / 16 * 16),
        workers_(info.workers) {}

  size_t workspace_bytes() const override { return sizeof(float) * static_cast<size_t>(room_ * workers_); }
  bool serial() const override { return rows_ * code_.row < 2048; }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const auto* x = static_cast<const std::byte*>(bindings.inputs[0]);
    auto* y = static_cast<std::byte*>(bindings.outputs[0]);
    float* room = static_cast<float*>(bindings.workspace) + worker * room_;
    const Share share = share_of(rows_, worker, workers);
    for (int64_t row = share.begin; row < share.end; row += block_) {
      const int64_t first = row * code_.row, rows = std::min(block_, share.end - row), count = rows * code_.row;
      const float* from = reinterpret_cast<const float*>(x) + first;
      float* to = code_.result ? room : reinterpret_cast<float*>(y) + first;
      if (code_.operand) from = to, widen(x + first, to, count);
      compute(from, to, rows, bindings);
      if (code_.result) narrow(to, y + first, count);
    }
  }

 private:
  void compute(const float* x, float* y, int64_t rows, const Bindings& bindings) const {
    const int64_t n = code_.row;
    if (code_.operation == RowOperation::softmax) {
      for (int64_t i = 0; i < rows; ++i) kernels_.softmax_row({x + i * n, y + i * n, n, 1, 1});
      return;
    }
    const auto constant = [&](size_t i) { return static_cast<const float*>(bindings.constants[i]); };
    const float *scale = code_.scale ? constant(0) : nullptr,
                *bias = code_.bias ? constant(code_.scale ? 1 : 0) : nullptr;
    const auto kernel = code_.operation == RowOperation::layer_norm ? kernels_.layer_norm : kernels_.rms_norm;
    kernel({x, scale, bias, y, rows, n, static_cast<float>(code_.epsilon)});
  }

  void widen(const std::byte* from, float* to, int64_t count) const {
    const auto zero = static_cast<float>(code_.operand.zero);
    if (code_.operand.dtype == DType::i8)
      loops_.from_i8(reinterpret_cast<const int8_t*>(from), to, count, code_.operand.scale, zero);
    else loops_.from_u8(reinterpret_cast<const uint8_t*>(from), to, count, code_.operand.scale, zero);
  }
  void narrow(const float* from, std::byte* to, int64_t count) const {
    const auto zero = static_cast<float>(code_.result.zero);
    if (code_.result.dtype == DType::i8)
      loops_.to_i8(from, reinterpret_cast<int8_t*>(to), count, code_.result.scale, zero);
    else loops_.to_u8(from, reinterpret_cast<uint8_t*>(to), count, code_.result.scale, zero);
  }

  ByteRowsCode code_;
  const VectorKernels& kernels_;
  QuantizeLoops loops_;
  int64_t rows_, block_, room_, workers_;  // rows of a tensor and of a block; floats of a worker
};

struct ByteRowsFamily {
  static constexpr std::string_view kName = "byte_rows";
  static constexpr int kVersion = 1;
  static constexpr Cost kCost = {.operands = 3};
  using Params = NoParams;
  using Code = ByteRowsCode;

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const std::optional<ByteRows> rows = read_byte_rows(problem.region);
    if (!rows) return;
    if (std::string reason = reason_against(problem.region, *rows); !reason.empty())
      return out.refuse(kName, std::move(reason));
    out.offer({"cpu", std::string(kName), {}, {Layout::linear}, {Layout::linear}});
  }

  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    const ByteRows rows = *read_byte_rows(problem.region);
    const Node& node = *rows.node;
    const Dims x = node.input(0)->type.shape.values();
    const bool softmax = rows.operation == RowOperation::softmax;
    Built<Code> built{{.operation = rows.operation,
                       .row = elements(std::span(x).subspan(normalize_axis(node.attrs.integer("axis"), x.size()))),
                       .epsilon = softmax ? 0 : node.attrs.real("epsilon"),
                       .scale = !softmax && node.input(1) != nullptr,
                       .bias = !softmax && node.input(2) != nullptr}};
    if (rows.before != nullptr) built.code.operand = quantization_of(*rows.before);
    if (rows.behind != nullptr) built.code.result = quantization_of(*rows.behind);
    for (const size_t i : {size_t{1}, size_t{2}})
      if (const Value* parameter = softmax ? nullptr : node.input(i); parameter != nullptr)
        built.constants.push_back(write_doubles(DType::f32, {built.code.row}, read_doubles(*parameter->constant)));
    return built;
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes&, const CpuInfo&) {
    return std::vector<ConstantSpec>(size_t{code.scale} + size_t{code.bias}, {DType::f32, {code.row}});
  }

  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const auto is_edge = [](const Quantization& type) {
      return !type || type.dtype == DType::u8 || type.dtype == DType::i8;
    };
    HONE_CHECK(shapes.inputs.size() == 1 && shapes.outputs.size() == 1 && is_edge(code.operand) && is_edge(code.result),
               "rows of bytes in the plan have {} operands", shapes.inputs.size());
    const ConcreteType &x = shapes.inputs[0], &y = shapes.outputs[0];
    HONE_CHECK(x.dtype == code.operand.dtype && y.dtype == code.result.dtype && x.dims == y.dims &&
                   x.layout == Layout::linear && y.layout == Layout::linear && elements(x.dims) % code.row == 0,
               "rows of bytes in the plan turn {} into {}", join_dims(x.dims), join_dims(y.dims));
    return std::make_shared<ByteRowsKernel>(code, shapes, info);
  }
};

}  // namespace

const CpuTactic tactics::byte_rows = describe<ByteRowsFamily>();

}  // namespace hone::cpu
