// SPDX-License-Identifier: Apache-2.0
//
// Instructions become vector code one after the other. A value keeps its register until its last use. Three registers stay free as
// scratch for elementary functions, masks and numbers that must be in a register; the rest keeps the constants that the loop
// reads most often, those of elementary functions too, and what is left of them are memory operands.
#include "backends/cpu/pointwise/pointwise_code.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>

#include "backends/cpu/jit/bf16_memory.h"
#include "backends/cpu/jit/byte_memory.h"
#include "backends/cpu/jit/emitter.h"
#include "backends/cpu/jit/vector_math.h"

namespace hone::cpu {
namespace {

using Instruction = PointwiseProgram::Instruction;
using Vec = Emitter::Vec;

constexpr int kScratchRegisters = 3;
enum Predicate { kEqual = 0, kLess = 1, kLessEqual = 2, kUnordered = 3, kNotEqual = 4, kOtherNumber = 12 };

/// A truth value is a byte that holds 0 or 1.
bool is_byte(DType dtype) { return dtype == DType::u8 || dtype == DType::i8 || dtype == DType::boolean; }
bool has_code(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || is_byte(dtype); }

bool has_code(ExprKind kind) {
  switch (kind) {
    case ExprKind::number:
    case ExprKind::input:
    case ExprKind::negate:
    case ExprKind::absolute:
    case ExprKind::exp:
    case ExprKind::log:
    case ExprKind::sqrt:
    case ExprKind::reciprocal:
    case ExprKind::floor:
    case ExprKind::ceil:
    case ExprKind::round_even:
    case ExprKind::erf:
    case ExprKind::tanh:
    case ExprKind::sign:
    case ExprKind::logical_not:
    case ExprKind::is_nan:
    case ExprKind::add:
    case ExprKind::subtract:
    case ExprKind::multiply:
    case ExprKind::divide:
    case ExprKind::minimum:
    case ExprKind::maximum:
    case ExprKind::less:
    case ExprKind::less_equal:
    case ExprKind::equal:
    case ExprKind::not_equal:
    case ExprKind::logical_and:
    case ExprKind::logical_or:
    case ExprKind::select: return true;
    default: return false;
  }
}

/// Whether a value is 0 or 1, where those it is made of are.
bool keeps_truth(ExprKind kind) {
  return kind >= ExprKind::less || kind == ExprKind::input || kind == ExprKind::logical_not ||
         kind == ExprKind::is_nan || kind == ExprKind::minimum || kind == ExprKind::maximum;
}

/// Which register holds each instruction's value. Numbers have none.
struct Allocation {
  std::vector<int> registers;
  int used = 0;  // registers needed at once
};

Allocation allocate(const PointwiseProgram& program) {
  const std::vector<int> last = program.last_uses();
  Allocation result{std::vector<int>(program.instructions.size(), -1), 0};
  std::vector<int> free;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.kind == ExprKind::number) continue;
    // An operand that dies here makes room for the result: every emitter reads its operands before it writes.
    if (instruction.kind != ExprKind::input)
      for (int k = 0; k < 3; ++k) {
        const int operand = instruction.operands[k];
        const bool repeated =
            (k > 0 && operand == instruction.operands[0]) || (k > 1 && operand == instruction.operands[1]);
        if (operand < 0 || repeated || last[static_cast<size_t>(operand)] != static_cast<int>(i)) continue;
        if (const int freed = result.registers[static_cast<size_t>(operand)]; freed >= 0) free.push_back(freed);
      }
    if (free.empty()) {
      result.registers[i] = result.used++;
    } else {
      result.registers[i] = free.back();
      free.pop_back();
    }
    if (last[i] == static_cast<int>(i)) free.push_back(result.registers[i]);  // never read
  }
  return result;
}

class PointwiseEmitter {
 public:
  /// `uses`: of constants, as an emitter tells after it has emitted the same program.
  PointwiseEmitter(Emitter& emitter, const PointwiseProgram& program, const std::vector<bool>& streams, DType result,
                   int tail, const std::map<uint32_t, int>& uses)
      : e_(emitter),
        bf16_(emitter),
        bytes_(emitter),
        math_(emitter),
        program_(program),
        streams_(streams),
        result_type_(result),
        tail_(tail),
        allocation_(allocate(program)),
        uses_(uses) {}

  void emit() {
    const int saved = std::max(0, operands() - 4);
    for (int k = 0; k < saved; ++k) e_.push(pointer(4 + k));
    e_.set_tail(tail_);
    keep_constants();
    for (int k = 0; k < operands(); ++k) e_.mov(pointer(k), e_.qword[args_ + 8 * k]);
    e_.mov(result_, e_.qword[args_ + offsetof(PointwiseArgs, result)]);
    e_.mov(rows_, e_.qword[args_ + offsetof(PointwiseArgs, rows)]);
    e_.mov(end_, e_.qword[args_ + offsetof(PointwiseArgs, vector_elements)]);
    Xbyak::Label row;
    e_.align(32);
    e_.L(row);
    emit_row();
    for (int k = 0; k < operands(); ++k)
      e_.add(pointer(k), e_.qword[args_ + static_cast<int>(offsetof(PointwiseArgs, row_steps)) + 8 * k]);
    e_.add(result_, e_.qword[args_ + offsetof(PointwiseArgs, result_step)]);
    e_.dec(rows_);
    e_.jnz(row, e_.T_NEAR);
    for (int k = saved; k-- > 0;) e_.pop(pointer(4 + k));
    e_.vzeroupper();
    e_.ret();
  }

 private:
  int operands() const { return static_cast<int>(program_.operands.size()); }
  Xbyak::Reg64 pointer(int k) const { return Xbyak::Reg64(Xbyak::Operand::R8 + k); }
  Vec scratch(int k) const { return e_.vec(e_.registers() - 1 - k); }
  const Instruction& at(int i) const { return program_.instructions[static_cast<size_t>(i)]; }
  bool is_number(int i) const { return at(i).kind == ExprKind::number; }
  float number(int i) const { return static_cast<float>(at(i).number); }
  Vec reg(int i) const { return e_.vec(allocation_.registers[static_cast<size_t>(i)]); }

  void keep_constants() {
    std::vector<std::pair<int, uint32_t>> often;
    for (const auto& [bits, count] : uses_) often.emplace_back(count, bits);
    std::ranges::sort(often, std::greater());
    int free = allocation_.used;
    for (const auto& [count, bits] : often) {
      if (free == e_.registers() - kScratchRegisters) return;
      e_.keep(bits, e_.vec(free++));
    }
  }

  void emit_row() {
    Xbyak::Label body, whole_done, done;
    e_.xor_(offset_, offset_);
    e_.test(end_, end_);
    e_.jz(whole_done, e_.T_NEAR);
    e_.align(32);
    e_.L(body);
    emit_vector(false);
    e_.add(offset_, e_.lanes());
    e_.cmp(offset_, end_);
    e_.jl(body, e_.T_NEAR);
    e_.L(whole_done);
    if (tail_ == 0) return;
    e_.cmp(e_.qword[args_ + offsetof(PointwiseArgs, tail)], 0);
    e_.je(done, e_.T_NEAR);
    emit_vector(true);
    e_.L(done);
  }

  void emit_vector(bool tail) {
    const int count = static_cast<int>(program_.instructions.size());
    for (int i = 0; i < count; ++i) emit_instruction(i, tail);
    const Vec value = in_register(count - 1, 0);
    if (result_type_ == DType::bf16) {
      const Xbyak::RegExp to = result_ + offset_ * 2;
      return tail ? bf16_.store_tail(to, value, scratch(1), scratch(2))
                  : bf16_.store(to, value, scratch(1), scratch(2));
    }
    if (is_byte(result_type_))
      return bytes_.store(result_ + offset_, value, scratch(1), result_type_ == DType::i8, tail);
    const Xbyak::Address to = e_.ptr[result_ + offset_ * 4];
    if (tail) e_.store_tail(to, value, scratch(1));
    else e_.store(to, value);
  }

  void load_operand(const Vec& d, int operand, bool tail) {
    const bool stream = streams_[static_cast<size_t>(operand)];
    if (const DType dtype = program_.operands[static_cast<size_t>(operand)].dtype; is_byte(dtype)) {
      if (!stream) return bytes_.broadcast(d, pointer(operand), dtype == DType::i8);
      return bytes_.load(d, pointer(operand) + offset_, dtype == DType::i8, tail);
    }
    if (program_.operands[static_cast<size_t>(operand)].dtype == DType::bf16) {
      if (!stream) return bf16_.broadcast(d, pointer(operand));
      const Xbyak::RegExp from = pointer(operand) + offset_ * 2;
      return tail ? bf16_.load_tail(d, from) : bf16_.load(d, from);
    }
    if (!stream) return e_.broadcast(d, e_.dword[pointer(operand)]);
    const Xbyak::Address from = e_.ptr[pointer(operand) + offset_ * 4];
    if (tail) e_.load_tail(d, from, scratch(0));
    else e_.load(d, from);
  }

  /// The value in a register: its own, or scratch `k` for a number.
  Vec in_register(int i, int k) {
    if (!is_number(i)) return reg(i);
    e_.load_constant(scratch(k), number(i));
    return scratch(k);
  }

  void move(const Vec& d, int i) {
    if (is_number(i)) e_.load_constant(d, number(i));
    else if (d.getIdx() != reg(i).getIdx()) e_.vmovaps(d, reg(i));
  }

  void emit_instruction(int i, bool tail) {
    const Instruction& instruction = at(i);
    if (instruction.kind == ExprKind::number) return;
    const Vec d = reg(i);
    const int a = instruction.operands[0], b = instruction.operands[1], c = instruction.operands[2];
    switch (instruction.kind) {
      case ExprKind::input: return load_operand(d, a, tail);
      case ExprKind::negate: return e_.vxorps(d, in_register(a, 0), e_.constant_bits(0x80000000u));
      case ExprKind::absolute: return e_.vandps(d, in_register(a, 0), e_.constant_bits(0x7fffffffu));
      case ExprKind::sqrt: return e_.vsqrtps(d, in_register(a, 0));
      case ExprKind::floor: return round(d, a, 1);
      case ExprKind::ceil: return round(d, a, 2);
      case ExprKind::round_even: return round(d, a, 0);
      case ExprKind::reciprocal: e_.load_constant(scratch(0), 1.0f); return e_.vdivps(d, scratch(0), in_register(a, 1));
      case ExprKind::exp: move(d, a); return math_.exp(d, scratch(0), scratch(1));
      case ExprKind::log: move(d, a); return math_.log(d, scratch(0), scratch(1), scratch(2));
      case ExprKind::erf: move(d, a); return math_.erf(d, scratch(0), scratch(1));
      case ExprKind::tanh: move(d, a); return math_.tanh(d, scratch(0), scratch(1));
      case ExprKind::sign: move(d, a); return sign(d);
      case ExprKind::add: return arithmetic(&Emitter::vaddps, d, a, b, true);
      case ExprKind::multiply: return arithmetic(&Emitter::vmulps, d, a, b, true);
      case ExprKind::subtract: return arithmetic(&Emitter::vsubps, d, a, b, false);
      case ExprKind::divide: return arithmetic(&Emitter::vdivps, d, a, b, false);
      case ExprKind::minimum: return bound(&Emitter::vminps, d, a, b);
      case ExprKind::maximum: return bound(&Emitter::vmaxps, d, a, b);
      case ExprKind::less: return compare(d, a, b, kLess);
      case ExprKind::less_equal: return compare(d, a, b, kLessEqual);
      case ExprKind::equal: return compare(d, a, b, kEqual);
      case ExprKind::not_equal: return compare(d, a, b, kNotEqual);
      case ExprKind::is_nan: return compare(d, a, a, kUnordered);
      case ExprKind::logical_not: return compare_with_zero(d, a, kEqual);
      // As 0 or 1 first: the product is "and", the larger one "or".
      case ExprKind::logical_and: return logical(&Emitter::vmulps, d, a, b);
      case ExprKind::logical_or: return logical(&Emitter::vmaxps, d, a, b);
      case ExprKind::select: return select(d, a, b, c);
      default: break;
    }
    throw InternalError(fmt::format("no code for {}", name_of(instruction.kind)));
  }

  void round(const Vec& d, int a, uint8_t mode) {
    if (e_.avx512()) e_.vrndscaleps(d, in_register(a, 0), mode);
    else e_.vroundps(d, in_register(a, 0), mode);
  }

  template <typename Operation>
  void arithmetic(Operation operation, const Vec& d, int a, int b, bool commutes) {
    if (commutes && is_number(a)) std::swap(a, b);
    const Vec left = in_register(a, 0);
    if (is_number(b)) (e_.*operation)(d, left, e_.constant(number(b)));
    else (e_.*operation)(d, left, reg(b));
  }

  /// NaN when either operand is: the instruction gives its second operand then, so that one has to be the NaN.
  template <typename Operation>
  void bound(Operation operation, const Vec& d, int a, int b) {
    if (is_number(a)) std::swap(a, b);
    const Vec left = in_register(a, 0), right = in_register(b, 1);
    if (is_number(b)) return (e_.*operation)(d, right, left);
    (e_.*operation)(scratch(2), left, right);
    compare_mask(left, left, kUnordered);
    blend(d, scratch(2), left);
  }

  /// Into mask register 2 (AVX-512) or scratch 0.
  void compare_mask(const Vec& a, const Vec& b, Predicate predicate) {
    if (e_.avx512()) e_.vcmpps(e_.k2, a, b, predicate);
    else e_.vcmpps(scratch(0), a, b, predicate);
  }

  /// d = mask ? b : a
  void blend(const Vec& d, const Vec& a, const Vec& b) {
    if (e_.avx512()) e_.vblendmps(d | e_.k2, a, b);
    else e_.vblendvps(d, a, b, scratch(0));
  }

  void ones_where_mask(const Vec& d) {
    if (e_.avx512()) {
      e_.load_constant(scratch(0), 1.0f);
      e_.vmovaps(d | e_.k2 | e_.T_z, scratch(0));
    } else {
      e_.vandps(d, scratch(0), e_.constant(1.0f));
    }
  }

  /// Zeros and NaN stay as they are.
  void sign(const Vec& d) {
    e_.zero(scratch(1));
    compare_mask(d, scratch(1), kOtherNumber);
    e_.vandps(scratch(2), d, e_.constant_bits(0x80000000u));
    e_.vorps(scratch(2), scratch(2), e_.constant(1.0f));
    blend(d, d, scratch(2));
  }

  void compare(const Vec& d, int a, int b, Predicate predicate) {
    compare_mask(in_register(a, 0), in_register(b, 1), predicate);
    ones_where_mask(d);
  }

  void compare_with_zero(const Vec& d, int a, Predicate predicate) {
    e_.zero(scratch(1));
    compare_mask(in_register(a, 0), scratch(1), predicate);
    ones_where_mask(d);
  }

  template <typename Operation>
  void logical(Operation operation, const Vec& d, int a, int b) {
    compare_with_zero(scratch(2), a, kNotEqual);
    // d may be b's own register: it is read before it is written.
    e_.zero(scratch(1));
    compare_mask(in_register(b, 0), scratch(1), kNotEqual);
    ones_where_mask(d);
    (e_.*operation)(d, d, scratch(2));
  }

  void select(const Vec& d, int condition, int a, int b) {
    e_.zero(scratch(1));
    compare_mask(in_register(condition, 0), scratch(1), kNotEqual);
    blend(d, in_register(b, 2), in_register(a, 1));
  }

  Emitter& e_;
  Bf16Memory bf16_;
  ByteMemory bytes_;
  VectorMath math_;
  const PointwiseProgram& program_;
  const std::vector<bool>& streams_;
  const DType result_type_;
  const int tail_;
  const Allocation allocation_;
  const std::map<uint32_t, int>& uses_;
  const Xbyak::Reg64 args_{Xbyak::Operand::RDI}, result_{Xbyak::Operand::RSI}, end_{Xbyak::Operand::RDX},
      rows_{Xbyak::Operand::RCX}, offset_{Xbyak::Operand::RAX};
};

}  // namespace

std::string pointwise_code_refusal(const PointwiseProgram& program, DType result, Isa isa) {
  if (isa == Isa::scalar) return "needs AVX2";
  if (program.operands.size() > kMaxCodeOperands)
    return fmt::format("{} operands, at most {}", program.operands.size(), kMaxCodeOperands);
  for (const PointwiseProgram::Operand& operand : program.operands)
    if (!has_code(operand.dtype))
      return fmt::format("an operand is {}, not f32, bf16 or bytes", name_of(operand.dtype));
  if (!has_code(result)) return fmt::format("the result is {}, not f32, bf16 or bytes", name_of(result));
  if (result == DType::boolean && !keeps_truth(program.instructions.back().kind)) return "a truth value by arithmetic";
  for (const Instruction& instruction : program.instructions)
    if (!has_code(instruction.kind)) return fmt::format("no code for {}", name_of(instruction.kind));
  if (allocate(program).used > registers_of(isa) - kScratchRegisters)
    return "too many values at once for the registers";
  return {};
}

namespace {

/// Once to see which constants it needs, then with those in registers, if there are any.
std::unique_ptr<Emitter> generate(const PointwiseProgram& program, const std::vector<bool>& streams, DType result,
                                  int tail, Isa isa) {
  const auto with = [&](const std::map<uint32_t, int>& uses) {
    return Emitter::generate(isa,
                             [&](Emitter& e) { PointwiseEmitter(e, program, streams, result, tail, uses).emit(); });
  };
  std::unique_ptr<Emitter> first = with({});
  return first->uses().empty() ? std::move(first) : with(first->uses());
}

}  // namespace

PointwiseCode::PointwiseCode(const PointwiseProgram& program, const std::vector<bool>& streams, DType result, int tail,
                             Isa isa)
    : code_(generate(program, streams, result, tail, isa)),
      function_(code_->entry<void (*)(const PointwiseArgs*)>(0)) {}

PointwiseCode::~PointwiseCode() = default;

}  // namespace hone::cpu
