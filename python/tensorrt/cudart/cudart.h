// SPDX-License-Identifier: Apache-2.0
//
// What the parts of the stand-in for CUDA's run-time library share. On a machine without a GPU the "device" is the processor: device
// memory is host memory, a copy of any kind moves bytes at once, and work is done when the call that asked for it returns. So streams
// and events are names that are checked, and there is never anything to wait for.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CUDART_API __attribute__((visibility("default")))

enum {
  CUDA_SUCCESS = 0,
  CUDA_INVALID_VALUE = 1,
  CUDA_MEMORY_ALLOCATION = 2,
  CUDA_INVALID_MEMCPY_DIRECTION = 21,
  CUDA_INVALID_DEVICE = 101,
  CUDA_INVALID_RESOURCE_HANDLE = 400,
  CUDA_NOT_READY = 600,
  CUDA_NOT_SUPPORTED = 801,
};

// Keeps the calling thread's last failure for cudaGetLastError(); returns it.
int cudart_failed(int error);

// What a handle or an address was made as; 0 is none of them.
enum cudart_kind { CUDART_MEMORY = 1, CUDART_PINNED, CUDART_MANAGED, CUDART_STREAM, CUDART_EVENT, CUDART_POOL };

// All that was made and not freed, so that freeing twice or something foreign is an error and no crash.
int cudart_keep(void* object, enum cudart_kind kind, size_t bytes);
enum cudart_kind cudart_kind_of(const void* object);
// Takes it out of the list; 0 where it is not there or of another kind.
int cudart_forget(const void* object, enum cudart_kind kind);
// The allocation that an address lies in; NULL where there is none.
const void* cudart_allocation(const void* address, enum cudart_kind* kind);

// A stream of this library's, or one of the three that CUDA has without making them (0, 1, 2).
int cudart_is_stream(const void* stream);
