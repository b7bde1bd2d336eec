// SPDX-License-Identifier: Apache-2.0
//
// What the kernel tests share: random problems with a printed seed, a team of threads, guarded outputs, and error norms.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu/jit/epilogue.h"
#include "backends/cpu/jit/isa.h"

namespace hone::cpu::testing {

inline std::vector<Isa> machine_isas() {
  std::vector<Isa> isas;
  for (Isa isa : {Isa::avx2, Isa::avx512})
    if (isa <= machine_isa()) isas.push_back(isa);
  return isas;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t integer(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
  bool coin(double p = 0.5) { return std::bernoulli_distribution(p)(engine_); }
  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[integer(0, int64_t(choices.size()) - 1)];
  }
  std::vector<float> floats(size_t count, float scale = 1) {
    std::uniform_real_distribution<float> uniform(-scale, scale);
    std::vector<float> values(count);
    for (float& v : values) v = uniform(engine_);
    return values;
  }
  Activation activation() {
    const auto kind = ActivationKind(integer(0, int64_t(ActivationKind::gelu_tanh)));
    switch (kind) {
      case ActivationKind::clip: return {kind, -0.4f, 0.6f};
      case ActivationKind::leaky_relu: return {kind, 0.1f, 0};
      case ActivationKind::hard_sigmoid: return {kind, 0.2f, 0.5f};
      default: return {kind, 0, 0};
    }
  }
  Epilogue epilogue() {
    Epilogue e;
    e.bias = coin();
    e.residual = coin();
    e.residual_after_activation = coin();
    e.activation = activation();
    return e;
  }

 private:
  std::mt19937_64 engine_;
};

inline uint64_t test_seed() {
  const char* text = std::getenv("HONE_TEST_SEED");
  return text ? std::strtoull(text, nullptr, 10) : 20240611;
}

template <typename Body>
void on_team(int workers, Body&& body) {
  std::vector<std::thread> team;
  for (int worker = 0; worker < workers; ++worker) team.emplace_back([&, worker] { body(worker, workers); });
  for (std::thread& thread : team) thread.join();
}

inline double finish(const Epilogue& e, double sum, double bias, double residual) {
  double x = sum * double(e.scale) + (e.bias ? bias : 0);
  if (e.residual && !e.residual_after_activation) x += residual;
  x = activate(e.activation, x);
  if (e.residual && e.residual_after_activation) x += residual;
  return x;
}

}  // namespace hone::cpu::testing
