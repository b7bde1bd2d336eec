// SPDX-License-Identifier: Apache-2.0
//
// Pointwise operators between quantised tensors of one scale each, as a table that is looked up: a silu takes as long as a
// copy, and gives the reference's bytes.
#include <algorithm>
#include <memory>

#include "backends/cpu/family.h"
#include "backends/cpu/jit/emitter.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/region_reader.h"
#include "regions/byte_table.h"

namespace hone::cpu {
namespace {

constexpr int64_t kPiece = 16384;

/// Whether an instruction picks each byte of a vector from two others (VBMI).
bool has_byte_permutations(Isa isa) { return isa == Isa::avx512 && __builtin_cpu_supports("avx512vbmi"); }

using LookUp = void (*)(const uint8_t* x, uint8_t* y, int64_t count, const uint8_t* table);

void look_up_each(const uint8_t* x, uint8_t* y, int64_t count, const uint8_t* table) {
  for (int64_t i = 0; i < count; ++i) y[i] = table[x[i]];
}

/// 64 bytes, or as many as mask register 1 has: those above 127 from the upper half of the table.
void emit_vector(Emitter& e, bool partial) {
  const Xbyak::Zmm at = e.zmm4, upper = e.zmm5;
  if (partial) e.vmovdqu8(at | e.k1 | e.T_z, e.ptr[e.rdi]);
  else e.vmovdqu8(at, e.ptr[e.rdi]);
  e.vpmovb2m(e.k2, at);
  e.vmovdqa64(upper, at);
  e.vpermi2b(at, e.zmm0, e.zmm1);
  e.vpermi2b(upper, e.zmm2, e.zmm3);
  e.vmovdqu8(at | e.k2, upper);
  if (partial) e.vmovdqu8(e.ptr[e.rsi] | e.k1, at);
  else e.vmovdqu8(e.ptr[e.rsi], at);
}

/// A LookUp whose table is four registers: 64 bytes take two permutations.
void emit_look_up(Emitter& e) {
  for (int i = 0; i < 4; ++i) e.vmovdqu8(Xbyak::Zmm(i), e.ptr[e.rcx + 64 * i]);
  Xbyak::Label body, rest, done;
  e.L(body);
  e.cmp(e.rdx, 64);
  e.jl(rest);
  emit_vector(e, false);
  e.add(e.rdi, 64);
  e.add(e.rsi, 64);
  e.sub(e.rdx, 64);
  e.jmp(body);
  e.L(rest);
  e.test(e.rdx, e.rdx);
  e.jz(done);
  e.mov(e.rax, -1);
  e.bzhi(e.rax, e.rax, e.rdx);
  e.kmovq(e.k1, e.rax);
  emit_vector(e, true);
  e.L(done);
  e.vzeroupper();
  e.ret();
}

class ByteTable final : public ItemKernel {
 public:
  ByteTable(int64_t count, Isa isa) : ItemKernel((count + kPiece - 1) / kPiece, count / 4), count_(count) {
    if (!has_byte_permutations(isa)) return;
    code_ = Emitter::generate(isa, emit_look_up);
    look_up_ = code_->entry<LookUp>(0);
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const int64_t first = begin * kPiece, last = std::min(end * kPiece, count_);
    look_up_(static_cast<const uint8_t*>(bindings.inputs[0]) + first,
             static_cast<uint8_t*>(bindings.outputs[0]) + first, last - first,
             static_cast<const uint8_t*>(bindings.constants[0]));
  }

  int64_t count_;
  std::unique_ptr<Emitter> code_;
  LookUp look_up_ = look_up_each;
};

struct ByteTableFamily {
  static constexpr std::string_view kName = "byte_table";
  static constexpr int kVersion = 1;
  static constexpr Cost kCost = {.operands = 0.25};
  using Params = NoParams;
  using Code = NoParams;

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    if (is_byte_table(problem.region)) offer_layouts(problem, "cpu", kName, out);
  }
  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    return {{}, {byte_table(problem.region)}};
  }
  static std::vector<ConstantSpec> constants(const Code&, const KernelShapes&, const CpuInfo&) {
    return {{DType::u8, {256}}};
  }
  static std::shared_ptr<const CpuKernel> load(const Code&, const KernelShapes& shapes, const CpuInfo& info) {
    const auto is_byte = [](const ConcreteType& type) { return type.dtype == DType::u8 || type.dtype == DType::i8; };
    const bool valid = shapes.inputs.size() == 1 && shapes.outputs.size() == 1 && is_byte(shapes.inputs[0]) &&
                       is_byte(shapes.outputs[0]) && shapes.inputs[0].dims == shapes.outputs[0].dims &&
                       shapes.inputs[0].bytes() == shapes.outputs[0].bytes() &&
                       shared_layout(shapes.inputs[0], shapes.outputs[0]);
    HONE_CHECK(valid, "a table of bytes in the plan does not fit its tensors");
    return std::make_shared<ByteTable>(shapes.inputs[0].bytes(), info.isa);
  }
};

}  // namespace

const CpuTactic tactics::byte_table = describe<ByteTableFamily>();

}  // namespace hone::cpu
