// SPDX-License-Identifier: Apache-2.0
//
// Memory: device, pinned, managed and pooled memory are all the host's, at multiples of 256 bytes as CUDA's is. A copy of any kind is
// memmove, also the asynchronous ones, which are thereby done when they return.
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "cudart.h"

#define ALIGNMENT 256u

static int allocate(void** pointer, size_t bytes, enum cudart_kind kind) {
  if (pointer == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  *pointer = NULL;
  if (bytes == 0) return CUDA_SUCCESS;
  if (bytes > SIZE_MAX - ALIGNMENT) return cudart_failed(CUDA_MEMORY_ALLOCATION);
  void* memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  if (memory == NULL) return cudart_failed(CUDA_MEMORY_ALLOCATION);
  if (!cudart_keep(memory, kind, bytes)) {
    free(memory);
    return cudart_failed(CUDA_MEMORY_ALLOCATION);
  }
  *pointer = memory;
  return CUDA_SUCCESS;
}

static int release(void* memory, enum cudart_kind kind) {
  if (memory == NULL) return CUDA_SUCCESS;
  if (!cudart_forget(memory, kind)) return cudart_failed(CUDA_INVALID_VALUE);
  free(memory);
  return CUDA_SUCCESS;
}

CUDART_API int cudaMalloc(void** pointer, size_t bytes) { return allocate(pointer, bytes, CUDART_MEMORY); }
CUDART_API int cudaMallocHost(void** pointer, size_t bytes) { return allocate(pointer, bytes, CUDART_PINNED); }
CUDART_API int cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  (void)flags;
  return allocate(pointer, bytes, CUDART_PINNED);
}
CUDART_API int cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  (void)flags;
  return allocate(pointer, bytes, CUDART_MANAGED);
}
CUDART_API int cudaMallocAsync(void** pointer, size_t bytes, void* stream) {
  return cudart_is_stream(stream) ? allocate(pointer, bytes, CUDART_MEMORY)
                                  : cudart_failed(CUDA_INVALID_RESOURCE_HANDLE);
}
CUDART_API int cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  if (pitch == NULL || width > SIZE_MAX - ALIGNMENT) return cudart_failed(CUDA_INVALID_VALUE);
  const size_t row = (width + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (row != 0 && height > SIZE_MAX / row) return cudart_failed(CUDA_MEMORY_ALLOCATION);
  *pitch = row;
  return allocate(pointer, row * height, CUDART_MEMORY);
}
CUDART_API int cudaFree(void* memory) {
  return cudart_kind_of(memory) == CUDART_MANAGED ? release(memory, CUDART_MANAGED) : release(memory, CUDART_MEMORY);
}
CUDART_API int cudaFreeHost(void* memory) { return release(memory, CUDART_PINNED); }
CUDART_API int cudaFreeAsync(void* memory, void* stream) {
  return cudart_is_stream(stream) ? cudaFree(memory) : cudart_failed(CUDA_INVALID_RESOURCE_HANDLE);
}

// Memory of the caller's is used where it lies: nothing has to be pinned.
CUDART_API int cudaHostRegister(void* memory, size_t bytes, unsigned flags) {
  (void)flags;
  return memory == NULL || bytes == 0 ? cudart_failed(CUDA_INVALID_VALUE) : CUDA_SUCCESS;
}
CUDART_API int cudaHostUnregister(void* memory) {
  return memory == NULL ? cudart_failed(CUDA_INVALID_VALUE) : CUDA_SUCCESS;
}
CUDART_API int cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  (void)flags;
  if (device == NULL || host == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  *device = host;
  return CUDA_SUCCESS;
}

// ---- copies ----

static int copy(void* to, const void* from, size_t bytes, int kind) {
  if (kind < 0 || kind > 4) return cudart_failed(CUDA_INVALID_MEMCPY_DIRECTION);
  if (bytes == 0) return CUDA_SUCCESS;
  if (to == NULL || from == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  memmove(to, from, bytes);
  return CUDA_SUCCESS;
}

CUDART_API int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) { return copy(to, from, bytes, kind); }
CUDART_API int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream) {
  return cudart_is_stream(stream) ? copy(to, from, bytes, kind) : cudart_failed(CUDA_INVALID_RESOURCE_HANDLE);
}
CUDART_API int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                            int kind) {
  if (width > to_pitch || width > from_pitch) return cudart_failed(CUDA_INVALID_VALUE);
  for (size_t row = 0; row < height; ++row) {
    const int error = copy((char*)to + row * to_pitch, (const char*)from + row * from_pitch, width, kind);
    if (error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}
CUDART_API int cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                 size_t height, int kind, void* stream) {
  return cudart_is_stream(stream) ? cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind)
                                  : cudart_failed(CUDA_INVALID_RESOURCE_HANDLE);
}
CUDART_API int cudaMemset(void* memory, int value, size_t bytes) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (memory == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  memset(memory, value, bytes);
  return CUDA_SUCCESS;
}
CUDART_API int cudaMemsetAsync(void* memory, int value, size_t bytes, void* stream) {
  return cudart_is_stream(stream) ? cudaMemset(memory, value, bytes) : cudart_failed(CUDA_INVALID_RESOURCE_HANDLE);
}

// ---- what there is to know ----

CUDART_API int cudaMemGetInfo(size_t* available, size_t* total) {
  struct sysinfo info;
  if (available == NULL || total == NULL || sysinfo(&info) != 0) return cudart_failed(CUDA_INVALID_VALUE);
  *available = (size_t)(info.freeram + info.bufferram) * info.mem_unit;
  *total = (size_t)info.totalram * info.mem_unit;
  return CUDA_SUCCESS;
}

struct attributes {
  int type;  // 0: not of this library, 1: host, 2: device, 3: managed
  int device;
  void *device_pointer, *host_pointer;
};
CUDART_API int cudaPointerGetAttributes(struct attributes* attributes, const void* pointer) {
  if (attributes == NULL || pointer == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  enum cudart_kind kind = 0;
  const void* start = cudart_allocation(pointer, &kind);
  const int type = start == NULL ? 0 : kind == CUDART_PINNED ? 1 : kind == CUDART_MEMORY ? 2 : 3;
  *attributes = (struct attributes){type, 0, (void*)(uintptr_t)pointer, (void*)(uintptr_t)pointer};
  return CUDA_SUCCESS;
}

// ---- pools: names alone ----

CUDART_API int cudaMemPoolCreate(void** pool, const void* properties) {
  if (pool == NULL || properties == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  void* made = malloc(16);
  if (made == NULL || !cudart_keep(made, CUDART_POOL, 0)) {
    free(made);
    return cudart_failed(CUDA_MEMORY_ALLOCATION);
  }
  *pool = made;
  return CUDA_SUCCESS;
}
static int is_pool(const void* pool) { return cudart_kind_of(pool) == CUDART_POOL; }
CUDART_API int cudaMemPoolSetAttribute(void* pool, int attribute, const void* value) {
  (void)attribute;
  return is_pool(pool) && value != NULL ? CUDA_SUCCESS : cudart_failed(CUDA_INVALID_VALUE);
}
CUDART_API int cudaMemPoolTrimTo(void* pool, size_t bytes) {
  (void)bytes;
  return is_pool(pool) ? CUDA_SUCCESS : cudart_failed(CUDA_INVALID_VALUE);
}
CUDART_API int cudaMemPoolDestroy(void* pool) {
  if (!cudart_forget(pool, CUDART_POOL)) return cudart_failed(CUDA_INVALID_VALUE);
  free(pool);
  return CUDA_SUCCESS;
}
CUDART_API int cudaMallocFromPoolAsync(void** pointer, size_t bytes, void* pool, void* stream) {
  return is_pool(pool) ? cudaMallocAsync(pointer, bytes, stream) : cudart_failed(CUDA_INVALID_VALUE);
}
