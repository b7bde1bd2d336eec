// SPDX-License-Identifier: Apache-2.0
//
// What stands before CUDA source text that is compiled as C++ of the host: the threads of a cluster's blocks are contexts that run in turns until
// each waits for others, at a barrier or at an instruction of its warp. Shared memory is static: what has no size in the text is each
// block's own, the rest that of all blocks of a cluster. The text's inline
// assembly has become calls of emulated::ptx (compiler.cpp), whose instructions stand in ptx.h.
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <deque>
#include <functional>
#include <memory>
#include <tuple>
#include <vector>

#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)

struct uint3 {
  unsigned x, y, z;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {

constexpr unsigned kMostThreads = 1024, kMostBlocks = 8, kLanes = 32, kGroup = 128;
constexpr size_t kStackBytes = 128 << 10, kMostShared = 228 << 10, kMostDeclared = 128 << 10, kSlotBytes = 64;

/// 16 bytes and fewer on their way to shared memory: they arrive when the thread waits for their group, not before.
struct Copy {
  char* to;
  const char* from;
  size_t bytes, given;
  void arrive() const {
    memset(to, 0, bytes);
    memcpy(to, from, given);
  }
};

enum class State { ready, at_warp, at_group, at_block, at_cluster, at_turn, done };
struct Thread {
  ucontext_t context;
  State state = State::done;
  std::unique_ptr<char[]> stack;
  unsigned exchanges = 0;
  std::vector<std::vector<Copy>> groups{1};  // the last one is still open
};

constexpr unsigned kBlockShift = 28;  // behind a place in shared memory stands a block's number
constexpr char kUnwritten = 0x7e;
/// Each block's memory: what a launch asks for, and behind it what kernels declare.
alignas(1024) static char dynamic_shared[kMostBlocks][kMostShared + kMostDeclared];
static size_t declared = 0;                         // bytes
static Thread threads[kMostBlocks * kMostThreads];  // of a block behind those of the one before
static unsigned current = 0;
static uint3 cluster = {1, 1, 1}, first_block;
static std::deque<std::function<void()>> late;  // what arrives when nothing else is left to do
static bool turned = false;  // whether some barrier has, since threads that wait for one were last asked
static ucontext_t scheduler;
static const std::function<void()>* body;
alignas(
    16) static char slots[2][kMostBlocks * kMostThreads][kSlotBytes];  // of a warp's instruction and of the one before

inline unsigned own_block() { return current / kMostThreads; }
inline char* own_shared() { return dynamic_shared[own_block()]; }

[[noreturn]] inline void fail(const char* what) {
  fprintf(stderr, "emulated kernel, block %u %u %u, thread %u: %s\n", blockIdx.x, blockIdx.y, blockIdx.z, current,
          what);
  abort();
}

/// Where an array that a kernel declares lies in each block's memory.
inline size_t place_declared(size_t bytes) {
  const size_t place = kMostShared + declared;
  declared += (bytes + 15) / 16 * 16;
  if (declared > kMostDeclared) fail("kernels declare too much shared memory");
  return place;
}

inline void wait(State state) {
  threads[current].state = state;
  swapcontext(&threads[current].context, &scheduler);
}

inline void run_thread() {
  (*body)();
  threads[current].state = State::done;
}

inline void start(unsigned index) {
  Thread& thread = threads[index];
  if (thread.stack == nullptr) thread.stack.reset(new char[kStackBytes]);
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = thread.stack.get();
  thread.context.uc_stack.ss_size = kStackBytes;
  thread.context.uc_link = &scheduler;
  makecontext(&thread.context, run_thread, 0);
  thread.state = State::ready;
  thread.exchanges = 0;
  thread.groups.assign(1, {});
}

/// Whether all threads that have not ended wait in `state`; they then go on.
inline bool release(unsigned first, unsigned last, State state) {
  bool any = false;
  for (unsigned i = first; i < last; ++i) {
    if (threads[i].state != state && threads[i].state != State::done) return false;
    any |= threads[i].state == state;
  }
  for (unsigned i = first; i < last; ++i)
    if (threads[i].state == state) threads[i].state = State::ready;
  return any;
}

inline void run_warp(unsigned first, unsigned last) {
  const unsigned block = first / kMostThreads;
  blockIdx = {first_block.x + block % cluster.x, first_block.y + block / cluster.x % cluster.y,
              first_block.z + block / cluster.x / cluster.y};
  do {
    for (current = first; current < last; ++current) {
      if (threads[current].state != State::ready) continue;
      threadIdx = {current % kMostThreads, 0, 0};
      swapcontext(&scheduler, &threads[current].context);
    }
  } while (release(first, last, State::at_warp));
}

/// A cluster's blocks as ranges of threads.
template <typename Apply>
void for_blocks(Apply apply) {
  for (unsigned block = 0; block < cluster.x * cluster.y * cluster.z; ++block)
    apply(block * kMostThreads, block * kMostThreads + blockDim.x);
}
template <typename Apply>
void for_parts(unsigned first, unsigned last, unsigned size, Apply apply) {
  for (; first < last; first += size) apply(first, first + size < last ? first + size : last);
}

/// Lets those go on that wait for nobody any more; then, what was asked for of memory arrives.
inline bool release_all() {
  bool any = false, whole = true;
  for_blocks([&](unsigned first, unsigned last) {
    any |= release(first, last, State::at_block);
    for_parts(first, last, kGroup, [&](unsigned from, unsigned to) { any |= release(from, to, State::at_group); });
    for (unsigned i = first; i < last; ++i)
      whole &= threads[i].state == State::at_cluster || threads[i].state == State::done;
  });
  for_blocks([&](unsigned first, unsigned last) {
    for (unsigned i = first; i < last; ++i) {
      const bool goes_on =
          (whole && threads[i].state == State::at_cluster) || (turned && threads[i].state == State::at_turn);
      if (goes_on) threads[i].state = State::ready;
      any |= goes_on;
    }
  });
  turned = false;
  if (any || late.empty()) return any;
  late.front()();
  late.pop_front();
  return true;
}

inline void run_cluster() {
  for_blocks([](unsigned first, unsigned last) {
    for (unsigned i = first; i < last; ++i) start(i);
  });
  do for_blocks([](unsigned first, unsigned last) { for_parts(first, last, kLanes, run_warp); });
  while (release_all());
  for_blocks([](unsigned first, unsigned last) {
    for (current = first; current < last; ++current)
      if (threads[current].state != State::done) fail("waits for threads that wait elsewhere");
  });
}

template <typename... P>
std::function<void()> bind(void (*kernel)(P...), void** arguments) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    auto values = std::make_tuple(*static_cast<std::remove_const_t<P>*>(arguments[I])...);
    return std::function<void()>([kernel, values] { std::apply(kernel, values); });
  }
  (std::index_sequence_for<P...>{});
}

/// `shape`: blocks along three axes, threads, bytes of shared memory; `blocks` make a cluster. What it gives runs the kernel, at any time.
template <typename Kernel>
std::function<void()> launch(Kernel kernel, const unsigned* shape, void** arguments, uint3 blocks) {
  if (shape[3] > kMostThreads || shape[4] > kMostShared) fail("the block is too large");
  if (blocks.x * blocks.y * blocks.z > kMostBlocks) fail("the cluster is too large");
  if (shape[0] % blocks.x != 0 || shape[1] % blocks.y != 0 || shape[2] % blocks.z != 0) fail("no whole clusters");
  return [call = bind(kernel, arguments), grid = uint3{shape[0], shape[1], shape[2]}, block = shape[3],
          shared = shape[4], blocks] {
    body = &call;
    gridDim = grid;
    blockDim = {block, 1, 1};
    cluster = blocks;
    for (unsigned z = 0; z < grid.z; z += blocks.z)
      for (unsigned y = 0; y < grid.y; y += blocks.y)
        for (unsigned x = 0; x < grid.x; x += blocks.x) {
          first_block = {x, y, z};
          for (unsigned i = 0; i < blocks.x * blocks.y * blocks.z; ++i)
            memset(dynamic_shared[i], kUnwritten, kMostShared + declared);
          run_cluster();
          for (unsigned i = 0; i < blocks.x * blocks.y * blocks.z; ++i)
            for (const char* at = dynamic_shared[i] + shared; at != dynamic_shared[i] + kMostShared; ++at)
              if (*at != kUnwritten) fail("a block writes behind its shared memory");
        }
  };
}

inline unsigned lane() { return current % kLanes; }

/// Shows a value to the warp; the result holds those of all lanes until the thread's next exchange but one.
template <typename T>
struct Shown {
  const char* first;
  const T& operator[](unsigned lane) const { return *reinterpret_cast<const T*>(first + lane * kSlotBytes); }
};
template <typename T>
Shown<T> show(const T& value) {
  static_assert(sizeof(T) <= kSlotBytes);
  char(&side)[kMostBlocks * kMostThreads][kSlotBytes] = slots[threads[current].exchanges++ % 2];
  memcpy(side[current], &value, sizeof value);
  wait(State::at_warp);
  return {side[current / kLanes * kLanes]};
}

}  // namespace emulated

inline void __syncthreads() { emulated::wait(emulated::State::at_block); }
inline int __syncthreads_or(int vote) {
  static int votes[emulated::kMostBlocks][emulated::kMostThreads];
  votes[emulated::own_block()][threadIdx.x] = vote;
  __syncthreads();
  int any = 0;
  for (unsigned i = 0; i < blockDim.x; ++i) any |= votes[emulated::own_block()][i];
  __syncthreads();
  return any;
}
inline void __syncwarp(unsigned = ~0u) { emulated::wait(emulated::State::at_warp); }
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return emulated::show(value)[emulated::lane() ^ static_cast<unsigned>(mask)];
}
inline unsigned __ballot_sync(unsigned, int vote) {
  const auto votes = emulated::show(vote);
  unsigned result = 0;
  for (unsigned i = 0; i < emulated::kLanes; ++i) result |= static_cast<unsigned>(votes[i] != 0) << i;
  return result;
}

template <typename T>
T atomicAdd(T* at, T value) {
  const T old = *at;
  *at += value;
  return old;
}
template <typename T>
T atomicMax(T* at, T value) {
  const T old = *at;
  if (value > old) *at = value;
  return old;
}
template <typename T>
T atomicOr(T* at, T value) {
  const T old = *at;
  *at |= value;
  return old;
}

inline size_t __cvta_generic_to_shared(const void* at) {
  return static_cast<size_t>(static_cast<const char*>(at) - emulated::own_shared());
}
template <typename To, typename From>
To emulated_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
inline float __uint_as_float(unsigned bits) { return emulated_bits<float>(bits); }
inline float __int_as_float(int bits) { return emulated_bits<float>(bits); }
inline int __float_as_int(float value) { return emulated_bits<int>(value); }
inline unsigned __float_as_uint(float value) { return emulated_bits<unsigned>(value); }
inline float __expf(float x) { return expf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned places) {
  const unsigned long long bytes = static_cast<unsigned long long>(high) << 32 | low;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) result |= static_cast<unsigned>(bytes >> 8 * (places >> 4 * i & 7) & 0xff) << 8 * i;
  return result;
}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
/// Nobody is late here.
inline long long clock64() {
  static long long cycles = 0;
  return cycles += 1 << 20;
}
template <typename T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
T max(T a, T b) {
  return a < b ? b : a;
}

#include "ptx.h"
