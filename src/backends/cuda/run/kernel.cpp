// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/run/kernel.h"

#include <algorithm>

#include "base/error.h"

namespace hone::cuda {

namespace {
void* moved(const void* pointer, int64_t bytes) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(pointer)) + bytes;
}

CUtensorMap map_of(const MappedOperand& operand, void* from) {
  HONE_CHECK(driver().cuTensorMapEncodeTiled != nullptr, "a kernel needs a driver of CUDA 12.0 or newer");
  CUtensorMap map;
  std::array<cuuint64_t, MappedOperand::kMostAxes> sizes{}, steps{};
  std::array<cuuint32_t, MappedOperand::kMostAxes> box{}, each{};
  for (size_t i = 0; i < operand.axes; ++i) {
    sizes[i] = static_cast<cuuint64_t>(operand.sizes[i]);
    steps[i] = i == 0 ? sizes[i] : steps[i - 1] * sizes[i];  // of the axis behind it
    box[i] = static_cast<cuuint32_t>(operand.box[i]);
    each[i] = 1;
  }
  const CUtensorMapSwizzle exchange = box[0] == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                      : box[0] == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                     : CU_TENSOR_MAP_SWIZZLE_32B;
  check(driver().cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, static_cast<cuuint32_t>(operand.axes),
                                        from, sizes.data(), steps.data(), box.data(), each.data(),
                                        CU_TENSOR_MAP_INTERLEAVE_NONE, exchange, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "describing a kernel's operand");
  return map;
}
}  // namespace

Arguments& Arguments::add(const Slot& slot) {
  HONE_ASSERT(slots_.size() < kMost, "a launch has more than {} arguments", kMost);
  slots_.push_back(slot);
  return *this;
}

Arguments& Arguments::pointer(const Pointer& pointer) { return add({.pointer = pointer, .value = {}}); }

Arguments& Arguments::mapped(const MappedOperand& operand) {
  HONE_ASSERT(std::ranges::none_of(slots_, &Slot::mapped), "a launch maps two operands");
  mapped_ = operand;
  return add({.pointer = operand.from, .value = {}, .mapped = true});
}

Arguments& Arguments::bytes(const void* value, size_t size) {
  const size_t at = bytes_.size();
  bytes_.resize((at + size + 7) / 8 * 8);
  std::memcpy(bytes_.data() + at, value, size);
  return add({.pointer = {}, .value = at});
}

void Arguments::require_places(const KernelShapes& shapes) const {
  const auto require = [](std::string_view what, int64_t at, size_t count) {
    HONE_CHECK(at >= 0 && at < static_cast<int64_t>(count), "a kernel in the plan has the {} {} of {}", what, at,
               count);
  };
  for (const auto& [pointer, value, mapped] : slots_) {
    if (pointer.from == Pointer::From::input) require("input", pointer.index, shapes.inputs.size());
    if (pointer.from == Pointer::From::output) require("result", pointer.index, shapes.outputs.size());
    if (pointer.from == Pointer::From::constant && shapes.constant_bytes)
      require("constant", pointer.index, shapes.constant_bytes->size());
  }
}

void Arguments::resolve(const Bindings& bindings, Resolved& to) const {
  auto& [pointers, list, map] = to;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const auto& [pointer, value, mapped] = slots_[i];
    const auto at = static_cast<size_t>(pointer.index);
    list[i] = value ? const_cast<std::byte*>(bytes_.data() + *value) : static_cast<void*>(&pointers[i]);
    switch (pointer.from) {
      case Pointer::From::input: pointers[i] = moved(bindings.inputs[at], pointer.bytes); break;
      case Pointer::From::output: pointers[i] = moved(bindings.outputs[at], pointer.bytes); break;
      case Pointer::From::constant: pointers[i] = moved(bindings.constants[at], pointer.bytes); break;
      case Pointer::From::workspace: pointers[i] = moved(bindings.workspace, pointer.bytes); break;
      case Pointer::From::nowhere: pointers[i] = nullptr; break;
    }
    if (mapped) map = map_of(mapped_, pointers[i]), list[i] = &map;
  }
}

namespace {

void reserve_shared(const GridLaunch& launch) {
  constexpr unsigned kDefaultShared = 48 << 10;
  if (launch.shared_bytes > kDefaultShared)
    check(driver().cuFuncSetAttribute(launch.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                      static_cast<int>(launch.shared_bytes)),
          "reserving shared memory");
}

CUlaunchConfig config_of(const GridLaunch& launch) {
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>(launch.grid.x);
  config.gridDimY = static_cast<unsigned>(launch.grid.y);
  config.gridDimZ = static_cast<unsigned>(launch.grid.z);
  config.blockDimX = launch.block;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = launch.shared_bytes;
  return config;
}

}  // namespace

int64_t clusters_at_once(const GridLaunch& launch, int64_t blocks) {
  if (driver().cuOccupancyMaxActiveClusters == nullptr) return 0;
  reserve_shared(launch);
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  CUlaunchConfig config = config_of(launch);
  config.attrs = &cluster;
  config.numAttrs = 1;
  int count = 0;
  check(driver().cuOccupancyMaxActiveClusters(&count, launch.function, &config), "counting clusters");
  return count;
}

GridKernel::GridKernel(std::shared_ptr<const Module> module, std::vector<GridLaunch> launches, size_t workspace)
    : module_(std::move(module)), launches_(std::move(launches)), workspace_(workspace) {
  for (const GridLaunch& launch : launches_) {
    const bool fits = launch.grid.x > 0 && launch.grid.x < int64_t{1} << 31 && launch.grid.y > 0 &&
                      launch.grid.y < 65536 && launch.grid.z > 0 && launch.grid.z < 65536;
    HONE_CHECK(fits, "a kernel would need {} x {} x {} blocks", launch.grid.x, launch.grid.y, launch.grid.z);
    reserve_shared(launch);
  }
}

std::vector<CUfunction> GridKernel::waiting_functions() const {
  std::vector<CUfunction> functions;
  for (const GridLaunch& launch : launches_) functions.push_back(launch.function);
  return functions;
}

void GridKernel::enqueue(CUstream stream, const Bindings& bindings, bool early) const {
  Arguments::Resolved arguments;
  CUlaunchAttribute overlap{};
  overlap.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  overlap.value.programmaticStreamSerializationAllowed = 1;
  for (const GridLaunch& launch : launches_) {
    launch.arguments.resolve(bindings, arguments);
    CUlaunchConfig config = config_of(launch);
    config.hStream = stream;
    config.attrs = &overlap;
    config.numAttrs = early ? 1 : 0;
    check(driver().cuLaunchKernelEx(&config, launch.function, arguments.list.data(), nullptr), "launching a kernel");
  }
}

}  // namespace hone::cuda
