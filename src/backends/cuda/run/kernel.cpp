// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/run/kernel.h"

#include "base/error.h"

namespace hone::cuda {

namespace {
void* moved(const void* pointer, int64_t bytes) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(pointer)) + bytes;
}
}  // namespace

Arguments& Arguments::pointer(Kind kind, int64_t at, int64_t offset) {
  HONE_ASSERT(slots_.size() < kMost, "a launch has more than {} arguments", kMost);
  slots_.push_back({kind, at, offset});
  return *this;
}

void Arguments::require_places(const KernelShapes& shapes) const {
  const auto require = [](std::string_view what, int64_t at, size_t count) {
    HONE_CHECK(at >= 0 && at < static_cast<int64_t>(count), "a kernel in the plan has the {} {} of {}", what, at,
               count);
  };
  for (const Slot& slot : slots_) {
    if (slot.kind == Kind::input) require("input", slot.at, shapes.inputs.size());
    if (slot.kind == Kind::output) require("result", slot.at, shapes.outputs.size());
    if (slot.kind == Kind::constant && shapes.constant_bytes)
      require("constant", slot.at, shapes.constant_bytes->size());
  }
}

void Arguments::resolve(const Bindings& bindings, std::array<void*, kMost>& pointers,
                        std::array<void*, kMost>& list) const {
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    const auto at = static_cast<size_t>(slot.at);
    list[i] = &pointers[i];
    switch (slot.kind) {
      case Kind::input: pointers[i] = moved(bindings.inputs[at], slot.offset); break;
      case Kind::output: pointers[i] = moved(bindings.outputs[at], slot.offset); break;
      case Kind::constant: pointers[i] = moved(bindings.constants[at], slot.offset); break;
      case Kind::workspace: pointers[i] = moved(bindings.workspace, slot.offset); break;
      case Kind::null: pointers[i] = nullptr; break;
      case Kind::value: list[i] = const_cast<std::byte*>(bytes_.data() + at); break;
    }
  }
}

GridKernel::GridKernel(std::shared_ptr<const Module> module, std::vector<GridLaunch> launches, size_t workspace)
    : module_(std::move(module)), launches_(std::move(launches)), workspace_(workspace) {
  constexpr unsigned kDefaultShared = 48 << 10;
  for (const GridLaunch& launch : launches_) {
    const bool fits = launch.grid.x > 0 && launch.grid.x < int64_t{1} << 31 && launch.grid.y > 0 &&
                      launch.grid.y < 65536 && launch.grid.z > 0 && launch.grid.z < 65536;
    HONE_CHECK(fits, "a kernel would need {} x {} x {} blocks", launch.grid.x, launch.grid.y, launch.grid.z);
    if (launch.shared_bytes > kDefaultShared)
      check(driver().cuFuncSetAttribute(launch.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        static_cast<int>(launch.shared_bytes)),
            "reserving shared memory");
  }
}

std::vector<CUfunction> GridKernel::waiting_functions() const {
  std::vector<CUfunction> functions;
  for (const GridLaunch& launch : launches_) functions.push_back(launch.function);
  return functions;
}

void GridKernel::enqueue(CUstream stream, const Bindings& bindings, bool early) const {
  std::array<void*, Arguments::kMost> pointers, list;
  CUlaunchAttribute overlap{};
  overlap.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  overlap.value.programmaticStreamSerializationAllowed = 1;
  for (const GridLaunch& launch : launches_) {
    launch.arguments.resolve(bindings, pointers, list);
    CUlaunchConfig config{};
    config.gridDimX = static_cast<unsigned>(launch.grid.x);
    config.gridDimY = static_cast<unsigned>(launch.grid.y);
    config.gridDimZ = static_cast<unsigned>(launch.grid.z);
    config.blockDimX = launch.block;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = launch.shared_bytes;
    config.hStream = stream;
    config.attrs = &overlap;
    config.numAttrs = early ? 1 : 0;
    check(driver().cuLaunchKernelEx(&config, launch.function, list.data(), nullptr), "launching a kernel");
  }
}

}  // namespace hone::cuda
