// SPDX-License-Identifier: Apache-2.0
//
// Three passes over a row, which lies in the first-level cache: maximum, exponentials and their sum, product with 1/sum.
#include "backends/cpu/tactics/softmax_code.h"

#include <cstddef>
#include <limits>

#include "backends/cpu/jit/emitter.h"
#include "backends/cpu/jit/vector_math.h"

namespace hone::cpu {
namespace {

using Vec = Emitter::Vec;

class SoftmaxEmitter {
 public:
  SoftmaxEmitter(Emitter& emitter, int64_t columns, MaskKind mask)
      : e_(emitter),
        math_(emitter),
        whole_bytes_(columns / e_.lanes() * e_.vector_bytes()),
        tail_(static_cast<int>(columns % e_.lanes())),
        mask_(mask) {}

  void emit() {
    e_.set_tail(tail_);
    e_.mov(scores_, e_.qword[args_ + offsetof(SoftmaxArgs, scores)]);
    e_.mov(masks_, e_.qword[args_ + offsetof(SoftmaxArgs, mask)]);
    e_.mov(rows_, e_.qword[args_ + offsetof(SoftmaxArgs, rows)]);
    Xbyak::Label row;
    e_.L(row);
    maximum();
    exponentials();
    normalise();
    e_.add(scores_, e_.qword[args_ + offsetof(SoftmaxArgs, score_step)]);
    e_.add(masks_, e_.qword[args_ + offsetof(SoftmaxArgs, mask_step)]);
    e_.dec(rows_);
    e_.jnz(row, e_.T_NEAR);
    e_.vzeroupper();
    e_.ret();
  }

 private:
  /// body(tail) for every vector of the row.
  template <typename Body>
  void each_vector(const Body& body) {
    e_.xor_(offset_, offset_);
    if (whole_bytes_ != 0) {
      Xbyak::Label loop;
      e_.align(16);
      e_.L(loop);
      body(false);
      e_.add(offset_, e_.vector_bytes());
      e_.cmp(offset_, static_cast<uint32_t>(whole_bytes_));
      e_.jl(loop, e_.T_NEAR);
    }
    if (tail_ != 0) body(true);
  }

  void load(const Vec& x, const Xbyak::Reg64& base, bool tail) {
    if (tail) e_.load_tail(x, e_.ptr[base + offset_], lanes_);
    else e_.load(x, e_.ptr[base + offset_]);
  }
  void store(const Vec& x, bool tail) {
    if (tail) e_.store_tail(e_.ptr[scores_ + offset_], x, lanes_);
    else e_.store(e_.ptr[scores_ + offset_], x);
  }

  /// Lanes past the tail of x become those of `fill`.
  void fill_tail(const Vec& x, const Vec& fill) {
    if (e_.avx512()) {
      e_.vblendmps(x | e_.k1, fill, x);
    } else {
      const int lanes = (1 << tail_) - 1;
      e_.vblendps(x, fill, x, static_cast<uint8_t>(lanes));
    }
  }

  void maximum() {
    e_.load_constant(bound_, -std::numeric_limits<float>::infinity());
    if (mask_ == MaskKind::per_row) e_.broadcast(mask_value_, e_.dword[masks_]);
    each_vector([&](bool tail) {
      load(x_, scores_, tail);
      if (mask_ == MaskKind::full) {
        load(mask_value_, masks_, tail);
      }
      if (mask_ != MaskKind::none) {
        e_.vaddps(x_, x_, mask_value_);
        store(x_, tail);
      }
      if (tail) fill_tail(x_, bound_);
      e_.vmaxps(bound_, bound_, x_);
    });
    reduce(bound_, [&](const Vec& x, const Vec& y) { e_.vmaxps(x, x, y); });
  }

  void exponentials() {
    e_.zero(sum_);
    each_vector([&](bool tail) {
      load(x_, scores_, tail);
      e_.vsubps(x_, x_, bound_);
      math_.exp(x_, s0_, s1_);
      store(x_, tail);
      if (tail) {
        e_.zero(s0_);
        fill_tail(x_, s0_);
      }
      e_.vaddps(sum_, sum_, x_);
    });
    reduce(sum_, [&](const Vec& x, const Vec& y) { e_.vaddps(x, x, y); });
  }

  void normalise() {
    e_.load_constant(s0_, 1.0f);
    e_.vdivps(sum_, s0_, sum_);
    each_vector([&](bool tail) {
      load(x_, scores_, tail);
      e_.vmulps(x_, x_, sum_);
      store(x_, tail);
    });
  }

  /// All lanes become the combination of all lanes.
  template <typename Combine>
  void reduce(const Vec& x, const Combine& combine) {
    if (e_.avx512()) {
      e_.vshuff32x4(Xbyak::Zmm(s0_.getIdx()), Xbyak::Zmm(x.getIdx()), Xbyak::Zmm(x.getIdx()), 0x4e);
      combine(x, s0_);
      e_.vshuff32x4(Xbyak::Zmm(s0_.getIdx()), Xbyak::Zmm(x.getIdx()), Xbyak::Zmm(x.getIdx()), 0xb1);
      combine(x, s0_);
    } else {
      e_.vperm2f128(Xbyak::Ymm(s0_.getIdx()), Xbyak::Ymm(x.getIdx()), Xbyak::Ymm(x.getIdx()), 1);
      combine(x, s0_);
    }
    e_.vshufps(s0_, x, x, 0x4e);
    combine(x, s0_);
    e_.vshufps(s0_, x, x, 0xb1);
    combine(x, s0_);
  }

  Emitter& e_;
  VectorMath math_;
  const int64_t whole_bytes_;
  const int tail_;
  const MaskKind mask_;
  const Vec x_ = e_.vec(0), s0_ = e_.vec(1), s1_ = e_.vec(2), bound_ = e_.vec(3), sum_ = e_.vec(4),
            mask_value_ = e_.vec(5), lanes_ = e_.vec(6);
  const Xbyak::Reg64 args_{Xbyak::Operand::RDI}, scores_{Xbyak::Operand::RSI}, masks_{Xbyak::Operand::RDX},
      rows_{Xbyak::Operand::RCX}, offset_{Xbyak::Operand::R8};
};

}  // namespace

SoftmaxCode::SoftmaxCode(int64_t columns, MaskKind mask, Isa isa)
    : code_(Emitter::generate(isa, [&](Emitter& e) { SoftmaxEmitter(e, columns, mask).emit(); })),
      function_(code_->entry<void (*)(const SoftmaxArgs*)>(0)) {}

SoftmaxCode::~SoftmaxCode() = default;

}  // namespace hone::cpu
