/* SPDX-License-Identifier: Apache-2.0
 *
 * What the driver of stub_driver.c says of its one device.
 */
#include <cuda.h>

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define EXPORT __attribute__((visibility("default")))

EXPORT CUresult count_devices(int* count) __asm__("cuDeviceGetCount");
CUresult count_devices(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}

EXPORT CUresult get_attribute(int* value, CUdevice_attribute which, CUdevice device) __asm__("cuDeviceGetAttribute");
CUresult get_attribute(int* value, CUdevice_attribute which, CUdevice device) {
  (void)device;
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9
           : which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT   ? 132
                                                                 : 0;
  return CUDA_SUCCESS;
}

EXPORT CUresult total_memory(size_t* bytes, CUdevice device) __asm__(TEXT(cuDeviceTotalMem));
CUresult total_memory(size_t* bytes, CUdevice device) {
  (void)device;
  *bytes = (size_t)1 << 36;
  return CUDA_SUCCESS;
}

EXPORT CUresult get_name(char* name, int size, CUdevice device) __asm__("cuDeviceGetName");
CUresult get_name(char* name, int size, CUdevice device) {
  (void)device;
  if (size > 4) __builtin_memcpy(name, "stub", 5);
  return CUDA_SUCCESS;
}

/* How often profilers were told to begin and to end. */
EXPORT int profiler_begun = 0, profiler_ended = 0;

EXPORT CUresult profiler_start(void) __asm__("cuProfilerStart");
CUresult profiler_start(void) {
  ++profiler_begun;
  return CUDA_SUCCESS;
}

EXPORT CUresult profiler_stop(void) __asm__("cuProfilerStop");
CUresult profiler_stop(void) {
  ++profiler_ended;
  return CUDA_SUCCESS;
}
