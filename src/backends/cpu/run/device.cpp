// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/run/device.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "backends/cpu/run/ceilings.h"
#include "backends/cpu/run/machine.h"
#include "backends/cpu/run/recording.h"
#include "base/state_error.h"
#include "tensor/free_memory.h"

namespace hone::cpu {
namespace {

constexpr size_t kHugePage = 2 << 20;

/// Work is done when a call returns: there is nothing to wait for.
class CpuStream final : public Stream {
 public:
  void synchronize() override {}
};

/// Two multiply-adds a cycle on each core, at 2.4 GHz.
NominalRates rates_of(Isa isa, int workers) {
  return {.f32_flops = 9.6e9 * lanes_of(isa) * workers,
          .memory_bytes = 10e9 * workers,
          .cache_bytes = 40e9 * workers,
          .launch_ms = 0.002};
}

DeviceInfo describe(const DeviceOptions& options) {
  const Machine machine = inspect_machine(options.cores);
  DeviceInfo info;
  info.name = machine.name;
  info.architecture = to_string(options.isa);
  info.workers = options.workers > 0     ? options.workers
                 : options.cores.empty() ? default_workers(machine)
                                         : machine.cores;
  info.memory_bytes = machine.memory_bytes;
  info.cache_bytes = info.core_bytes = machine.cache_bytes;
  info.shared_cache_bytes = options.shared_cache_bytes >= 0 ? options.shared_cache_bytes : machine.shared_cache_bytes;
  info.clock_ghz = machine.clock_ghz;
  info.byte_matmuls = options.isa != Isa::scalar;
  info.byte_dots = has_byte_dots(options.isa);
  info.quantized_weights = options.isa != Isa::scalar;
  info.bf16_matmuls = HONE_WITH_ONEDNN && options.isa == best_isa() && has_bf16_matmuls(options.isa);
  info.rates = rates_of(options.isa, info.workers);
  info.silicon = fmt::format("{}/L2 {}/L3 {}", machine.revision, machine.cache_bytes, machine.shared_cache_bytes);
  return info;
}

/// Pages that are not there yet come from the node's memory while it has any; where that is refused, from anywhere.
void prefer_node(void* memory, size_t bytes, int node) {
  constexpr int kPreferred = 1;  // MPOL_PREFERRED of linux/mempolicy.h
  std::array<unsigned long, 16> nodes = {};
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  if (static_cast<size_t>(node) >= nodes.size() * kBits) return;
  nodes[static_cast<size_t>(node) / kBits] = 1UL << static_cast<size_t>(node) % kBits;
  syscall(SYS_mbind, memory, bytes, kPreferred, nodes.data(), nodes.size() * kBits, 0);
}

}  // namespace

CpuDevice::CpuDevice(const DeviceOptions& options)
    : isa_(options.isa),
      cores_(options.cores),
      node_(cores_.empty() ? -1 : memory_node(cores_)),
      info_(describe(options)) {}

Ceilings CpuDevice::ceilings() { return measure_ceilings(*this, isa_, info_.workers); }

void* CpuDevice::allocate(size_t bytes) {
  require_memory("a buffer", bytes);
  const size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  const size_t rounded = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* memory = rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
  if (memory == nullptr)
    throw OutOfMemory(fmt::format("cannot allocate {} bytes of memory", bytes),
                      "use smaller shapes or a machine with more memory");
  if (alignment != kHugePage) return memory;
  // Fewer entries of the page tables to walk for weights and activations; where it is refused nothing is lost.
  madvise(memory, rounded, MADV_HUGEPAGE);
  if (node_ >= 0) prefer_node(memory, rounded, node_);
  return memory;
}

void CpuDevice::release(void* memory) noexcept { std::free(memory); }

void CpuDevice::adopt_thread() const {
  if (cores_.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores_) CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    throw Error(fmt::format("this process may not use the processors {}", fmt::join(cores_, ",")),
                "name others, or leave the cores out");
}

std::unique_ptr<Stream> CpuDevice::stream() { return std::make_unique<CpuStream>(); }

void CpuDevice::copy(void* destination, const void* source, size_t bytes, Stream&) {
  if (bytes != 0) std::memcpy(destination, source, bytes);
}

void CpuDevice::fill(void* memory, std::byte value, size_t bytes, Stream&) {
  if (bytes != 0) std::memset(memory, std::to_integer<int>(value), bytes);
}

std::unique_ptr<Recording> CpuDevice::record(std::vector<Launch> launches) {
  return std::make_unique<CpuRecording>(std::move(launches), info_.workers);
}

}  // namespace hone::cpu
