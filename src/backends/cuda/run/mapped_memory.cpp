// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/mapped_memory.h"

#include <algorithm>

#include "backends/cuda/run/out_of_memory.h"

namespace hone::cuda {

std::shared_ptr<MappedMemory> MappedMemory::allocate(std::shared_ptr<const Context> context, size_t bytes) {
  const Driver& cuda = driver();
  if (cuda.cuMemCreate == nullptr || cuda.cuMemGetAllocationGranularity == nullptr) return nullptr;
  context->select();
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = context->device()};
  size_t step = 0;
  if (cuda.cuMemGetAllocationGranularity(&step, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) != CUDA_SUCCESS ||
      step == 0)
    return nullptr;
  const std::shared_ptr<MappedMemory> memory(
      new MappedMemory(std::move(context), std::max<size_t>((bytes + step - 1) / step, 1) * step));
  const CUresult status = memory->map(properties);
  if (status == CUDA_ERROR_OUT_OF_MEMORY) throw out_of_memory(bytes);
  return status == CUDA_SUCCESS ? memory : nullptr;  // a machine that lends no handles has other memory
}

CUresult MappedMemory::map(const CUmemAllocationProp& properties) {
  const Driver& cuda = driver();
  CUresult status = cuda.cuMemCreate(&handle_, bytes_, &properties, 0);
  if (status != CUDA_SUCCESS) {
    handle_ = 0;
    return status;
  }
  status = cuda.cuMemAddressReserve(&address_, bytes_, 0, 0, 0);
  if (status != CUDA_SUCCESS) {
    address_ = 0;
    return status;
  }
  status = cuda.cuMemMap(address_, bytes_, 0, handle_, 0);
  mapped_ = status == CUDA_SUCCESS;
  if (!mapped_) return status;
  const CUmemAccessDesc access{.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return cuda.cuMemSetAccess(address_, bytes_, &access, 1);
}

void MappedMemory::hold(std::shared_ptr<const void> made) {
  if (std::ranges::find(held_, made) == held_.end()) held_.push_back(std::move(made));
}

MappedMemory::~MappedMemory() {
  held_.clear();
  const Driver& cuda = driver();
  cuda.cuCtxSetCurrent(context_->handle());
  if (mapped_) cuda.cuMemUnmap(address_, bytes_);
  if (address_ != 0) cuda.cuMemAddressFree(address_, bytes_);
  if (handle_ != 0) cuda.cuMemRelease(handle_);
}

}  // namespace hone::cuda
