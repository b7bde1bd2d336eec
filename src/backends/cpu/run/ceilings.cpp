// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/run/ceilings.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "backends/cpu/jit/emitter.h"
#include "backends/cpu/matmul/matrix_tile_code.h"
#include "base/clock.h"

namespace hone::cpu {
namespace {

constexpr int kRounds = 5;
constexpr int kIndependent = 12;  // sums in flight: more than latency times units on any processor so far
constexpr int64_t kLoops = 200'000;
constexpr int64_t kTileLoops = 25'000;             // of 64 cycles each
constexpr size_t kShare = size_t{16} << 20;        // bytes that a worker copies
constexpr size_t kLeastCopied = size_t{32} << 20;  // by all together: with the source beyond the cache of a few cores

using Work = std::function<void(int worker)>;

void on_all(int workers, const Work& work) {
#pragma omp parallel for num_threads(workers) schedule(static, 1)
  for (int worker = 0; worker < workers; ++worker) work(worker);
}

/// The best of some rounds of the same work on every worker, in seconds.
double best_seconds(int workers, const Work& work) {
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const double start = now_ms();
    on_all(workers, work);
    best = std::min(best, seconds_since(start));
  }
  return best;
}

using Loop = void (*)(int64_t loops);

/// A loop that does nothing but add products to `kIndependent` registers.
std::unique_ptr<Emitter> loop_of(Isa isa, const std::function<void(Emitter&, const Emitter::Vec& sum)>& add) {
  return Emitter::generate(isa, [&](Emitter& e) {
    for (int i = 0; i < kIndependent; ++i) e.zero(e.vec(i));
    e.load_constant(e.vec(kIndependent), 0.5f);
    Xbyak::Label loop;
    e.align(32);
    e.L(loop);
    for (int i = 0; i < kIndependent; ++i) add(e, e.vec(i));
    e.dec(e.rdi);
    e.jnz(loop, e.T_NEAR);
    e.vzeroupper();
    e.ret();
  });
}

/// The same with four matrix tiles of sums.
std::unique_ptr<Emitter> tile_loop() {
  return Emitter::generate(Isa::avx512, [](Emitter& e) {
    e.mov(e.rax, reinterpret_cast<size_t>(&kFullTiles));
    e.ldtilecfg(e.ptr[e.rax]);
    for (int i = 0; i < 8; ++i) e.tilezero(Xbyak::Tmm(i));
    Xbyak::Label loop;
    e.align(32);
    e.L(loop);
    for (int i = 0; i < 4; ++i) e.tdpbusd(Xbyak::Tmm(i), Xbyak::Tmm(4 + i / 2), Xbyak::Tmm(6 + i % 2));
    e.dec(e.rdi);
    e.jnz(loop, e.T_NEAR);
    e.tilerelease();
    e.ret();
  });
}

double operations_per_second(const Emitter& code, double of_a_loop, int workers, int64_t loops = kLoops) {
  const auto loop = code.entry<Loop>(0);
  return of_a_loop * static_cast<double>(loops) * workers / best_seconds(workers, [&](int) { loop(loops); });
}

double flops_per_second(Isa isa, int workers) {
  if (isa == Isa::scalar) return 0;
  const Emitter::Vec factor =
      Emitter::Vec(isa == Isa::avx512 ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM, kIndependent);
  const auto code = loop_of(isa, [&](Emitter& e, const Emitter::Vec& sum) { e.vfmadd231ps(sum, factor, factor); });
  return operations_per_second(*code, 2.0 * kIndependent * lanes_of(isa), workers);
}

/// On matrix tiles, or four products of bytes at once, or two of words.
double byte_operations_per_second(Isa isa, int workers) {
  if (isa == Isa::scalar) return 0;
  if (has_byte_tile_instructions() && has_byte_tiles(isa))
    return operations_per_second(*tile_loop(), 2.0 * 4 * 16 * 16 * kTileRow, workers, kTileLoops);
  const bool dots = has_byte_dots(isa);
  const auto code = loop_of(isa, [&](Emitter& e, const Emitter::Vec& sum) {
    const Emitter::Vec factor = e.vec(kIndependent), product = e.vec(kIndependent + 1);
    if (dots) return e.vpdpbusd(sum, factor, factor, e.avx512() ? Xbyak::EvexEncoding : Xbyak::VexEncoding);
    e.vpmaddwd(product, factor, factor);
    e.vpaddd(sum, sum, product);
  });
  return operations_per_second(*code, 2.0 * kIndependent * lanes_of(isa) * (dots ? 4 : 2), workers);
}

/// In memory as weights and activations have it; each worker's share is first written by itself, the destination by the first round.
double bytes_per_second(Device& device, int workers) {
  const auto count = static_cast<size_t>(workers);
  const size_t share = std::max(kShare, kLeastCopied / count);
  const Buffer from(device, share * count), to(device, share * count);
  const auto part = [&](const Buffer& buffer, int worker) {
    return static_cast<std::byte*>(buffer.data()) + static_cast<size_t>(worker) * share;
  };
  on_all(workers, [&](int worker) { std::memset(part(from, worker), 1, share); });
  const double seconds =
      best_seconds(workers, [&](int worker) { std::memcpy(part(to, worker), part(from, worker), share); });
  return 2.0 * static_cast<double>(share) * workers / seconds;
}

}  // namespace

Ceilings measure_ceilings(Device& device, Isa isa, int workers) {
  const double flops = flops_per_second(isa, workers);
  return {.bytes_per_second = bytes_per_second(device, workers),
          .f16_flops = flops,
          .f32_flops = flops,
          .i8_flops = byte_operations_per_second(isa, workers)};
}

}  // namespace hone::cpu
