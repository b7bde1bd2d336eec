// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/run/ceilings.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "backends/cpu/jit/emitter.h"
#include "base/bytes.h"
#include "base/clock.h"

namespace hone::cpu {
namespace {

constexpr int kRounds = 5;
constexpr int kIndependent = 12;  // sums in flight: more than latency times units on any processor so far
constexpr int64_t kLoops = 200'000;
constexpr size_t kCopied = size_t{128} << 20;  // by all workers together, source and destination apart

/// The best of some rounds of the same work on every worker, in seconds.
double best_seconds(int workers, const std::function<void(int worker)>& work) {
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const double start = now_ms();
#pragma omp parallel for num_threads(workers) schedule(static, 1)
    for (int worker = 0; worker < workers; ++worker) work(worker);
    best = std::min(best, seconds_since(start));
  }
  return best;
}

/// A loop that does nothing but multiply and add on `kIndependent` registers: void(int64_t loops).
std::unique_ptr<Emitter> multiply_add_loop(Isa isa) {
  return Emitter::generate(isa, [](Emitter& e) {
    for (int i = 0; i < kIndependent; ++i) e.zero(e.vec(i));
    const Emitter::Vec factor = e.vec(kIndependent);
    e.load_constant(factor, 0.5f);
    Xbyak::Label loop;
    e.align(32);
    e.L(loop);
    for (int i = 0; i < kIndependent; ++i) e.vfmadd231ps(e.vec(i), factor, factor);
    e.dec(e.rdi);
    e.jnz(loop, e.T_NEAR);
    e.vzeroupper();
    e.ret();
  });
}

double flops_per_second(Isa isa, int workers) {
  if (isa == Isa::scalar) return 0;
  const auto code = multiply_add_loop(isa);
  const auto loop = code->entry<void (*)(int64_t)>(0);
  const double seconds = best_seconds(workers, [&](int) { loop(kLoops); });
  return 2.0 * kIndependent * lanes_of(isa) * static_cast<double>(kLoops) * workers / seconds;
}

double bytes_per_second(int workers) {
  const AlignedBuffer from(kCopied), to(kCopied);
  std::memset(from.data(), 1, kCopied);
  const size_t share = kCopied / static_cast<size_t>(workers);
  const auto copy = [&](int worker) {
    const size_t at = static_cast<size_t>(worker) * share;
    std::memcpy(to.data() + at, from.data() + at, share);
  };
  return 2.0 * static_cast<double>(share) * workers / best_seconds(workers, copy);
}

}  // namespace

Ceilings measure_ceilings(Isa isa, int workers) {
  const double flops = flops_per_second(isa, workers);
  return {.bytes_per_second = bytes_per_second(workers), .f16_flops = flops, .f32_flops = flops};
}

}  // namespace hone::cpu
