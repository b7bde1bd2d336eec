// SPDX-License-Identifier: Apache-2.0
//
// Einsum of two f32 operands as one batched matmul, whatever the order of the axes: labels of both and of the result make
// the batch, those of one operand the rows or the columns, all others the sum. Each group is a table of offsets, so that
// packing reads any layout; the packed matmul is that of rnn/recurrent_kernel.h.
#include <algorithm>
#include <map>

#include "backends/cpu/rnn/recurrent_kernel.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/region_reader.h"
#include "base/checked.h"
#include "ops/einsum.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr int64_t kRows = 32, kColumns = 4 * kUnits;  // of an item
constexpr int64_t kMaxTable = 1 << 22;

std::string reason_against(const Problem& problem, const Node& node) {
  if (node.inputs.size() != 2) return fmt::format("{} operands", node.inputs.size());
  for (const Value* value : {node.input(0), node.input(1), node.output()})
    if (value->type.dtype != DType::f32) return fmt::format("an operand is {}, not f32", name_of(value->type.dtype));
  for (const Value* value : problem.region.nodes()[0]->inputs)
    if (value->type.shape.elements() == Dim(0)) return "empty operand";
  return {};
}

struct EinsumCode {
  NodeCode node;
  std::string equation;
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("equation", self.equation);
  }
};

/// A group of labels: how many combinations, and where each lies in both operands and in the result.
struct Group {
  Dims a{0}, b{0}, y{0};
  int64_t size() const { return static_cast<int64_t>(a.size()); }

  void add(int64_t count, int64_t a_stride, int64_t b_stride, int64_t y_stride) {
    HONE_CHECK(size() * count <= kMaxTable, "an Einsum in the plan is too large");
    const auto extend = [count](Dims& table, int64_t stride) {
      Dims next;
      next.reserve(table.size() * static_cast<size_t>(count));
      for (const int64_t offset : table)
        for (int64_t i = 0; i < count; ++i) next.push_back(offset + i * stride);
      table = std::move(next);
    };
    extend(a, a_stride), extend(b, b_stride), extend(y, y_stride);
  }
};

/// The stride of a label in a tensor; a label that stands twice walks the diagonal, one of size 1 is broadcast.
int64_t stride_of(char label, const std::string& labels, const Dims& dims) {
  const Dims strides = strides_of(dims);
  int64_t stride = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis)
    if (labels[axis] == label && dims[axis] != 1) stride += strides[axis];
  return stride;
}

class Einsum final : public CpuKernel {
 public:
  Einsum(const EinsumCode& code, const BoundNode& node, Isa isa)
      : kernels_(recurrent_kernels(isa)), a_(node.operand(0)), b_(node.operand(1)), y_(node.result()) {
    for (const ConcreteType* type : {&a_.type, &b_.type, &y_.type}) node.require(type->dtype == DType::f32);
    const EinsumEquation equation = parse_einsum(code.equation, {a_.type.dims.size(), b_.type.dims.size()});
    const std::string &in_a = equation.operands[0], &in_b = equation.operands[1];
    node.require(equation.result.size() == y_.type.dims.size());
    std::map<char, int64_t> sizes;
    const auto learn = [&](const std::string& labels, const Dims& dims) {
      for (size_t axis = 0; axis < dims.size(); ++axis) {
        int64_t& size = sizes.try_emplace(labels[axis], 1).first->second;
        node.require(dims[axis] > 0 && (size == 1 || dims[axis] == 1 || size == dims[axis]));
        size = std::max(size, dims[axis]);
      }
    };
    learn(in_a, a_.type.dims), learn(in_b, b_.type.dims);
    for (size_t axis = 0; axis < equation.result.size(); ++axis)
      node.require(y_.type.dims[axis] == sizes.at(equation.result[axis]));
    const auto has = [](const std::string& labels, char label) { return labels.find(label) != std::string::npos; };
    const std::string order =
        equation.result + in_a + in_b;  // those of the result first, so that it is written in order
    for (size_t i = 0; i < order.size(); ++i) {
      const char label = order[i];
      if (order.find(label) != i) continue;
      Group& group = !has(equation.result, label)           ? sum_
                     : has(in_a, label) && has(in_b, label) ? batch_
                     : has(in_a, label)                     ? rows_
                                                            : columns_;
      group.add(sizes.at(label), stride_of(label, in_a, a_.type.dims), stride_of(label, in_b, b_.type.dims),
                stride_of(label, equation.result, y_.type.dims));
    }
    require_sizes(Dims{batch_.size(), rows_.size(), columns_.size() + kColumns, sum_.size()});
    padded_ = (columns_.size() + kUnits - 1) / kUnits * kUnits;
    row_items_ = (rows_.size() + kRows - 1) / kRows;
    column_items_ = (padded_ + kColumns - 1) / kColumns;
    packed_b_ = batch_.size() * rows_.size() * sum_.size();
    results_ = packed_b_ + batch_.size() * padded_ * sum_.size();
    zeros_ = results_ + batch_.size() * rows_.size() * padded_;
  }

  int phases() const override { return 2; }
  bool serial() const override { return batch_.size() * rows_.size() * columns_.size() * sum_.size() < 32768; }
  size_t workspace_bytes() const override { return static_cast<size_t>(zeros_ + kColumns) * sizeof(float); }

  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    float* room = static_cast<float*>(bindings.workspace);
    if (phase == 0) {
      const Share rows = share_of(batch_.size() * rows_.size(), worker, workers),
                  panels = share_of(batch_.size() * (padded_ / kUnits), worker, workers);
      for (int64_t row = rows.begin; row < rows.end; ++row) pack_row(row, a_.as<float>(bindings), room);
      for (int64_t panel = panels.begin; panel < panels.end; ++panel)
        pack_panel(panel, b_.as<float>(bindings), room + packed_b_);
      if (worker == 0) std::fill_n(room + zeros_, kColumns, 0.0f);
      return;
    }
    const Share share = share_of(batch_.size() * row_items_ * column_items_, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item)
      multiply(item / (row_items_ * column_items_), item / column_items_ % row_items_ * kRows,
               item % column_items_ * kColumns, room, y_.as<float>(bindings));
  }

 private:
  void pack_row(int64_t row, const float* a, float* to) const {
    const float* from =
        a + batch_.a[static_cast<size_t>(row / rows_.size())] + rows_.a[static_cast<size_t>(row % rows_.size())];
    to += row * sum_.size();
    for (int64_t k = 0; k < sum_.size(); ++k) to[k] = from[sum_.a[static_cast<size_t>(k)]];
  }

  /// [batch][panel][k][unit], zeros behind the last column.
  void pack_panel(int64_t panel, const float* b, float* to) const {
    const int64_t panels = padded_ / kUnits, first = panel % panels * kUnits,
                  count = std::min(kUnits, columns_.size() - first);
    const float* from = b + batch_.b[static_cast<size_t>(panel / panels)];
    to += panel * sum_.size() * kUnits;
    for (int64_t k = 0; k < sum_.size(); ++k, to += kUnits) {
      const float* line = from + sum_.b[static_cast<size_t>(k)];
      for (int64_t u = 0; u < count; ++u) to[u] = line[columns_.b[static_cast<size_t>(first + u)]];
      std::fill(to + count, to + kUnits, 0.0f);
    }
  }

  void multiply(int64_t batch, int64_t row, int64_t column, float* room, float* y) const {
    const int64_t rows = std::min(kRows, rows_.size() - row), last = std::min(column + kColumns, padded_);
    const float* a = room + (batch * rows_.size() + row) * sum_.size();
    float* results = room + results_ + (batch * rows_.size() + row) * padded_;
    for (int64_t c = column; c < last; c += kUnits)
      kernels_.panel({a, room + packed_b_ + (batch * padded_ + c) * sum_.size(), room + zeros_, results + c, rows,
                      sum_.size(), kUnits, sum_.size(), kUnits, 0, padded_});
    float* to = y + batch_.y[static_cast<size_t>(batch)];
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = column; c < std::min(last, columns_.size()); ++c)
        to[rows_.y[static_cast<size_t>(row + r)] + columns_.y[static_cast<size_t>(c)]] = results[r * padded_ + c];
  }

  const RecurrentKernels kernels_;
  NodeOperand a_, b_;
  NodeResult y_;
  Group batch_, rows_, columns_, sum_;
  int64_t padded_ = 0, row_items_ = 0, column_items_ = 0;
  int64_t packed_b_ = 0, results_ = 0, zeros_ = 0;  // places in the workspace, in floats; the packed rows come first
};

struct EinsumFamily : NodeFamily<EinsumCode> {
  static constexpr std::string_view kName = "einsum";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !node->is(ops::einsum)) return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    offer_linear(problem, kName, out);
  }
  static Built<EinsumCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    Built<EinsumCode> built;
    built.code = {describe_node(problem, built.constants), single_node(problem)->attrs.text("equation")};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const EinsumCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    return std::make_shared<Einsum>(code, BoundNode(code.node, shapes, kName), info.isa);
  }
};

}  // namespace

const CpuTactic tactics::einsum = describe<EinsumFamily>();

}  // namespace hone::cpu
