/* SPDX-License-Identifier: Apache-2.0
 *
 * A CUDA driver that does nothing, successfully, for one device of compute capability 9.0: with it, tests load kernels on machines
 * without a GPU, so that everything load() checks and computes is run. Nothing can be run on it, and no library works with it. What it has to answer stands in stub_device.c.
 */
#include <cuda.h>
#include <cudaProfiler.h>

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

/* Each function under the name of its newest version, which the header's macros put in. */
#define HONE_SYMBOL(name)                                                                      \
  __attribute__((visibility("default"), weak)) CUresult stub_##name(void) __asm__(TEXT(name)); \
  CUresult stub_##name(void) { return CUDA_SUCCESS; }
#include "backends/cuda/run/symbols/driver.def"
