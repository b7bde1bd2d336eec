// SPDX-License-Identifier: Apache-2.0
//
// What the kernel tests share: random problems with a printed seed, a team of threads, guarded outputs, and error norms.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu/jit/isa.h"
#include "regions/epilogue.h"

namespace hone::cpu::trial {

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

/// A copy of `values` with an unmapped page on either side, flush against one of the two, so that generated code that reads
/// or writes outside crashes instead of passing.
class Guarded {
 public:
  Guarded(const std::vector<float>& values, bool at_end) {
    const size_t bytes = values.size() * sizeof(float), inner = (bytes + kPage - 1) / kPage * kPage;
    size_ = inner + 2 * kPage;
    base_ = static_cast<char*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (inner) mprotect(base_ + kPage, inner, PROT_READ | PROT_WRITE);
    data_ = reinterpret_cast<float*>(base_ + kPage + (at_end ? inner - bytes : 0));
    std::copy(values.begin(), values.end(), data_);
  }
  ~Guarded() { munmap(base_, size_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  float* data() const { return data_; }
  float& operator[](size_t i) const { return data_[i]; }

 private:
  static constexpr size_t kPage = 4096;
  char* base_;
  size_t size_;
  float* data_;
};

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

}  // namespace hone::cpu::trial
