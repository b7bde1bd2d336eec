// SPDX-License-Identifier: Apache-2.0
//
// Pointwise chains of any element type and any function, on every processor: an interpreter that does one instruction for a
// block of elements at a time, so that decoding costs nothing and the loops of block_loops.h run in vectors. Operands that already are
// what the instructions calculate with are read where they lie, and the result is written where it belongs.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "backends/cpu/family.h"
#include "backends/cpu/pointwise/block_loops.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/support/number.h"
#include "regions/pointwise_program.h"

namespace hone::cpu {
namespace {

constexpr size_t kMaxInstructionsHere = 48;
constexpr int64_t kRoom = 1 << 16;            // bytes for the values of a block, on the stack
constexpr int64_t kLeast = 64, kMost = 4096;  // elements of a block
constexpr int64_t kSmallWork = 4096;          // elements that are not worth waking others for

struct BlocksCode {
  PointwiseProgram program;
  bool floating = false;  // computed in double precision, otherwise in 64 bits
  static void fields(auto& self, auto& visit) {
    PointwiseProgram::fields(self.program, visit);
    visit("floating", self.floating);
  }
};

DType dtype_of(Domain domain) {
  constexpr std::array<DType, 5> kTypes = {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean};
  return kTypes[static_cast<size_t>(domain)];
}

bool fits(Domain domain, DType dtype) {
  if (domain == Domain::f32) return dtype != DType::f64 && (is_float(dtype) || size_of(dtype) < sizeof(int32_t));
  if (domain == Domain::truth) return dtype == DType::boolean;
  return !is_float(dtype) && dtype != DType::u32 && size_of(dtype) <= sizeof(int32_t);
}

bool fits(Domain domain, double number) {
  if (domain == Domain::f32) return true;
  if (domain == Domain::truth) return number == 0 || number == 1;
  return number >= std::numeric_limits<int32_t>::min() && number <= std::numeric_limits<int32_t>::max();
}

/// Whether everything in the program can be held and calculated in a domain.
bool serves(Domain domain, const PointwiseProgram& program, DType result, Isa isa) {
  if (!fits(domain, result)) return false;
  for (const PointwiseProgram::Operand& operand : program.operands)
    if (!fits(domain, operand.dtype)) return false;
  return std::ranges::all_of(program.instructions, [&](const PointwiseProgram::Instruction& instruction) {
    if (instruction.kind == ExprKind::number) return fits(domain, instruction.number);
    return instruction.kind == ExprKind::input || block_loop(instruction.kind, domain, isa) != nullptr;
  });
}

/// The narrowest domain.
Domain domain_of(const PointwiseProgram& program, DType result, bool floating, Isa isa) {
  if (floating) return serves(Domain::f32, program, result, isa) ? Domain::f32 : Domain::f64;
  for (const Domain domain : {Domain::truth, Domain::i32})
    if (serves(domain, program, result, isa)) return domain;
  return Domain::i64;
}

/// Elements that do not lie behind each other, one by one.
void copy_strided(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step, int64_t count,
                  size_t size) {
  visit_bits(size, [&]<typename T>() {
    for (int64_t i = 0; i < count; ++i)
      reinterpret_cast<T*>(to)[i * to_step] = reinterpret_cast<const T*>(from)[i * from_step];
  });
}

void repeat(const std::byte* element, std::byte* to, int64_t count, size_t size) {
  visit_bits(size, [&]<typename T>() {
    const T value = *reinterpret_cast<const T*>(element);
    for (int64_t i = 0; i < count; ++i) reinterpret_cast<T*>(to)[i] = value;
  });
}

Expr single(ExprKind kind) {
  std::vector<ExprNode> nodes;
  for (int i = 0; i < 3; ++i)
    nodes.push_back({.kind = ExprKind::input, .number = 0, .input = i, .attribute = {}, .operands = {}});
  nodes.push_back({.kind = kind, .number = 0, .input = 0, .attribute = {}, .operands = {0, 1, 2}});
  return Expr(std::move(nodes));
}

/// What has no loop of its own, by the meaning of the formulas.
void apply_meaning(const Expr& formula, bool floating, const std::byte* const* operands, std::byte* to, int64_t count) {
  const auto each = [&]<typename Number>(auto evaluate) {
    for (int64_t i = 0; i < count; ++i) {
      Number numbers[3] = {};
      for (int k = 0; k < 3; ++k)
        if (operands[k] != nullptr) numbers[k] = reinterpret_cast<const Number*>(operands[k])[i];
      reinterpret_cast<Number*>(to)[i] = evaluate(numbers);
    }
  };
  if (floating) each.template operator()<double>([&](const auto& numbers) { return formula.evaluate(numbers); });
  else each.template operator()<int64_t>([&](const auto& numbers) { return evaluate_integer(formula, numbers); });
}

class PointwiseBlocks final : public CpuKernel {
 public:
  PointwiseBlocks(PointwiseProgram program, const KernelShapes& shapes, bool floating, Isa isa)
      : program_(std::move(program)),
        result_(shapes.outputs[0].dtype),
        nest_(make_nest(shapes.outputs[0], operand_types(program_, shapes))),
        domain_(domain_of(program_, result_, floating, isa)),
        size_(static_cast<int64_t>(size_of(dtype_of(domain_)))),
        narrow_(convert_elements(dtype_of(domain_), result_, isa)) {
    for (const PointwiseProgram::Instruction& instruction : program_.instructions) {
      const bool leaf = instruction.kind == ExprKind::input || instruction.kind == ExprKind::number;
      loops_.push_back(leaf ? nullptr : block_loop(instruction.kind, domain_, isa));
      formulas_.push_back(leaf || loops_.back() != nullptr ? Expr() : single(instruction.kind));
    }
    for (const PointwiseProgram::Operand& operand : program_.operands) {
      widen_.push_back(convert_elements(operand.dtype, dtype_of(domain_), isa));
      Dims& numbers = sizes_.emplace_back();
      for (const std::string& text : operand.sizes) numbers.push_back(Dim::parse(text).evaluate(shapes.symbols));
    }
    row_ = nest_.sizes.back();
    const auto places = static_cast<int64_t>(program_.instructions.size()) + 1;  // one for elements to be converted
    slot_ = kRoom / places / 64 * 64;
    block_ = std::min(std::clamp(slot_ / 8, kLeast, kMost), row_);
    blocks_ = (row_ + block_ - 1) / block_;
    for (size_t i = 0; i + 1 < nest_.sizes.size(); ++i) rows_ *= nest_.sizes[i];
  }

  bool serial() const override { return rows_ * row_ <= kSmallWork; }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(rows_ * blocks_, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item)
      run_block(item / blocks_, item % blocks_ * block_, bindings);
  }

 private:
  const std::byte* base_of(size_t k, const Bindings& bindings) const {
    const PointwiseProgram::Operand& operand = program_.operands[k];
    if (!operand.sizes.empty()) return reinterpret_cast<const std::byte*>(sizes_[k].data());
    return static_cast<const std::byte*>(operand.constant ? bindings.constants[static_cast<size_t>(operand.index)]
                                                          : bindings.inputs[static_cast<size_t>(operand.index)]);
  }

  int64_t offset_of(const Dims& strides, int64_t row, int64_t column) const {
    int64_t offset = column * strides.back();
    for (size_t axis = nest_.sizes.size() - 1; axis-- > 0; row /= nest_.sizes[axis])
      offset += row % nest_.sizes[axis] * strides[axis];
    return offset;
  }

  void run_block(int64_t row, int64_t column, const Bindings& bindings) const {
    alignas(64) std::byte room[kRoom];
    std::array<const std::byte*, kMaxInstructionsHere> values;
    const int64_t count = std::min(block_, row_ - column);
    const size_t last = program_.instructions.size() - 1;
    std::byte* result = static_cast<std::byte*>(bindings.outputs[0]) +
                        offset_of(nest_.result, row, column) * static_cast<int64_t>(size_of(result_));
    const bool in_place = nest_.result.back() == 1 && dtype_of(domain_) == result_;
    std::byte* spare = room + static_cast<int64_t>(last + 1) * slot_;
    for (size_t i = 0; i <= last; ++i) {
      const PointwiseProgram::Instruction& instruction = program_.instructions[i];
      std::byte* to = i == last && in_place ? result : room + static_cast<int64_t>(i) * slot_;
      values[i] = to;
      if (instruction.kind == ExprKind::input) {
        const std::byte* lies =
            load(static_cast<size_t>(instruction.operands[0]), row, column, count, to, spare, bindings);
        if (i != last) values[i] = lies;
        else if (lies != to) std::memcpy(to, lies, static_cast<size_t>(count * size_));
      } else if (instruction.kind == ExprKind::number) {
        fill(to, instruction.number, count);
      } else {
        const std::byte* operands[3];
        for (int k = 0; k < 3; ++k)
          operands[k] = instruction.operands[k] < 0 ? nullptr : values[static_cast<size_t>(instruction.operands[k])];
        if (loops_[i] != nullptr) loops_[i](operands[0], operands[1], operands[2], to, count);
        else apply_meaning(formulas_[i], domain_ == Domain::f64, operands, to, count);
      }
    }
    if (in_place) return;
    if (nest_.result.back() == 1) return narrow_(values[last], result, count);
    narrow_(values[last], spare, count);
    copy_strided(spare, 1, result, nest_.result.back(), count, size_of(result_));
  }

  /// An operand's elements as numbers: where they lie, or in `to`.
  const std::byte* load(size_t k, int64_t row, int64_t column, int64_t count, std::byte* to, std::byte* spare,
                        const Bindings& bindings) const {
    const DType dtype = program_.operands[k].dtype;
    const size_t size = size_of(dtype);
    const int64_t step = nest_.strides[k].back();
    const std::byte* from =
        base_of(k, bindings) + offset_of(nest_.strides[k], row, column) * static_cast<int64_t>(size);
    if (step == 1 && dtype == dtype_of(domain_)) return from;
    if (step == 1) {
      widen_[k](from, to, count);
    } else if (step == 0) {
      widen_[k](from, spare, 1);
      repeat(spare, to, count, static_cast<size_t>(size_));
    } else {
      copy_strided(from, step, spare, 1, count, size);
      widen_[k](spare, to, count);
    }
    return to;
  }

  void fill(std::byte* to, double number, int64_t count) const {
    visit(dtype_of(domain_), [&]<typename T>() { std::fill_n(reinterpret_cast<T*>(to), count, narrowed<T>(number)); });
  }

  PointwiseProgram program_;
  DType result_;
  LoopNest nest_;
  Domain domain_;
  int64_t size_;                        // bytes of a number
  ConvertElements narrow_;              // from numbers to the result
  std::vector<ConvertElements> widen_;  // per operand, to numbers
  std::vector<BlockLoop> loops_;        // per instruction
  std::vector<Expr> formulas_;          // of those that have none
  std::vector<Dims> sizes_;             // per operand: numbers that follow from the input shapes
  int64_t row_ = 1, rows_ = 1;
  int64_t block_ = 1, blocks_ = 1, slot_ = 0;  // elements, of a row; bytes of an instruction's values
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
    const auto has_few_bits = [](const Node* node) {
      return is_small(node->output()->type.dtype) || is_small(node->input(0)->type.dtype);
    };
    if (std::ranges::any_of(problem.region.nodes(), has_few_bits)) result.refusal = "numbers of few bits";
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
    for (const Node* node : problem.region.nodes()) {
      floating |= is_float(node->output()->type.dtype);
      for (const Value* value : node->inputs) floating |= is_float(value->type.dtype);
    }
    return {{std::move(result.program), floating}, std::move(result.constants)};
  }
  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes&, const CpuInfo&) {
    return program_constants(code.program);
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    HONE_CHECK(code.program.instructions.size() <= kMaxInstructionsHere, "a pointwise kernel in the plan is too long");
    HONE_CHECK(shapes.outputs.size() == 1 && !is_object(shapes.outputs[0].dtype) && !is_small(shapes.outputs[0].dtype),
               "a pointwise kernel in the plan has no numeric result");
    return std::make_shared<PointwiseBlocks>(code.program, shapes, code.floating, info.isa);
  }
};

}  // namespace

const CpuTactic tactics::pointwise_blocks = describe<BlocksFamily>();

}  // namespace hone::cpu
