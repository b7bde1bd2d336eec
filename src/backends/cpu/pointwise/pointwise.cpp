// SPDX-License-Identifier: Apache-2.0
//
// A fused chain of pointwise nodes as one pass over memory with generated code.
//
// Work is cut into blocks of a few rows, or of a part of a long row; a part begins on a whole vector, so only the end of a
// row has a partial one.
#include <algorithm>

#include "backends/cpu/family.h"
#include "backends/cpu/pointwise/pointwise_code.h"
#include "ir/op.h"
#include "regions/byte_table.h"

namespace hone::cpu {
namespace {

constexpr int64_t kBlockElements = 4096;

/// Every full-size operand in `layout`; what is only broadcast along stays as it is.
Tactic tactic_in(Layout layout, const Problem& problem) {
  const size_t rank = problem.region.outputs()[0]->type.shape.rank();
  std::vector<Layout> in;
  for (const Value* input : problem.region.inputs())
    in.push_back(input->type.shape.rank() == rank ? layout : Layout::linear);
  return {"cpu", "pointwise", {}, std::move(in), {layout}};
}

/// Bytes that no scale makes numbers of wrap around.
bool counts_in_bytes(const Node& node) {
  const auto is_byte = [](const Value* value) {
    return value->type.dtype == DType::u8 || value->type.dtype == DType::i8;
  };
  return node.op->is_pointwise() && (std::ranges::any_of(node.inputs, is_byte) || is_byte(node.output()));
}

std::string reason_against(const Problem& problem, const ProgramResult& result, Isa isa) {
  if (!result.refusal.empty()) return result.refusal;
  if (is_byte_table(problem.region)) return "a table says it";
  if (std::ranges::any_of(problem.region.nodes(), [](const Node* node) { return counts_in_bytes(*node); }))
    return "arithmetic on bytes";
  return pointwise_code_refusal(result.program, problem.region.outputs()[0]->type.dtype, isa);
}

/// The nest with operands that advance by 0 or 1 innermost; anything else becomes rows of one element.
LoopNest vector_nest(const PointwiseProgram& program, const KernelShapes& shapes) {
  LoopNest nest = make_nest(shapes.outputs[0], operand_types(program, shapes));
  const bool even = std::all_of(nest.strides.begin(), nest.strides.end(),
                                [](const Dims& strides) { return strides.back() == 0 || strides.back() == 1; });
  if (even) return nest;
  nest.sizes.push_back(1);
  nest.result.push_back(1);
  for (Dims& strides : nest.strides) strides.push_back(0);
  return nest;
}

std::vector<bool> streams_of(const LoopNest& nest) {
  std::vector<bool> streams;
  for (const Dims& strides : nest.strides) streams.push_back(strides.back() != 0);
  return streams;
}

class Pointwise final : public CpuKernel {
 public:
  Pointwise(PointwiseProgram program, const KernelShapes& shapes, Isa isa)
      : program_(std::move(program)),
        nest_(vector_nest(program_, shapes)),
        result_size_(static_cast<int64_t>(size_of(shapes.outputs[0].dtype))),
        lanes_(lanes_of(isa)),
        row_(nest_.sizes.back()),
        code_(program_, streams_of(nest_), shapes.outputs[0].dtype, static_cast<int>(row_ % lanes_), isa) {
    const size_t loops = nest_.sizes.size();
    rows_ = loops >= 2 ? nest_.sizes[loops - 2] : 1;
    for (size_t i = 0; i + 2 < loops; ++i) outer_ *= nest_.sizes[i];
    part_ = std::min(row_, kBlockElements);
    if (part_ < row_) part_ = part_ / lanes_ * lanes_;
    parts_ = (row_ + part_ - 1) / part_;
    block_rows_ = std::clamp(kBlockElements / row_, int64_t{1}, rows_);
    blocks_ = (rows_ + block_rows_ - 1) / block_rows_;
  }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(outer_ * blocks_ * parts_, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item)
      run_block(item / parts_ / blocks_, item / parts_ % blocks_ * block_rows_, item % parts_ * part_, bindings);
  }

 private:
  void run_block(int64_t outer, int64_t row, int64_t column, const Bindings& bindings) const {
    PointwiseArgs args;
    const size_t loops = nest_.sizes.size();
    const auto offset_of = [&](const Dims& strides) {
      int64_t offset = column * strides.back() + (loops >= 2 ? row * strides[loops - 2] : 0), rest = outer;
      for (size_t axis = loops < 2 ? 0 : loops - 2; axis-- > 0; rest /= nest_.sizes[axis])
        offset += rest % nest_.sizes[axis] * strides[axis];
      return offset;
    };
    const auto row_step = [&](const Dims& strides) { return loops >= 2 ? strides[loops - 2] : 0; };
    for (size_t k = 0; k < program_.operands.size(); ++k) {
      const PointwiseProgram::Operand& operand = program_.operands[k];
      const auto size = static_cast<int64_t>(size_of(operand.dtype));
      const void* base = operand.constant ? bindings.constants[static_cast<size_t>(operand.index)]
                                          : bindings.inputs[static_cast<size_t>(operand.index)];
      args.operands[k] = static_cast<const std::byte*>(base) + offset_of(nest_.strides[k]) * size;
      args.row_steps[k] = row_step(nest_.strides[k]) * size;
    }
    args.result = static_cast<std::byte*>(bindings.outputs[0]) + offset_of(nest_.result) * result_size_;
    args.result_step = row_step(nest_.result) * result_size_;
    args.rows = std::min(block_rows_, rows_ - row);
    const int64_t count = std::min(part_, row_ - column);
    args.vector_elements = count / lanes_ * lanes_;
    args.tail = count % lanes_ != 0;
    code_(args);
  }

  PointwiseProgram program_;
  LoopNest nest_;
  int64_t result_size_;
  int64_t lanes_, row_;  // elements of the innermost loop
  PointwiseCode code_;
  int64_t rows_ = 1, outer_ = 1;
  int64_t part_ = 0, parts_ = 0;         // of a row
  int64_t block_rows_ = 0, blocks_ = 0;  // of the rows
};

struct PointwiseFamily {
  static constexpr std::string_view kName = "pointwise";
  static constexpr int kVersion = 3;
  static constexpr Cost kCost = {.operands = 0.25};
  using Params = NoParams;
  using Code = PointwiseProgram;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    if (!is_pointwise_region(problem.region)) return;
    if (std::string reason = reason_against(problem, make_program(problem), info.isa); !reason.empty())
      return out.refuse(kName, std::move(reason));
    out.offer(tactic_in(Layout::linear, problem));
    const size_t rank = problem.region.outputs()[0]->type.shape.rank();
    if (rank >= 3 && rank <= 5) out.offer(tactic_in(Layout::channels_last, problem));
  }
  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    ProgramResult result = make_program(problem);
    return {std::move(result.program), std::move(result.constants)};
  }
  static std::vector<ConstantSpec> constants(const Code& program, const KernelShapes&, const CpuInfo&) {
    return program_constants(program);
  }
  static std::shared_ptr<const CpuKernel> load(const Code& program, const KernelShapes& shapes, const CpuInfo& info) {
    HONE_CHECK(shapes.outputs.size() == 1, "a pointwise kernel in the plan has {} results", shapes.outputs.size());
    const std::string refusal = pointwise_code_refusal(program, shapes.outputs[0].dtype, info.isa);
    HONE_CHECK(refusal.empty(), "a pointwise kernel in the plan cannot run here: {}", refusal);
    return std::make_shared<Pointwise>(program, shapes, info.isa);
  }
};

}  // namespace

const CpuTactic tactics::pointwise = describe<PointwiseFamily>();

}  // namespace hone::cpu
