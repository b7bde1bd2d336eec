// SPDX-License-Identifier: Apache-2.0
//
// In the place of the CUDA driver: one device of compute capability 8.0 and 108 processors (EMULATED_MAJOR and EMULATED_PROCESSORS say others) whose memory is the host's and whose kernels
// are the libraries that compiler.cpp makes. All streams are one: work is done at once, or written down while one is captured. What
// is not here succeeds and does nothing (../stub_driver.c).
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "mapped_operand.h"

#define EXPORT extern "C" __attribute__((visibility("default"))) CUresult

struct CUgraph_st {
  std::vector<std::function<void()>> work;
};
struct CUgraphExec_st : CUgraph_st {};
struct CUmod_st {
  void* library;
};

namespace {

using Launcher = void (*)(const unsigned* shape, void** arguments, std::function<void()>& ready);

std::recursive_mutex g_mutex;  // one kernel at a time
CUgraph g_capture = nullptr;

CUresult enqueue(std::function<void()> work) {
  const std::lock_guard lock(g_mutex);
  if (g_capture != nullptr) g_capture->work.push_back(std::move(work));
  else work();
  return CUDA_SUCCESS;
}

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

void* pointer(CUdeviceptr at) { return reinterpret_cast<void*>(at); }

}  // namespace

EXPORT cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
EXPORT cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  static const int major = number_of("EMULATED_MAJOR", 8), processors = number_of("EMULATED_PROCESSORS", 108);
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? major
           : which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT   ? processors
                                                                 : 0;
  return CUDA_SUCCESS;
}
EXPORT cuDeviceGetName(char* name, int size, CUdevice) {
  std::strncpy(name, "emulated", static_cast<size_t>(size));
  return CUDA_SUCCESS;
}
EXPORT cuDeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = size_t{1} << 34;
  return CUDA_SUCCESS;
}
EXPORT cuMemAllocAsync(CUdeviceptr* memory, size_t bytes, CUstream) {
  *memory = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return *memory == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
EXPORT cuMemFreeAsync(CUdeviceptr memory, CUstream) {
  std::free(pointer(memory));
  return CUDA_SUCCESS;
}
EXPORT cuMemGetAllocationGranularity(size_t* step, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  *step = size_t{1} << 21;
  return CUDA_SUCCESS;
}
EXPORT cuMemAddressReserve(CUdeviceptr* memory, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  return cuMemAllocAsync(memory, bytes, nullptr);
}
EXPORT cuMemAddressFree(CUdeviceptr memory, size_t) { return cuMemFreeAsync(memory, nullptr); }
EXPORT cuMemAllocHost(void** memory, size_t bytes) {
  *memory = std::malloc(bytes);
  return CUDA_SUCCESS;
}
EXPORT cuMemFreeHost(void* memory) {
  std::free(memory);
  return CUDA_SUCCESS;
}
EXPORT cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
  return enqueue([=] { std::memcpy(pointer(to), pointer(from), bytes); });
}
EXPORT cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream) {
  return enqueue([=] { std::memset(pointer(to), value, bytes); });
}
EXPORT cuEventElapsedTime(float* milliseconds, CUevent, CUevent) {
  *milliseconds = 0.001F;
  return CUDA_SUCCESS;
}
EXPORT cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
EXPORT cuStreamBeginCapture(CUstream, CUstreamCaptureMode) {
  const std::lock_guard lock(g_mutex);
  g_capture = new CUgraph_st;
  return CUDA_SUCCESS;
}
EXPORT cuStreamEndCapture(CUstream, CUgraph* graph) {
  const std::lock_guard lock(g_mutex);
  *graph = std::exchange(g_capture, nullptr);
  return CUDA_SUCCESS;
}
EXPORT cuGraphInstantiate(CUgraphExec* ready, CUgraph graph, unsigned long long) {
  *ready = new CUgraphExec_st{*graph};
  return CUDA_SUCCESS;
}
EXPORT cuGraphLaunch(CUgraphExec graph, CUstream) {
  for (const std::function<void()>& work : graph->work) enqueue(work);
  return CUDA_SUCCESS;
}
EXPORT cuGraphDestroy(CUgraph graph) {
  delete graph;
  return CUDA_SUCCESS;
}
EXPORT cuGraphExecDestroy(CUgraphExec graph) {
  delete graph;
  return CUDA_SUCCESS;
}
EXPORT cuModuleLoadData(CUmodule* module, const void* code) {
  size_t size = 0;
  std::memcpy(&size, code, sizeof size);
  std::string path =
      std::filesystem::temp_directory_path() / "hone-emulated-XXXXXX";  // its own: names are not loaded twice
  const int file = mkstemp(path.data());
  const bool written = write(file, static_cast<const char*>(code) + sizeof size, size) == static_cast<ssize_t>(size);
  close(file);
  void* library = written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path.c_str());
  *module = new CUmod_st{library};
  return library == nullptr ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}
EXPORT cuModuleUnload(CUmodule module) {
  dlclose(module->library);
  delete module;
  return CUDA_SUCCESS;
}
EXPORT cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  *function = static_cast<CUfunction>(dlsym(module->library, (std::string("emulate_") + name).c_str()));
  return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
EXPORT cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* from,
                              const cuuint64_t* sizes, const cuuint64_t* steps, const cuuint32_t* box,
                              const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                              CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  const bool exchanges = swizzle == (box[0] == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : box[0] == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                    : CU_TENSOR_MAP_SWIZZLE_32B);
  if (type != CU_TENSOR_MAP_DATA_TYPE_UINT8 || rank < 2 || rank > 4 || box[0] % 32 != 0 || box[0] > 128 ||
      sizes[0] % 16 != 0 || !exchanges || reinterpret_cast<size_t>(from) % 16 != 0)
    return CUDA_ERROR_INVALID_VALUE;
  emulated::MappedOperand operand{static_cast<const char*>(from), {1, 1, 1, 1}, {1, 1, 1, 1}, rank};
  cuuint64_t step = 1;
  for (cuuint32_t i = 0; i < rank; ++i) {
    step *= sizes[i];
    if (box[i] == 0 || box[i] > 256 || sizes[i] == 0 || (i + 1 < rank && steps[i] != step))
      return CUDA_ERROR_INVALID_VALUE;
    operand.sizes[i] = static_cast<long long>(sizes[i]);
    operand.box[i] = box[i];
  }
  static_assert(sizeof operand <= sizeof *map);
  std::memcpy(map, &operand, sizeof operand);
  return CUDA_SUCCESS;
}
EXPORT cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void**) {
  const unsigned shape[] = {config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                            config->sharedMemBytes};
  std::function<void()> ready;
  reinterpret_cast<Launcher>(function)(shape, arguments, ready);
  return enqueue(std::move(ready));
}
