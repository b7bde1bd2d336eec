// SPDX-License-Identifier: Apache-2.0
//
// The one device, which is the processor, and the names of errors.
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "cudart.h"

static _Thread_local int last_error;

int cudart_failed(int error) {
  last_error = error;
  return error;
}

CUDART_API int cudaGetLastError(void) {
  const int error = last_error;
  last_error = CUDA_SUCCESS;
  return error;
}
CUDART_API int cudaPeekAtLastError(void) { return last_error; }

struct error {
  int number;
  const char *name, *text;
};
static const struct error errors[] = {
    {CUDA_SUCCESS, "cudaSuccess", "no error"},
    {CUDA_INVALID_VALUE, "cudaErrorInvalidValue", "an argument is out of range, or a pointer was not made here"},
    {CUDA_MEMORY_ALLOCATION, "cudaErrorMemoryAllocation", "there is not enough memory"},
    {CUDA_INVALID_MEMCPY_DIRECTION, "cudaErrorInvalidMemcpyDirection", "there is no such direction of a copy"},
    {CUDA_INVALID_DEVICE, "cudaErrorInvalidDevice", "there is no such device: the processor is device 0"},
    {CUDA_INVALID_RESOURCE_HANDLE, "cudaErrorInvalidResourceHandle",
     "the stream or event was not made here, or is gone"},
    {CUDA_NOT_READY, "cudaErrorNotReady", "work is still under way"},
    {CUDA_NOT_SUPPORTED, "cudaErrorNotSupported", "a processor has no such thing"},
};
static const struct error* error_of(int number) {
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; ++i)
    if (errors[i].number == number) return &errors[i];
  return NULL;
}
CUDART_API const char* cudaGetErrorName(int number) {
  const struct error* error = error_of(number);
  return error == NULL ? "unrecognized error code" : error->name;
}
CUDART_API const char* cudaGetErrorString(int number) {
  const struct error* error = error_of(number);
  return error == NULL ? "unrecognized error code" : error->text;
}

CUDART_API int cudaGetDeviceCount(int* count) {
  if (count == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  *count = 1;
  return CUDA_SUCCESS;
}
CUDART_API int cudaGetDevice(int* device) {
  if (device == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  *device = 0;
  return CUDA_SUCCESS;
}
CUDART_API int cudaSetDevice(int device) { return device == 0 ? CUDA_SUCCESS : cudart_failed(CUDA_INVALID_DEVICE); }
CUDART_API int cudaDeviceSynchronize(void) { return CUDA_SUCCESS; }
CUDART_API int cudaDeviceReset(void) { return CUDA_SUCCESS; }
CUDART_API int cudaSetDeviceFlags(unsigned flags) {
  (void)flags;
  return CUDA_SUCCESS;
}
CUDART_API int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != NULL) *least = 0;
  if (greatest != NULL) *greatest = 0;
  return CUDA_SUCCESS;
}

// 12.8: what programs of TensorRT 10 are made for.
CUDART_API int cudaRuntimeGetVersion(int* version) {
  if (version == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  *version = 12080;
  return CUDA_SUCCESS;
}
CUDART_API int cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

// The first members of cudaDeviceProp, which lie alike in CUDA 11 to 13; later ones are left as they are.
struct properties {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_mask;
  size_t memory, shared_memory_of_block;
  int registers_of_block, warp;
  size_t pitch;
  int threads_of_block, block[3], grid[3];
};

static void processor_name(char* name, size_t size) {
  snprintf(name, size, "CPU");
  FILE* file = fopen("/proc/cpuinfo", "r");
  if (file == NULL) return;
  char line[512];
  while (fgets(line, sizeof line, file) != NULL) {
    const char* text = strstr(line, ": ");
    if (strncmp(line, "model name", 10) != 0 || text == NULL) continue;
    snprintf(name, size, "%s", text + 2);
    name[strcspn(name, "\n")] = 0;
    break;
  }
  fclose(file);
}

CUDART_API int cudaGetDeviceProperties(struct properties* properties, int device) {
  if (properties == NULL) return cudart_failed(CUDA_INVALID_VALUE);
  if (device != 0) return cudart_failed(CUDA_INVALID_DEVICE);
  struct sysinfo info;
  *properties = (struct properties){.warp = 1, .threads_of_block = 1, .block = {1, 1, 1}, .grid = {1, 1, 1}};
  if (sysinfo(&info) == 0) properties->memory = (size_t)info.totalram * info.mem_unit;
  processor_name(properties->name, sizeof properties->name);
  return CUDA_SUCCESS;
}
CUDART_API int cudaGetDeviceProperties_v2(struct properties* properties, int device) {
  return cudaGetDeviceProperties(properties, device);
}
// Of a processor's attributes there are none; 0 is what CUDA says of what a device lacks.
CUDART_API int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  if (value == NULL || attribute <= 0) return cudart_failed(CUDA_INVALID_VALUE);
  if (device != 0) return cudart_failed(CUDA_INVALID_DEVICE);
  *value = 0;
  return CUDA_SUCCESS;
}
