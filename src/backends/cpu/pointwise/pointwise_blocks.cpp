// SPDX-License-Identifier: Apache-2.0
//
// Pointwise chains of any element type and any function, on every processor: an interpreter that does one instruction for a
// block of elements at a time, so that decoding costs nothing and the compiler vectorises the plain ones. Floats are computed
// in double precision, integers and bools in 64 bits, as the reference does.
#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/family.h"
#include "backends/cpu/support/number.h"
#include "regions/pointwise_program.h"

namespace hone::cpu {
namespace {

constexpr int64_t kBlock = 128;
constexpr size_t kMaxInstructionsHere = 48;  // kBlock numbers each, on the stack

struct BlocksCode {
  PointwiseProgram program;
  bool floating = false;  // computed in double precision, otherwise in 64 bits
  static void fields(auto& self, auto& visit) {
    PointwiseProgram::fields(self.program, visit);
    visit("floating", self.floating);
  }
};

template <typename Number>
void load_elements(DType dtype, const void* base, int64_t offset, int64_t stride, int64_t count, Number* to) {
  visit(dtype, [&]<typename T>() {
    const T* from = static_cast<const T*>(base) + offset;
    for (int64_t i = 0; i < count; ++i) to[i] = narrowed<Number>(comparable(from[i * stride]));
  });
}

template <typename Number>
void store_elements(DType dtype, void* base, int64_t offset, int64_t stride, int64_t count, const Number* from) {
  visit(dtype, [&]<typename T>() {
    T* to = static_cast<T*>(base) + offset;
    for (int64_t i = 0; i < count; ++i) to[i * stride] = narrowed<T>(from[i]);
  });
}

/// One instruction on scalars, by the meaning of the formulas: for what has no loop of its own.
template <typename Number>
Number apply(const Expr& expr, Number a, Number b, Number c) {
  const Number operands[] = {a, b, c};
  if constexpr (std::is_same_v<Number, double>) return expr.evaluate(operands);
  else return evaluate_integer(expr, operands);
}

Expr single(ExprKind kind) {
  std::vector<ExprNode> nodes;
  for (int i = 0; i < 3; ++i)
    nodes.push_back({.kind = ExprKind::input, .number = 0, .input = i, .attribute = {}, .operands = {}});
  nodes.push_back({.kind = kind, .number = 0, .input = 0, .attribute = {}, .operands = {0, 1, 2}});
  return Expr(std::move(nodes));
}

class PointwiseBlocks final : public CpuKernel {
 public:
  PointwiseBlocks(PointwiseProgram program, const KernelShapes& shapes, bool floating)
      : program_(std::move(program)),
        result_(shapes.outputs[0].dtype),
        nest_(make_nest(shapes.outputs[0], operand_types(program_, shapes))),
        floating_(floating) {
    for (const PointwiseProgram::Instruction& instruction : program_.instructions) {
      const bool leaf = instruction.kind == ExprKind::input || instruction.kind == ExprKind::number;
      formulas_.push_back(leaf ? Expr() : single(instruction.kind));
    }
    for (const PointwiseProgram::Operand& operand : program_.operands) {
      Dims& numbers = sizes_.emplace_back();
      for (const std::string& text : operand.sizes) numbers.push_back(Dim::parse(text).evaluate(shapes.symbols));
    }
    row_ = nest_.sizes.back();
    blocks_ = (row_ + kBlock - 1) / kBlock;
    for (size_t i = 0; i + 1 < nest_.sizes.size(); ++i) rows_ *= nest_.sizes[i];
  }

  bool serial() const override { return rows_ * row_ <= kBlock; }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(rows_ * blocks_, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t row = item / blocks_, column = item % blocks_ * kBlock;
      if (floating_) run_block<double>(row, column, bindings);
      else run_block<int64_t>(row, column, bindings);
    }
  }

 private:
  const void* base_of(size_t k, const Bindings& bindings) const {
    const PointwiseProgram::Operand& operand = program_.operands[k];
    if (!operand.sizes.empty()) return sizes_[k].data();
    return operand.constant ? bindings.constants[static_cast<size_t>(operand.index)]
                            : bindings.inputs[static_cast<size_t>(operand.index)];
  }

  template <typename Number>
  void run_block(int64_t row, int64_t column, const Bindings& bindings) const {
    alignas(64) Number values[kMaxInstructionsHere][kBlock];
    const int64_t count = std::min(kBlock, row_ - column);
    const auto offset_of = [&](const Dims& strides) {
      int64_t offset = column * strides.back(), rest = row;
      for (size_t axis = nest_.sizes.size() - 1; axis-- > 0; rest /= nest_.sizes[axis])
        offset += rest % nest_.sizes[axis] * strides[axis];
      return offset;
    };
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const PointwiseProgram::Instruction& instruction = program_.instructions[i];
      if (instruction.kind == ExprKind::input) {
        const size_t k = static_cast<size_t>(instruction.operands[0]);
        load_elements(program_.operands[k].dtype, base_of(k, bindings), offset_of(nest_.strides[k]),
                      nest_.strides[k].back(), count, values[i]);
      } else if (instruction.kind == ExprKind::number) {
        std::fill_n(values[i], count, narrowed<Number>(instruction.number));
      } else {
        const auto operand = [&](int k) {
          return instruction.operands[k] >= 0 ? values[instruction.operands[k]] : values[0];
        };
        run_instruction(formulas_[i], instruction.kind, operand(0), operand(1), operand(2), values[i], count);
      }
    }
    store_elements(result_, bindings.outputs[0], offset_of(nest_.result), nest_.result.back(), count,
                   values[program_.instructions.size() - 1]);
  }

  template <typename Number>
  static void run_instruction(const Expr& formula, ExprKind kind, const Number* a, const Number* b, const Number* c,
                              Number* d, int64_t count) {
    const auto each = [&](auto operation) {
      for (int64_t i = 0; i < count; ++i) d[i] = operation(i);
    };
    if constexpr (std::is_same_v<Number, double>) {
      switch (kind) {
        case ExprKind::add: return each([&](int64_t i) { return a[i] + b[i]; });
        case ExprKind::subtract: return each([&](int64_t i) { return a[i] - b[i]; });
        case ExprKind::multiply: return each([&](int64_t i) { return a[i] * b[i]; });
        case ExprKind::divide: return each([&](int64_t i) { return a[i] / b[i]; });
        default: break;
      }
    }
    switch (kind) {
      case ExprKind::less: return each([&](int64_t i) { return Number(a[i] < b[i]); });
      case ExprKind::less_equal: return each([&](int64_t i) { return Number(a[i] <= b[i]); });
      case ExprKind::equal: return each([&](int64_t i) { return Number(a[i] == b[i]); });
      case ExprKind::not_equal: return each([&](int64_t i) { return Number(a[i] != b[i]); });
      case ExprKind::logical_not: return each([&](int64_t i) { return Number(a[i] == 0); });
      case ExprKind::logical_and: return each([&](int64_t i) { return Number((a[i] != 0) & (b[i] != 0)); });
      case ExprKind::logical_or: return each([&](int64_t i) { return Number((a[i] != 0) | (b[i] != 0)); });
      case ExprKind::select: return each([&](int64_t i) { return a[i] != 0 ? b[i] : c[i]; });
      default: return each([&](int64_t i) { return apply<Number>(formula, a[i], b[i], c[i]); });
    }
  }

  PointwiseProgram program_;
  DType result_;
  LoopNest nest_;
  bool floating_;
  std::vector<Expr> formulas_;  // per instruction
  std::vector<Dims> sizes_;     // per operand: numbers that follow from the input shapes
  int64_t row_ = 1, rows_ = 1, blocks_ = 1;
};

struct BlocksFamily {
  static constexpr std::string_view kName = "pointwise_blocks";
  static constexpr int kVersion = 1;
  static constexpr Cost kCost = {.operands = 25};
  using Params = NoParams;
  using Code = BlocksCode;

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    if (!is_pointwise_region(problem.region)) return;
    if (scales_bytes(problem.region)) return out.refuse(kName, "does not round on the way to bytes");
    ProgramResult result = make_program(problem);
    if (result.refusal.empty() && result.program.instructions.size() > kMaxInstructionsHere)
      result.refusal = "too long";
    // One domain for the whole program: a chain may not change between integers and floats on the way.
    if (result.refusal.empty() && problem.region.node_count() > 1)
      for (const Node* node : problem.region.nodes())
        if (const DType dtype = node->output()->type.dtype; dtype != DType::f32 && dtype != DType::bf16)
          result.refusal = "a step is not f32 or bf16";
    if (!result.refusal.empty()) return out.refuse(kName, std::move(result.refusal));
    const size_t rank = problem.region.outputs()[0]->type.shape.rank();
    for (const Layout layout : {Layout::linear, Layout::channels_last}) {
      if (layout == Layout::channels_last && (rank < 3 || rank > 5)) continue;
      std::vector<Layout> in;
      for (const Value* input : problem.region.inputs())
        in.push_back(input->type.shape.rank() == rank ? layout : Layout::linear);
      out.offer({"cpu", std::string(kName), {}, std::move(in), {layout}});
    }
  }
  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    ProgramResult result = make_program(problem);
    bool floating = false;
    for (const Node* node : problem.region.nodes())
      for (const Value* value : node->inputs) floating |= is_float(value->type.dtype);
    return {{std::move(result.program), floating}, std::move(result.constants)};
  }
  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes&, const CpuInfo&) {
    return program_constants(code.program);
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo&) {
    HONE_CHECK(code.program.instructions.size() <= kMaxInstructionsHere, "a pointwise kernel in the plan is too long");
    HONE_CHECK(shapes.outputs.size() == 1 && !is_object(shapes.outputs[0].dtype) && !is_small(shapes.outputs[0].dtype),
               "a pointwise kernel in the plan has no numeric result");
    return std::make_shared<PointwiseBlocks>(code.program, shapes, code.floating);
  }
};

}  // namespace

const CpuTactic tactics::pointwise_blocks = describe<BlocksFamily>();

}  // namespace hone::cpu
