// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/run/device.h"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>
#include <thread>

#include "backends/cpu/kernel.h"
#include "base/env.h"

namespace {
std::atomic<int64_t> allocations{0};
}

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace hone::cpu {
namespace {

constexpr int64_t kCount = 1000;

/// out[i] = in[count - 1 - i] + 1: right only when all workers have finished the kernel before.
class ReverseAndCount final : public CpuKernel {
 public:
  explicit ReverseAndCount(bool serial = false, bool self_parallel = false)
      : serial_(serial), self_parallel_(self_parallel) {}
  bool serial() const override { return serial_; }
  bool self_parallel() const override { return self_parallel_; }
  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const auto* in = static_cast<const int*>(bindings.inputs[0]);
    auto* out = static_cast<int*>(bindings.outputs[0]);
    const Share share = share_of(kCount, worker, workers);
    for (int64_t i = share.begin; i < share.end; ++i) out[i] = in[kCount - 1 - i] + 1;
  }

 private:
  bool serial_, self_parallel_;
};

/// Two phases through the workspace: the second reads what other workers wrote in the first.
class TwoPhases final : public CpuKernel {
 public:
  int phases() const override { return 2; }
  size_t workspace_bytes() const override { return kCount * sizeof(int); }
  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    const auto* in = static_cast<const int*>(bindings.inputs[0]);
    auto *middle = static_cast<int*>(bindings.workspace), *out = static_cast<int*>(bindings.outputs[0]);
    const Share share = share_of(kCount, worker, workers);
    for (int64_t i = share.begin; i < share.end; ++i) {
      if (phase == 0) middle[i] = in[i] + 1;
      else out[i] = middle[kCount - 1 - i];
    }
  }
};

struct Chain {
  std::vector<int> a = std::vector<int>(kCount), b = std::vector<int>(kCount), scratch = std::vector<int>(kCount);
  std::unique_ptr<Recording> recording;
  int length = 0;

  /// Every kernel adds 1 and reverses; kinds alternate. The result lies in b.
  Chain(CpuDevice& device, int kernels) : length(kernels) {
    std::vector<Launch> launches;
    for (int k = 0; k < kernels; ++k) {
      Launch launch;
      if (k % 4 == 0) launch.kernel = std::make_shared<ReverseAndCount>();
      else if (k % 4 == 1) launch.kernel = std::make_shared<TwoPhases>();
      else if (k % 4 == 2) launch.kernel = std::make_shared<ReverseAndCount>(true);
      else launch.kernel = std::make_shared<ReverseAndCount>(false, k % 8 == 7);
      launch.inputs = {k % 2 == 0 ? a.data() : b.data()};
      launch.outputs = {k % 2 == 0 ? b.data() : a.data()};
      launch.workspace = scratch.data();
      launches.push_back(std::move(launch));
    }
    recording = device.record(std::move(launches));
  }
  void reset() {
    for (int64_t i = 0; i < kCount; ++i) a[static_cast<size_t>(i)] = static_cast<int>(i);
  }
  bool correct() const {
    for (int64_t i = 0; i < kCount; ++i)
      if (b[static_cast<size_t>(i)] != (length % 2 == 0 ? i : kCount - 1 - i) + length) return false;
    return true;
  }
};

TEST(CpuDevice, DescribesTheMachine) {
  const DeviceInfo info = CpuDevice({.workers = 3}).info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_EQ(info.workers, 3);
  EXPECT_EQ(info.architecture, to_string(best_isa()));
  EXPECT_GT(info.memory_bytes, 1 << 20);
  EXPECT_GT(info.cache_bytes, 1 << 15);
  EXPECT_GE(CpuDevice().info().workers, 1);
}

TEST(CpuDevice, ACapBelowMatrixTilesLeavesThemOut) {
  const std::optional<std::string> given = env_text("HONE_CPU_ISA");
  setenv("HONE_CPU_BF16", "emulated", 1);
  setenv("HONE_CPU_ISA", "amx", 1);
  EXPECT_TRUE(has_byte_tiles(Isa::avx512) && has_matrix_tiles(Isa::avx512));
  EXPECT_EQ(best_isa(), machine_isa());
  setenv("HONE_CPU_ISA", "avx512", 1);
  EXPECT_FALSE(has_byte_tiles(Isa::avx512) || has_matrix_tiles(Isa::avx512));
  EXPECT_EQ(best_isa(), machine_isa());
  unsetenv("HONE_CPU_BF16");
  if (given) setenv("HONE_CPU_ISA", given->c_str(), 1);
  else unsetenv("HONE_CPU_ISA");
}

TEST(CpuDevice, KnowsWhatBytesCanReach) {
  if (best_isa() == Isa::scalar) GTEST_SKIP() << "no code is generated";
  const Ceilings ceilings = CpuDevice({.workers = 1}).ceilings();
  EXPECT_GT(ceilings.i8_flops, 0);
  EXPECT_EQ(ceilings.flops_of(DType::u8), ceilings.i8_flops);
  EXPECT_EQ(ceilings.flops_of(DType::f32), ceilings.f32_flops);
}

TEST(CpuDevice, AllocatesAlignedMemoryAndSaysWhenItCannot) {
  CpuDevice device;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, size_t{5} << 20}) {
    void* memory = device.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    device.release(memory);
  }
  EXPECT_THROW(device.allocate(std::numeric_limits<size_t>::max() - 100), Error);
  EXPECT_THROW(device.allocate(size_t{1} << 60), Error);
}

TEST(CpuRecording, KeepsTheOrderOfKernelsAndPhases) {
  for (const int workers : {1, 2, 3, 5}) {
    CpuDevice device({.workers = workers});
    const std::unique_ptr<Stream> stream = device.stream();
    for (const int kernels : {1, 3, 15, 41}) {
      Chain chain(device, kernels);
      for (int round = 0; round < 20; ++round) {
        chain.reset();
        chain.recording->replay(*stream);
        ASSERT_TRUE(chain.correct()) << workers << " workers, " << kernels << " kernels";
      }
    }
  }
}

TEST(CpuRecording, AllocatesNothingWhenItReplays) {
  CpuDevice device({.workers = 2});
  const std::unique_ptr<Stream> stream = device.stream();
  Chain chain(device, 15);
  chain.reset();
  chain.recording->replay(*stream);
  const int64_t before = allocations;
  for (int i = 0; i < 10; ++i) chain.recording->replay(*stream);
  EXPECT_EQ(allocations - before, 0);
}

TEST(CpuRecording, ReplaysInSeveralThreadsAtOnce) {
  CpuDevice device({.workers = 2});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      const std::unique_ptr<Stream> stream = device.stream();
      Chain chain(device, 15);
      for (int round = 0; round < 30; ++round) {
        chain.reset();
        chain.recording->replay(*stream);
        wrong += !chain.correct();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CpuRecording, TimesEveryLaunchInOrder) {
  CpuDevice device({.workers = 2});
  const std::unique_ptr<Stream> stream = device.stream();
  Chain chain(device, 9);
  chain.reset();
  std::vector<size_t> order;
  chain.recording->replay(*stream, [&](size_t launch, double milliseconds) {
    order.push_back(launch);
    EXPECT_GE(milliseconds, 0);
  });
  EXPECT_EQ(order.size(), 9u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_TRUE(chain.correct());
}

class DenormalProbe final : public CpuKernel {
 public:
  void run(int, int worker, int, const Bindings& bindings) const override {
    volatile float tiny = 1e-40f;
    static_cast<float*>(bindings.outputs[0])[worker] = tiny * 1e30f;
  }
};

TEST(CpuRecording, FlushesDenormalsInKernelsOnly) {
  for (const int workers : {1, 2}) {
    CpuDevice device({.workers = workers});
    const std::unique_ptr<Stream> stream = device.stream();
    float results[2] = {1, 1};
    Launch launch;
    launch.kernel = std::make_shared<DenormalProbe>();
    launch.outputs = {results};
    device.record({launch})->replay(*stream);
    for (int worker = 0; worker < workers; ++worker) EXPECT_EQ(results[worker], 0);
    volatile float tiny = 1e-40f;
    EXPECT_GT(tiny * 1e30f, 0);
  }
}

}  // namespace
}  // namespace hone::cpu
