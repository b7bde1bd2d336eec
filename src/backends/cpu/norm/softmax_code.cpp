// SPDX-License-Identifier: Apache-2.0
//
// Two passes over a row's scores, which lie in the first-level cache: maximum, then exponentials and their sum. The sum is kept
// lane by lane, and the maximum is only compared with a bound, so that the usual row needs no step across lanes.
#include "backends/cpu/norm/softmax_code.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "backends/cpu/jit/emitter.h"
#include "backends/cpu/jit/vector_math.h"

namespace hone::cpu {
namespace {

using Vec = Emitter::Vec;

constexpr float kInf = std::numeric_limits<float>::infinity(), kLargest = std::numeric_limits<float>::max();
constexpr double kLog2E = 1.4426950408889634;
constexpr float kSlack = 8;  // weights may reach exp(8) before a row gets a new shift
constexpr int kUnroll = 4;

/// A row's state: one vector of sums, then the shift, then the score above which it is too small.
class SoftmaxEmitter {
 public:
  SoftmaxEmitter(Emitter& emitter, const SoftmaxSpec& spec)
      : e_(emitter),
        math_(emitter),
        s_(spec),
        vectors_(spec.keys / e_.lanes()),
        tail_(static_cast<int>(spec.keys % e_.lanes())) {}

  void weights() {
    begin(tail_, {{scores_, offsetof(SoftmaxArgs, scores)},
                  {masks_, offsetof(SoftmaxArgs, mask)},
                  {values_, offsetof(SoftmaxArgs, values)}});
    Xbyak::Label row, raise, go_on;
    e_.L(row);
    maximum();
    if (s_.running) {
      jump_if_above_bound(raise);
      e_.L(go_on);
      e_.broadcast(shift_, shift_of_row());
      e_.load(sum_, e_.ptr[state_]);
    } else {
      reduce(maxima_[0], &Emitter::vmaxps);
      e_.load_constant(shift_, -kLargest);
      e_.vmaxps(shift_, shift_, maxima_[0]);
      e_.zero(sum_);
    }
    exponentials();
    e_.store(e_.ptr[state_], sum_);
    next_row(row, {{scores_, offsetof(SoftmaxArgs, score_step)},
                   {masks_, offsetof(SoftmaxArgs, mask_step)},
                   {values_, offsetof(SoftmaxArgs, value_step)}});
    if (!s_.running) return;
    e_.L(raise);
    raise_shift();
    e_.jmp(go_on, e_.T_NEAR);
  }

  void finish() {
    const int64_t whole = s_.value_columns / e_.lanes() * e_.vector_bytes();
    const int tail = static_cast<int>(s_.value_columns % e_.lanes());
    begin(tail, {{values_, offsetof(SoftmaxArgs, values)}, {result_, offsetof(SoftmaxArgs, result)}});
    Xbyak::Label row;
    e_.L(row);
    e_.load(sum_, e_.ptr[state_]);
    reduce(sum_, &Emitter::vaddps);
    e_.load_constant(x_, 1.0f);
    e_.vdivps(sum_, x_, sum_);
    each_offset(whole, [&] {
      e_.vmulps(x_, sum_, e_.ptr[values_ + offset_]);
      e_.store(e_.ptr[result_ + offset_], x_);
    });
    if (tail != 0) {
      e_.vmulps(x_, sum_, e_.ptr[values_ + offset_]);
      e_.store_tail(e_.ptr[result_ + offset_], x_, lanes_);
    }
    next_row(row, {{values_, offsetof(SoftmaxArgs, value_step)}, {result_, offsetof(SoftmaxArgs, result_step)}});
  }

 private:
  using Reg64 = Xbyak::Reg64;
  using Fields = std::initializer_list<std::pair<Reg64, size_t>>;
  using Combine = void (Xbyak::CodeGenerator::*)(const Xbyak::Xmm&, const Xbyak::Operand&, const Xbyak::Operand&);

  Xbyak::Address field(size_t offset) const { return e_.qword[args_ + static_cast<int>(offset)]; }
  Xbyak::Address shift_of_row() const { return e_.dword[state_ + e_.vector_bytes()]; }
  Xbyak::Address bound_of_row() const { return e_.dword[state_ + e_.vector_bytes() + 4]; }

  void begin(int tail, const Fields& pointers) {
    e_.align(64);
    e_.set_tail(tail);
    e_.mov(rows_, field(offsetof(SoftmaxArgs, rows)));
    e_.mov(state_, field(offsetof(SoftmaxArgs, state)));
    for (const auto& [reg, offset] : pointers) e_.mov(reg, field(offset));
  }
  void next_row(Xbyak::Label& row, const Fields& steps) {
    for (const auto& [reg, offset] : steps) e_.add(reg, field(offset));
    e_.add(state_, 2 * e_.vector_bytes());
    e_.dec(rows_);
    e_.jnz(row, e_.T_NEAR);
    e_.vzeroupper();
    e_.ret();
  }

  /// body() with offset_ = 0, one vector, … below `bytes`; offset_ is `bytes` afterwards.
  template <typename Body>
  void each_offset(int64_t bytes, const Body& body, int step = 1) {
    e_.xor_(offset_, offset_);
    if (bytes == 0) return;
    Xbyak::Label loop;
    e_.align(16);
    e_.L(loop);
    body();
    e_.add(offset_, step * e_.vector_bytes());
    e_.cmp(offset_, static_cast<uint32_t>(bytes));
    e_.jl(loop, e_.T_NEAR);
  }

  /// body(vector, tail) for every vector of the row's scores, several to a pass of the loop: the vector's number in it.
  template <typename Body>
  void each_vector(const Body& body) {
    const int64_t looped = vectors_ / kUnroll * kUnroll;
    each_offset(
        looped * e_.vector_bytes(),
        [&] {
          for (int i = 0; i < kUnroll; ++i) body(i, false);
        },
        kUnroll);
    const int rest = static_cast<int>(vectors_ - looped);
    for (int i = 0; i < rest; ++i) body(i, false);
    if (tail_ != 0) body(rest, true);
  }
  Xbyak::Address at(const Reg64& base, int vector) const { return e_.ptr[base + offset_ + vector * e_.vector_bytes()]; }
  void load(const Vec& x, const Reg64& base, int vector, bool tail) {
    if (tail) e_.load_tail(x, at(base, vector), lanes_);
    else e_.load(x, at(base, vector));
  }
  void store(int vector, const Vec& x, bool tail) {
    if (tail) e_.store_tail(at(scores_, vector), x, lanes_);
    else e_.store(at(scores_, vector), x);
  }
  /// Lanes past the tail of x become those of `fill`.
  void fill_tail(const Vec& x, const Vec& fill) {
    if (e_.avx512()) e_.vblendmps(x | e_.k1, fill, x);
    else e_.vblendps(x, fill, x, static_cast<uint8_t>((1 << tail_) - 1));
  }

  /// maxima_[0]: the largest scores, lane by lane. The mask is added on the way.
  void maximum() {
    for (const Vec& m : maxima_) e_.load_constant(m, -kInf);
    if (s_.mask == MaskKind::per_row) e_.broadcast(mask_value_, e_.dword[masks_]);
    each_vector([&](int vector, bool tail) {
      load(x_, scores_, vector, tail);
      if (s_.mask == MaskKind::full) load(mask_value_, masks_, vector, tail);
      if (s_.mask != MaskKind::none) {
        e_.vaddps(x_, x_, mask_value_);
        store(vector, x_, tail);
      }
      const Vec& m = maxima_[static_cast<size_t>(vector)];
      if (tail) fill_tail(x_, m);
      e_.vmaxps(m, m, x_);
    });
    e_.vmaxps(maxima_[0], maxima_[0], maxima_[1]);
    e_.vmaxps(maxima_[2], maxima_[2], maxima_[3]);
    e_.vmaxps(maxima_[0], maxima_[0], maxima_[2]);
  }

  void jump_if_above_bound(Xbyak::Label& target) {
    constexpr uint8_t kGreater = 0x1e;  // false for NaN
    e_.broadcast(x_, bound_of_row());
    if (e_.avx512()) {
      e_.vcmpps(e_.k2, maxima_[0], x_, kGreater);
      e_.kortestw(e_.k2, e_.k2);
    } else {
      e_.vcmpps(x_, maxima_[0], x_, kGreater);
      e_.vtestps(x_, x_);
    }
    e_.jnz(target, e_.T_NEAR);
  }

  /// x becomes the weight of a score that is x above the shift.
  void weight(const Vec& x) {
    if (s_.mask != MaskKind::none) e_.vmulps(x, x, e_.constant(static_cast<float>(kLog2E)));
    math_.exp2(x, s0_, s1_);
  }

  void exponentials() {
    each_vector([&](int vector, bool tail) {
      load(x_, scores_, vector, tail);
      e_.vsubps(x_, x_, shift_);
      weight(x_);
      store(vector, x_, tail);
      if (tail) {
        e_.zero(s0_);
        fill_tail(x_, s0_);
      }
      e_.vaddps(sum_, sum_, x_);
    });
  }

  /// The row's largest score becomes its shift, and what has been summed shrinks to it.
  void raise_shift() {
    const Vec& shift = maxima_[0];
    reduce(shift, &Emitter::vmaxps);
    e_.broadcast(x_, shift_of_row());
    e_.vsubps(x_, x_, shift);
    weight(x_);
    e_.vmovss(shift_of_row(), Xbyak::Xmm(shift.getIdx()));
    e_.load_constant(s0_, kSlack);
    e_.vaddps(s0_, s0_, shift);
    e_.vmovss(bound_of_row(), Xbyak::Xmm(s0_.getIdx()));
    e_.vmulps(s0_, x_, e_.ptr[state_]);
    e_.store(e_.ptr[state_], s0_);
    const int64_t bytes = (s_.value_columns + e_.lanes() - 1) / e_.lanes() * e_.vector_bytes();
    each_offset(bytes, [&] {
      e_.vmulps(s0_, x_, e_.ptr[values_ + offset_]);
      e_.store(e_.ptr[values_ + offset_], s0_);
    });
  }

  /// All lanes become the combination of all lanes.
  void reduce(const Vec& x, Combine combine) {
    const auto step = [&] { (e_.*combine)(x, x, s0_); };
    if (e_.avx512()) {
      const Xbyak::Zmm s0(s0_.getIdx()), from(x.getIdx());
      e_.vshuff32x4(s0, from, from, 0x4e);
      step();
      e_.vshuff32x4(s0, from, from, 0xb1);
      step();
    } else {
      e_.vperm2f128(Xbyak::Ymm(s0_.getIdx()), Xbyak::Ymm(x.getIdx()), Xbyak::Ymm(x.getIdx()), 1);
      step();
    }
    e_.vshufps(s0_, x, x, 0x4e);
    step();
    e_.vshufps(s0_, x, x, 0xb1);
    step();
  }

  Emitter& e_;
  VectorMath math_;
  const SoftmaxSpec s_;
  const int64_t vectors_;
  const int tail_;
  const Vec x_ = e_.vec(0), s0_ = e_.vec(1), s1_ = e_.vec(2), shift_ = e_.vec(3), sum_ = e_.vec(4),
            mask_value_ = e_.vec(5), lanes_ = e_.vec(6);
  const std::array<Vec, kUnroll> maxima_{e_.vec(7), e_.vec(8), e_.vec(9), e_.vec(10)};
  const Reg64 args_{Xbyak::Operand::RDI}, scores_{Xbyak::Operand::RSI}, masks_{Xbyak::Operand::RDX},
      rows_{Xbyak::Operand::RCX}, offset_{Xbyak::Operand::R8}, state_{Xbyak::Operand::R9}, values_{Xbyak::Operand::R10},
      result_{Xbyak::Operand::R11};
};

}  // namespace

SoftmaxCode::SoftmaxCode(const SoftmaxSpec& spec, Isa isa) {
  size_t finish = 0;
  code_ = Emitter::generate(isa, [&](Emitter& e) {
    SoftmaxEmitter emitter(e, spec);
    emitter.weights();
    e.align(64);
    finish = e.getSize();
    emitter.finish();
  });
  weights_ = code_->entry<Function>(0);
  finish_ = code_->entry<Function>(finish);
}

SoftmaxCode::~SoftmaxCode() = default;
SoftmaxCode::SoftmaxCode(SoftmaxCode&&) noexcept = default;

double SoftmaxCode::unit(MaskKind mask) { return mask == MaskKind::none ? kLog2E : 1.0; }

void SoftmaxCode::start(float* state, int64_t rows, Isa isa) {
  const int64_t lanes = lanes_of(isa);
  for (; rows > 0; --rows, state += 2 * lanes) {
    std::fill_n(state, lanes, 0.0f);
    state[lanes] = -kLargest;
    state[lanes + 1] = -kInf;
  }
}

}  // namespace hone::cpu
