// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/rnn/recurrent_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/rnn/recurrent_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, kUnits>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
constexpr int kRows = HWY_TARGET <= HWY_AVX3 ? 4 : 2;  // rows at a time: as many sums as there are registers for

// The sums live in registers only where all loops over them are unrolled.
template <int kRowCount, int kVectors>
HWY_INLINE void panel_tile(const PanelArgs& args, int64_t row, int64_t column) {
  const D d;
  V sums[kRowCount][kVectors];
#pragma GCC unroll 4
  for (int r = 0; r < kRowCount; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = hn::LoadU(d, args.init + (row + r) * args.init_step + column + v * kLanes);
  const float* panel = args.panel + column;
  const float* x = args.x + row * args.x_step;
  for (int64_t k = 0; k < args.k; ++k, panel += args.panel_step) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const V weights = hn::LoadU(d, panel + v * kLanes);
#pragma GCC unroll 4
      for (int r = 0; r < kRowCount; ++r)
        sums[r][v] = hn::MulAdd(hn::Set(d, x[r * args.x_step + k]), weights, sums[r][v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRowCount; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      hn::StoreU(sums[r][v], d, args.out + (row + r) * args.out_step + column + v * kLanes);
}

template <int kRowCount>
HWY_INLINE void panel_rows(const PanelArgs& args, int64_t row) {
  int64_t column = 0;
  for (; column + 4 * kLanes <= args.width; column += 4 * kLanes) panel_tile<kRowCount, 4>(args, row, column);
  switch ((args.width - column) / kLanes) {
    case 3: return panel_tile<kRowCount, 3>(args, row, column);
    case 2: return panel_tile<kRowCount, 2>(args, row, column);
    case 1: return panel_tile<kRowCount, 1>(args, row, column);
    default: return;
  }
}

void Panel(const PanelArgs& args) {
  int64_t row = 0;
  for (; row + kRows <= args.rows; row += kRows) panel_rows<kRows>(args, row);
  for (; row < args.rows; ++row) panel_rows<1>(args, row);
}

HWY_INLINE V sigmoid(D d, V x) { return hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), hn::Exp(d, hn::Neg(x)))); }

HWY_INLINE V activate(D d, const GateActivation& a, V x) {
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f), alpha = hn::Set(d, a.alpha), beta = hn::Set(d, a.beta);
  switch (a.function) {
    case GateFunction::sigmoid: return sigmoid(d, x);
    case GateFunction::tanh: return hn::Tanh(d, x);
    case GateFunction::relu: return hn::Max(x, zero);
    case GateFunction::hard_sigmoid: return hn::Min(hn::Max(hn::MulAdd(alpha, x, beta), zero), one);
    case GateFunction::leaky_relu: return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(alpha, x), x);
    case GateFunction::thresholded_relu: return hn::IfThenElseZero(hn::Gt(x, alpha), x);
    case GateFunction::scaled_tanh: return hn::Mul(alpha, hn::Tanh(d, hn::Mul(beta, x)));
    case GateFunction::affine: return hn::MulAdd(alpha, x, beta);
    case GateFunction::elu: return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(alpha, hn::Expm1(d, x)), x);
    case GateFunction::softsign: return hn::Div(x, hn::Add(one, hn::Abs(x)));
    case GateFunction::softplus: return hn::Log1p(d, hn::Exp(d, x));
  }
  return x;
}

/// Activation `which` of the clipped number.
HWY_INLINE V gate(D d, const GateRule& rule, int which, V x) {
  const V limit = hn::Set(d, rule.clip);
  return activate(d, rule.activations[which], hn::Min(hn::Max(x, hn::Neg(limit)), limit));
}

void Lstm(const GateRule& rule, const LstmArgs& args) {
  const D d;
  for (int64_t u = 0; u < kUnits; u += kLanes) {
    const auto at = [&](int64_t which) { return hn::LoadU(d, args.gates + which * kUnits + u); };
    const auto peep = [&](const float* weights, V cell, V x) {
      return weights == nullptr ? x : hn::MulAdd(hn::LoadU(d, weights + u), cell, x);
    };
    const V cell = hn::LoadU(d, args.cell + u);
    const V in = gate(d, rule, 0, peep(args.peep_i, cell, at(0)));
    const V forget = rule.coupled ? hn::Sub(hn::Set(d, 1.0f), in) : gate(d, rule, 0, peep(args.peep_f, cell, at(2)));
    const V next = hn::MulAdd(forget, cell, hn::Mul(in, gate(d, rule, 1, at(3))));
    const V out = gate(d, rule, 0, peep(args.peep_o, next, at(1)));
    hn::StoreU(next, d, args.cell + u);
    hn::StoreU(hn::Mul(out, activate(d, rule.activations[2], next)), d, args.hidden + u);
  }
}

template <bool kLate>
void Gru(const GateRule& rule, const GruArgs& args) {
  const D d;
  for (int64_t u = 0; u < kUnits; u += kLanes) {
    const V update = gate(d, rule, 0, hn::LoadU(d, args.gates + u));
    V candidate = hn::LoadU(d, args.candidate + u);
    if (kLate)
      candidate =
          hn::MulAdd(gate(d, rule, 0, hn::LoadU(d, args.gates + kUnits + u)), candidate, hn::LoadU(d, args.input + u));
    const V fresh = gate(d, rule, 1, candidate), state = hn::LoadU(d, args.state + u);
    hn::StoreU(hn::MulAdd(update, hn::Sub(state, fresh), fresh), d, args.hidden + u);
  }
}

void GruReset(const GateRule& rule, const GruResetArgs& args) {
  const D d;
  for (int64_t u = 0; u < kUnits; u += kLanes)
    hn::StoreU(hn::Mul(gate(d, rule, 0, hn::LoadU(d, args.gates + kUnits + u)), hn::LoadU(d, args.state + u)), d,
               args.scaled + u);
}

void Rnn(const GateRule& rule, const float* x, float* hidden) {
  const D d;
  for (int64_t u = 0; u < kUnits; u += kLanes) hn::StoreU(gate(d, rule, 0, hn::LoadU(d, x + u)), d, hidden + u);
}

RecurrentKernels RecurrentTable() { return {Panel, Lstm, Gru<false>, Gru<true>, GruReset, Rnn}; }

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(RecurrentTable);

RecurrentKernels recurrent_kernels(Isa isa) { return HWY_DISPATCH_TABLE(RecurrentTable)[target_index(isa)](); }

}  // namespace hone::cpu
#endif
