// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/run/device.h"

#include "backends/cuda/run/ceilings.h"
#include "backends/cuda/run/mapped_memory.h"
#include "backends/cuda/run/out_of_memory.h"
#include "backends/cuda/run/recording.h"
#include "backends/cuda/support/source_text.h"
#include "base/env.h"
#include "base/error.h"
#include "base/hash.h"

namespace hone::cuda {
namespace {

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  check(driver().cuDeviceGetAttribute(&value, which, device), "asking what the GPU is");
  return value;
}

/// 13 of 13010.
int driver_major() {
  int version = 0;
  check(driver().cuDriverGetVersion(&version), "asking for the driver's version");
  return version / 1000;
}

DeviceInfo describe(CUdevice device) {
  DeviceInfo info;
  char name[256] = {};
  check(driver().cuDeviceGetName(name, sizeof name, device), "asking for the GPU's name");
  size_t bytes = 0;
  check(driver().cuDeviceTotalMem(&bytes, device), "asking for the GPU's memory");
  info.name = name;
  const int major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  info.architecture = fmt::format("sm_{}{}", major, attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  info.workers = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  info.memory_bytes = static_cast<int64_t>(bytes);
  info.cache_bytes = attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  info.core_bytes = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  info.clock_ghz = attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1e6;
  info.memory_clock_ghz = attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / 1e6;
  info.memory_bus_bits = attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  info.error_correction = attribute(device, CU_DEVICE_ATTRIBUTE_ECC_ENABLED) != 0;
  info.half_arithmetic = info.half_networks = info.tf32_matmuls = info.bf16_matmuls = true;
  info.half_quantized_weights = true;
  info.code_products = major >= 8;
  info.float8_products = has_float8(info.architecture);
  info.rates = {.f32_flops = 3e12 * info.workers,
                .memory_bytes = 25e9 * info.workers,
                .cache_bytes = 50e9 * info.workers,
                .launch_ms = 0.002};
  info.silicon = fmt::format("{} GiB/driver {}", bytes >> 30, driver_major());
  return info;
}

/// Memory that was freed stays with the process: tuning allocates and frees all the time.
void keep_freed_memory(CUdevice device) {
  CUmemoryPool pool = nullptr;
  check(driver().cuDeviceGetDefaultMemPool(&pool, device), "asking for the GPU's memory pool");
  cuuint64_t threshold = ~cuuint64_t{0};
  check(driver().cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
        "setting up the GPU's memory pool");
}

}  // namespace

int device_count() {
  int count = 0;
  return driver_library().found() && driver().cuDeviceGetCount(&count) == CUDA_SUCCESS ? count : 0;
}

Context::Context(int ordinal) {
  int count = 0;
  check(driver().cuDeviceGetCount(&count), "counting GPUs");
  if (count == 0) throw Error("the CUDA driver sees no GPU", "use --device=cpu");
  if (ordinal < 0 || ordinal >= count)
    throw Error(fmt::format("there is no GPU {}; there are {}", ordinal, count), "GPUs are numbered from 0");
  check(driver().cuDeviceGet(&device_, ordinal), "opening the GPU");
  check(driver().cuDevicePrimaryCtxRetain(&context_, device_), "opening the GPU");
  select();
}

CudaStream::CudaStream(std::shared_ptr<const Context> context) : context_(std::move(context)) {
  context_->select();
  check(driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "creating a stream");
}

CudaStream::~CudaStream() {
  if (!owned_) return;
  driver().cuCtxSetCurrent(context_->handle());
  driver().cuStreamDestroy(stream_);
}

void CudaStream::synchronize() {
  context_->select();
  check(driver().cuStreamSynchronize(stream_), "running kernels");
}

void CudaStream::wait(const Event& event) {
  context_->select();
  check(driver().cuStreamWaitEvent(stream_, static_cast<const CudaEvent&>(event).handle(), 0), "waiting for an event");
}

bool CudaStream::capturing() const {
  context_->select();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  check(driver().cuStreamIsCapturing(stream_, &status), "asking whether a stream is captured");
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CudaEvent::CudaEvent(std::shared_ptr<const Context> context) : context_(std::move(context)) {
  context_->select();
  check(driver().cuEventCreate(&event_, CU_EVENT_DEFAULT), "creating an event");
}

CudaEvent::~CudaEvent() {
  driver().cuCtxSetCurrent(context_->handle());
  driver().cuEventDestroy(event_);
}

void CudaEvent::record(Stream& stream) {
  context_->select();
  check(driver().cuEventRecord(event_, static_cast<CudaStream&>(stream).handle()), "recording an event");
}

void CudaEvent::wait() const {
  context_->select();
  check(driver().cuEventSynchronize(event_), "waiting for an event");
}

bool CudaEvent::passed() const {
  context_->select();
  const CUresult result = driver().cuEventQuery(event_);
  if (result != CUDA_ERROR_NOT_READY) check(result, "asking for an event");
  return result == CUDA_SUCCESS;
}

double CudaEvent::milliseconds_since(const Event& earlier) const {
  float milliseconds = 0;
  check(driver().cuEventElapsedTime(&milliseconds, static_cast<const CudaEvent&>(earlier).event_, event_),
        "reading an event");
  return milliseconds;
}

CudaDevice::CudaDevice(int ordinal)
    : context_(std::make_shared<const Context>(ordinal)), info_(describe(context_->device())) {
  memory_stream_ = std::make_unique<CudaStream>(context_);
  keep_freed_memory(context_->device());
}

Ceilings CudaDevice::ceilings() {
  std::call_once(ceilings_measured_, [this] {
    context_->select();
    ceilings_ = measure_ceilings(*this);
  });
  return ceilings_;
}

std::shared_ptr<const Module> CudaDevice::module(const Blob& cubin) {
  const std::lock_guard lock(modules_mutex_);
  std::weak_ptr<const Module>& known = modules_[hash_hex(cubin.bytes())];
  if (std::shared_ptr<const Module> loaded = known.lock()) return loaded;
  auto loaded = std::make_shared<const Module>(cubin, context_->handle());
  known = loaded;
  return loaded;
}

void* CudaDevice::allocate(size_t bytes) {
  context_->select();
  CUdeviceptr memory = 0;
  const CUresult status = driver().cuMemAllocAsync(&memory, bytes == 0 ? 1 : bytes, memory_stream_->handle());
  if (status == CUDA_ERROR_OUT_OF_MEMORY) throw out_of_memory(bytes);
  check(status, "allocating memory on the GPU");
  memory_stream_->synchronize();
  return reinterpret_cast<void*>(memory);
}

void CudaDevice::release(void* memory) noexcept {
  driver().cuCtxSetCurrent(context_->handle());
  driver().cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(memory), memory_stream_->handle());
}

std::shared_ptr<SharedMemory> CudaDevice::shared_memory(size_t bytes) {
  if (env_text("HONE_RANK_WINDOWS") == "0") return nullptr;
  std::shared_ptr<SharedMemory> memory = MappedMemory::allocate(context_, bytes);
  if (memory) shares_ = true;
  return memory;
}

void* CudaDevice::allocate_host(size_t bytes) {
  context_->select();
  void* memory = nullptr;
  check(driver().cuMemAllocHost(&memory, bytes == 0 ? 1 : bytes), "allocating pinned host memory");
  return memory;
}

void CudaDevice::release_host(void* memory) noexcept {
  driver().cuCtxSetCurrent(context_->handle());
  driver().cuMemFreeHost(memory);
}

std::unique_ptr<Stream> CudaDevice::stream() { return std::make_unique<CudaStream>(context_); }
std::unique_ptr<Stream> CudaDevice::stream_of(void* native) {
  return std::make_unique<CudaStream>(context_, static_cast<CUstream>(native));
}
std::unique_ptr<Event> CudaDevice::event() { return std::make_unique<CudaEvent>(context_); }

void CudaDevice::copy(void* destination, const void* source, size_t bytes, Stream& stream) {
  if (bytes == 0) return;
  context_->select();
  check(driver().cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(destination), reinterpret_cast<CUdeviceptr>(source), bytes,
                               static_cast<CudaStream&>(stream).handle()),
        "copying");
}

void CudaDevice::fill(void* memory, std::byte value, size_t bytes, Stream& stream) {
  if (bytes == 0) return;
  context_->select();
  check(driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(memory), std::to_integer<unsigned char>(value), bytes,
                                 static_cast<CudaStream&>(stream).handle()),
        "filling memory");
}

bool CudaDevice::can_overlap() const {
  return attribute(context_->device(), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 9;
}

void CudaDevice::profile(bool on) {
  context_->select();
  const auto function = on ? driver().cuProfilerStart : driver().cuProfilerStop;
  if (function != nullptr) check(function(), "telling the profiler");
}

std::unique_ptr<Recording> CudaDevice::record(std::vector<Launch> launches) {
  return std::make_unique<CudaRecording>(std::move(launches), *this);
}

}  // namespace hone::cuda
