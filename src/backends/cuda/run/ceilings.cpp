// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/run/ceilings.h"

#include <functional>

#include "backends/cuda/cublaslt/cublaslt_matmul.h"
#include "backends/cuda/run/handles.h"

namespace hone::cuda {
namespace {

constexpr size_t kCopied = size_t{256} << 20, kWorkspace = size_t{32} << 20;
constexpr int64_t kSide = 8192;
constexpr int kRepeats = 10;

/// Seconds of one of several equal pieces of work.
double seconds_each(CudaDevice& device, const std::function<void(CudaStream&)>& work) {
  const std::unique_ptr<Stream> stream = device.stream();
  auto& own = static_cast<CudaStream&>(*stream);
  CudaEvent begin(device.context()), end(device.context());
  work(own);
  begin.record(own);
  for (int i = 0; i < kRepeats; ++i) work(own);
  end.record(own);
  own.synchronize();
  return end.milliseconds_since(begin) / 1e3 / kRepeats;
}

/// Values of both signs between 1/8 and 2, so that no sum overflows.
AlignedBuffer varied(size_t elements, DType dtype) {
  AlignedBuffer bytes(elements * size_of(dtype));
  uint32_t state = 1;
  for (size_t i = 0; i < elements; ++i) {
    state = state * 1664525u + 1013904223u;
    const uint32_t random = state >> 8;
    if (dtype == DType::f8e4m3fn) {
      bytes.data()[i] = static_cast<std::byte>(0x20u + (random & 0x1fu) + (random & 0x80u));
    } else if (dtype == DType::f16) {
      const auto value = static_cast<uint16_t>(0x3000u + (random & 0x0fffu) + (random & 0x8000u));
      std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
    } else {
      const uint32_t value = 0x3e000000u + (random & 0x00ffffffu) + (state & 0x80000000u);
      std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
    }
  }
  return bytes;
}

double product_rate(CudaDevice& device, DType dtype) {
  const MatmulShape shape{
      .m = kSide, .n = kSide, .k = kSide, .transposed_b = dtype == DType::f8e4m3fn, .dtype = dtype, .tf32 = true};
  const Matmul matmul(shape);
  const auto algorithms = matmul.heuristics(cublaslt_handle(), kWorkspace, 1);
  if (algorithms.empty()) return 0;
  const AlignedBuffer values = varied(static_cast<size_t>(kSide * kSide), dtype);
  const Buffer a(device, values.size()), b(device, values.size()), c(device, values.size()),
      workspace(device, kWorkspace);
  const std::unique_ptr<Stream> stream = device.stream();
  for (const Buffer* operand : {&a, &b}) device.copy(operand->data(), values.data(), values.size(), *stream);
  stream->synchronize();
  const double seconds = seconds_each(device, [&](CudaStream& at) {
    matmul.run(cublaslt_handle(), algorithms[0].algo, a.data(), b.data(), nullptr, nullptr, c.data(), workspace.data(),
               kWorkspace, at.handle());
  });
  return 2.0 * static_cast<double>(kSide * kSide) * static_cast<double>(kSide) / seconds;
}

}  // namespace

Ceilings measure_ceilings(CudaDevice& device) {
  Ceilings ceilings;
  const Buffer from(device, kCopied), to(device, kCopied);
  const double seconds =
      seconds_each(device, [&](CudaStream& stream) { device.copy(to.data(), from.data(), kCopied, stream); });
  ceilings.bytes_per_second = 2.0 * static_cast<double>(kCopied) / seconds;
  if (!cublaslt_library().found()) return ceilings;
  ceilings.f16_flops = product_rate(device, DType::f16);
  ceilings.f32_flops = product_rate(device, DType::f32);
  ceilings.i8_flops =
      product_rate(device, DType::f8e4m3fn);  // tensor cores multiply whole numbers as fast; the library does not
  return ceilings;
}

}  // namespace hone::cuda
