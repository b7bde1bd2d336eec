// SPDX-License-Identifier: Apache-2.0
//
// How fast the generated kernels are: for each layer of known networks, our candidates, oneDNN (where built with it), and
// both as a share of the FMA rate that this machine reaches on registers alone, measured a moment before.
//
//   conv_ladder [--workers=2] [--isa=avx512] [--filter=text] [--no-onednn] [--all]

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu/conv/conv_kernel.h"
#include "backends/cpu/conv/pack.h"
#include "backends/cpu/conv/winograd_kernel.h"
#include "backends/cpu/jit/emitter.h"
#include "backends/cpu/matmul/gemm_kernel.h"
#include "kernels/onednn_peer.h"
#include "kernels/shapes.h"

using namespace hone::cpu;
using hone::ActivationKind;

namespace {

using Clock = std::chrono::steady_clock;

/// A team that spins between tasks, as the runtime's does.
class Team {
 public:
  explicit Team(int workers) : workers_(workers) {
    for (int worker = 1; worker < workers; ++worker)
      threads_.emplace_back([this, worker] {
        for (uint64_t seen = 0;;) {
          uint64_t now;
          while ((now = epoch_.load(std::memory_order_acquire)) == seen) __builtin_ia32_pause();
          seen = now;
          if (stop_) return;
          (*task_)(worker);
          pending_.fetch_sub(1, std::memory_order_release);
        }
      });
  }
  ~Team() {
    stop_ = true;
    epoch_.fetch_add(1, std::memory_order_release);
    for (auto& thread : threads_) thread.join();
  }
  void run(const std::function<void(int)>& task) {
    task_ = &task;
    pending_ = workers_ - 1;
    epoch_.fetch_add(1, std::memory_order_release);
    task(0);
    while (pending_.load(std::memory_order_acquire)) __builtin_ia32_pause();
  }

 private:
  int workers_;
  std::vector<std::thread> threads_;
  std::atomic<uint64_t> epoch_{0};
  std::atomic<int> pending_{0};
  std::atomic<bool> stop_{false};
  const std::function<void(int)>* task_ = nullptr;
};

/// Shortest of many repeats within about 60 ms: what the code can do when nobody disturbs it.
double best_seconds(const std::function<void()>& body) {
  body();
  double best = 1e9, total = 0;
  for (int i = 0; i < 2000 && (total < 0.06 || i < 5); ++i) {
    const auto start = Clock::now();
    body();
    const double s = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, s);
    total += s;
  }
  return best;
}

double ceiling_gflops(Isa isa, Team& team, int workers) {
  Emitter e(isa);
  const int n = isa == Isa::avx512 ? 24 : 12;
  for (int i = 0; i < e.registers(); ++i) e.zero(e.vec(i));
  e.mov(e.ecx, 20000);
  Xbyak::Label loop;
  e.L(loop);
  for (int i = 0; i < n; ++i) e.vfmadd231ps(e.vec(i), e.vec(e.registers() - 1), e.vec(e.registers() - 2));
  e.dec(e.ecx);
  e.jnz(loop);
  e.vzeroupper();
  e.ret();
  e.finish();
  const auto code = e.entry<void (*)()>(0);
  const double s = best_seconds([&] { team.run([&](int) { code(); }); });
  return 2e-9 * 20000 * n * e.lanes() * workers / s;
}

struct Buffers {
  std::vector<float> src, weights, bias, dst;
};

Buffers buffers_for(const ConvShape& s, int64_t panel) {
  Buffers b;
  b.src.assign(size_t(s.n * s.ih * s.iw * s.src_stride()) + 64, 0.5f);
  b.weights.assign(packed_conv_floats(s, panel) + 64, 0.01f);
  b.bias.assign(packed_bias_floats(s.oc, s.groups, panel) + 64, 0.1f);
  b.dst.assign(size_t(s.n * s.oh() * s.ow() * s.dst_stride()) + 64, 0.0f);
  return b;
}

float* aligned(std::vector<float>& v) {
  return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(v.data()) + 63) / 64 * 64);
}

double time_ours(const ConvShape& s, const ConvConfig& config, Isa isa, Team& team, int workers) {
  const ConvKernel kernel(s, {.bias = true, .activation = {ActivationKind::relu}}, config, isa);
  Buffers b = buffers_for(s, config.panel_channels(isa));
  const ConvArgs args{aligned(b.src), aligned(b.weights), aligned(b.bias), nullptr, aligned(b.dst)};
  return best_seconds([&] { team.run([&](int worker) { kernel.run(worker, workers, args); }); });
}

double time_winograd(const ConvShape& s, const WinogradConfig& config, Isa isa, Team& team, int workers) {
  const WinogradKernel kernel(s, {.bias = true, .activation = {ActivationKind::relu}}, config, isa);
  Buffers b = buffers_for(s, config.panel_channels(isa));
  b.weights.assign(packed_winograd_floats(s, config, config.panel_channels(isa)) + 64, 0.01f);
  std::vector<float> scratch(kernel.scratch_floats() * size_t(workers) + 64);
  const ConvArgs args{aligned(b.src), aligned(b.weights), aligned(b.bias), nullptr, aligned(b.dst)};
  float* space = aligned(scratch);
  return best_seconds([&] { team.run([&](int worker) { kernel.run(worker, workers, args, space); }); });
}

/// "F4 231 us" for every candidate; `best` becomes the shortest.
std::string winograd_column(const ConvShape& s, Isa isa, Team& team, int workers, double& best) {
  std::string text;
  for (const WinogradConfig& config : winograd_candidates(s, isa, workers)) {
    const double seconds = time_winograd(s, config, isa, team, workers);
    best = std::min(best, seconds);
    text += "  F" + std::to_string(config.output) + " (" + std::to_string(config.tiles) + " " +
            std::to_string(config.pixels) + "x" + std::to_string(config.vectors) + ") " +
            std::to_string(int(seconds * 1e6 + 0.5));
  }
  return text;
}

std::vector<ConvConfig> every_config(Isa isa) {
  std::vector<ConvConfig> all;
  const std::vector<std::pair<int, int>> tiles =
      isa == Isa::avx512 ? std::vector<std::pair<int, int>>{{14, 2}, {12, 2}, {9, 3}, {8, 3}, {7, 4},
                                                            {6, 4},  {28, 1}, {4, 6}, {1, 8}, {2, 8}}
                         : std::vector<std::pair<int, int>>{{6, 2}, {4, 3}, {3, 4}, {12, 1}, {2, 6}, {1, 8}};
  for (auto [pixels, vectors] : tiles)
    for (int depth : {0, 512, 256, 128})
      for (int panels : {1, 4, 8, 0}) all.push_back({pixels, vectors, depth, panels, true});
  return all;
}

std::string text(const ConvConfig& c) {
  return std::to_string(c.pixels) + "x" + std::to_string(c.vectors) + " d" + std::to_string(c.depth) + " p" +
         std::to_string(c.panels) + (c.prefetch ? "" : " np");
}

}  // namespace

int main(int argc, char** argv) {
  int workers = 2;
  Isa isa = best_isa();
  std::string filter;
  bool peer = true, all = false;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.starts_with("--workers=")) workers = std::stoi(arg.substr(10));
    if (arg.starts_with("--isa=")) isa = isa_from_string(arg.substr(6)).value();
    if (arg.starts_with("--filter=")) filter = arg.substr(9);
    if (arg == "--no-onednn") peer = false;
    if (arg == "--all") all = true;
  }
  std::printf("%-34s %8s | %-18s %9s %6s | %9s %6s  %s\n", "layer", "MFLOP", "ours", "us", "peak", "oneDNN us", "peak",
              "ratio");
  double sum_ours = 0, sum_winograd = 0, sum_peer = 0, sum_floor = 0;
  for (const NamedShape& layer : known_layers()) {
    if (layer.name.find(filter) == std::string::npos) continue;
    // oneDNN first, while no team of ours spins on its processors.
    const double theirs = peer ? onednn_conv_seconds(layer.shape, workers, best_seconds) : 0;
    Team team(workers);
    const double ceiling = ceiling_gflops(isa, team, workers);
    ConvConfig best_config;
    double best = 1e9;
    auto configs = conv_candidates(layer.shape, isa, workers);
    const ConvConfig guess_config = configs[0];
    const double guess = time_ours(layer.shape, configs[0], isa, team, workers);
    if (all) configs = every_config(isa);
    for (const ConvConfig& c : configs) {
      const double s = time_ours(layer.shape, c, isa, team, workers);
      if (s < best) best = s, best_config = c;
    }
    const double floor = layer.shape.flops() / ceiling * 1e-9;
    double with_winograd = best;
    const std::string winograd = winograd_column(layer.shape, isa, team, workers, with_winograd);
    sum_winograd += with_winograd * layer.count;
    sum_ours += best * layer.count, sum_peer += theirs * layer.count, sum_floor += floor * layer.count;
    std::printf("%-34s %8.1f | %-18s %9.1f %5.0f%% (first guess %s %3.0f%%) | %9.1f %5.0f%%  %.2f%s\n",
                layer.name.c_str(), layer.shape.flops() * 1e-6, text(best_config).c_str(), best * 1e6,
                100 * floor / best, text(guess_config).c_str(), 100 * floor / guess, theirs * 1e6,
                theirs > 0 ? 100 * floor / theirs : 0, theirs / best, winograd.c_str());
    std::fflush(stdout);
  }
  std::printf("sum, ms: ours %.2f  with Winograd %.2f  oneDNN %.2f  arithmetic floor %.2f\n", sum_ours * 1e3,
              sum_winograd * 1e3, sum_peer * 1e3, sum_floor * 1e3);
}
