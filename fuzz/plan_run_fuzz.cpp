// SPDX-License-Identifier: Apache-2.0
//
// A plan whose numbers were altered and whose checksums were made right again is refused with an Error or runs inside its own
// memory. An input is the number of a sample (plan_samples.h) and anything, from which follows what is altered; with nothing
// behind the number the sample runs as it is. HONE_FUZZ_PLAN names a file that holds the plan at hand.
#include <cstdlib>
#include <fstream>
#include <set>

#include "backends/all.h"
#include "backends/cpu/run/device.h"
#include "echo_group.h"
#include "guarded_memory.h"
#include "harness.h"
#include "plan_alterations.h"
#include "plan_samples.h"
#include "runtime/engine.h"

/// What asks for more than this at once is a finding; leaks of libraries are none. Where each piece of memory came from is a
/// fifth of the time: ASAN_OPTIONS=malloc_context_size=30 tells it when a finding is repeated. For the address sanitizer, where
/// it is there.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "max_allocation_size_mb=1024:detect_leaks=0:malloc_context_size=1:quarantine_size_mb=32";
}

namespace hone::fuzz {
namespace {

/// The processor with one worker, whose memory is guarded.
class GuardedDevice final : public Device, public HasGroup {
 public:
  GuardedDevice() { join(std::make_shared<EchoGroup>()); }
  DeviceInfo info() const override { return cpu_.info(); }
  void* allocate(size_t bytes) override { return memory_.take(bytes, kAlignment, side_); }
  void release(void*) noexcept override {}
  void* allocate_host(size_t bytes) override { return allocate(bytes); }
  void release_host(void*) noexcept override {}
  std::unique_ptr<Stream> stream() override { return cpu_.stream(); }
  void copy(void* to, const void* from, size_t bytes, Stream& stream) override { cpu_.copy(to, from, bytes, stream); }
  void fill(void* memory, std::byte value, size_t bytes, Stream& stream) override {
    cpu_.fill(memory, value, bytes, stream);
  }
  std::unique_ptr<Recording> record(std::vector<Launch> launches) override { return cpu_.record(std::move(launches)); }
  bool host_accessible() const override { return true; }

  void start(GuardedMemory::Side side) {
    memory_.clear();
    side_ = side;
  }
  /// Exactly so many bytes of a network's tensor or constant.
  std::byte* place(size_t bytes, size_t element) { return memory_.take(bytes, element, side_); }

 private:
  cpu::CpuDevice cpu_{cpu::DeviceOptions{.workers = 1}};
  GuardedMemory memory_;
  GuardedMemory::Side side_ = GuardedMemory::Side::high;
};

struct Bench {
  const Backend* backend = find_backend("cpu");
  std::shared_ptr<GuardedDevice> device = std::make_shared<GuardedDevice>();
  std::vector<std::string> labels;
  std::vector<PlanPieces> plans;

  Bench() {
    for (PlanSample& sample : plan_samples(*backend, *device)) {
      const std::vector<std::byte> file = save_plan(sample.plan);
      labels.push_back(std::move(sample.label));
      plans.push_back(take_apart({reinterpret_cast<const char*>(file.data()), file.size()}));
    }
  }
};

const Bench& bench() {
  setenv("HONE_CPU_BF16", "emulated", 0);  // families that this machine may lack the instructions for
  static const Bench instance;
  return instance;
}

void guard_constants(Plan& plan, GuardedDevice& device) {
  for (Tensor& constant : plan.constants) {
    const std::span<const std::byte> bytes = constant.bytes();
    std::byte* place = device.place(bytes.size(), kAlignment);
    if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
    constant = Tensor(constant.dtype(), constant.dims(), Blob(nullptr, {place, bytes.size()}));
  }
}

Dims some_dims(const Plan& plan, const IoTensor& io, int64_t n) {
  for (const ProfileRange& range : plan.profiles[0].ranges)
    if (range.tensor == io.name) return n == 1 ? range.min : n == 2 ? range.opt : range.max;
  std::set<std::string> names;
  for (const Dim& dim : io.type.shape) dim.collect_symbols(names);
  SymbolValues symbols;
  for (const std::string& name : names) symbols[name] = n;
  return io.type.shape.evaluate(symbols);
}

void fill(std::byte* memory, size_t bytes, const IoTensor& io, Choices& choices) {
  const bool small = choices.whole() || choices.one_in(2) || io.type.dtype == DType::boolean;
  for (size_t i = 0; i < bytes; ++i) {
    const bool low = size_of(io.type.dtype) <= 1 || i % size_of(io.type.dtype) == 0;
    memory[i] = static_cast<std::byte>(!small ? (i * 2654435761u >> 7) : low ? i % 2 : 0);
  }
}

void bind_all(const Plan& plan, const Engine& engine, ExecutionContext& context, GuardedDevice& device,
              Choices& choices) {
  const int64_t n = 1 + static_cast<int64_t>(choices.below(3));
  for (const IoTensor& io : plan.io) {
    if (!io.is_input) continue;
    HONE_CHECK(!engine.by_value(io.name), "objects are not bound here");
    if (!io.type.shape.is_static()) context.set_shape(io.name, some_dims(plan, io, n));
  }
  for (const IoTensor& io : plan.io) {
    if (engine.by_value(io.name)) continue;
    const auto bytes = static_cast<size_t>(context.bytes(io.name));
    std::byte* memory = device.place(bytes, std::max<size_t>(size_of(io.type.dtype), 1));
    fill(memory, bytes, io, choices);
    context.bind(io.name, memory);
  }
}

void run(const std::string& file, Choices& choices) {
  const std::shared_ptr<GuardedDevice>& device = bench().device;
  device->start(choices.one_in(2) ? GuardedMemory::Side::low : GuardedMemory::Side::high);
  Plan plan = load_plan(Blob::copy(file));
  guard_constants(plan, *device);
  const auto engine = Engine::load(std::move(plan), *bench().backend, device, sample_operators());
  const std::unique_ptr<ExecutionContext> context = engine->context();
  bind_all(engine->plan(), *engine, *context, *device, choices);
  const std::unique_ptr<Stream> stream = device->stream();
  for (size_t runs = 1 + choices.below(2); runs > 0; --runs) context->enqueue(*stream);
  for (const std::string& name : context->debug_tensors()) context->debug_value(name);
  for (const IoTensor& io : engine->plan().io)
    if (!io.is_input && io.type.layout == Layout::linear) context->value(io.name);
}

}  // namespace

std::vector<std::string> seed_inputs() {
  std::vector<std::string> seeds;
  for (size_t i = 0; i < bench().plans.size(); ++i)
    for (const std::string choices : {"", "0123456789abcdefghijklmnopqrstuv"})
      seeds.push_back(std::string{static_cast<char>(i >> 8), static_cast<char>(i)} + choices);
  return seeds;
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone::fuzz;
  Choices choices(data, size);
  const size_t number = choices.first() % bench().plans.size();
  PlanPieces plan = bench().plans[number];
  if (!choices.whole()) alter(plan, choices);
  const std::string file = plan.file();
  if (const char* path = std::getenv("HONE_FUZZ_PLAN")) std::ofstream(path, std::ios::binary) << file;
  if (choices.whole())
    hone::with_note([&] { return "running the sample " + bench().labels[number]; }, [&] { run(file, choices); });
  else accepted([&] { run(file, choices); });
  return 0;
}
