// SPDX-License-Identifier: Apache-2.0
//
// Puts the backends together from the folders, which do not know each other.
#include "backends/all.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/run/device.h"
#include "backends/cpu/run/sources.h"
#if HONE_WITH_CUDA
#include "backends/cuda/run/device.h"
#include "backends/cuda/run/sources.h"
#endif
#include "backends/reference/reference.h"
#include "base/error.h"
#include "base/text.h"

namespace hone {
namespace {

/// Runs between two chains, on the calling thread, so that an error in the data reaches the caller.
class ReferenceKernel final : public cpu::CpuKernel {
 public:
  ReferenceKernel(const Blob& code, const KernelShapes& shapes) : program_(code, shapes) {}
  bool self_parallel() const override { return true; }
  void run(int, int, int, const Bindings& bindings) const override { program_.run(bindings); }

 private:
  reference::Program program_;
};

void check_unmanaged(std::string_view source, const KernelShapes& shapes) {
  const auto managed = [](const ConcreteType& type) { return type.managed; };
  HONE_CHECK(std::none_of(shapes.inputs.begin(), shapes.inputs.end(), managed) &&
                 std::none_of(shapes.outputs.begin(), shapes.outputs.end(), managed),
             "the plan gives a kernel of the source {} an operand that only the reference can hold", source);
}

std::unique_ptr<Device> open_cpu(int ordinal) {
  HONE_CHECK(ordinal == 0, "there is no CPU device {}; the only one is 0", ordinal);
  return std::make_unique<cpu::CpuDevice>();
}

std::shared_ptr<const Kernel> load_cpu(Device& device, std::string_view source, const Blob& code,
                                       const KernelShapes& shapes) {
  if (source == "reference") return std::make_shared<ReferenceKernel>(code, shapes);
  check_unmanaged(source, shapes);
  if (source == "cpu") return cpu::load(device.info(), code, shapes);
#if HONE_WITH_ONEDNN
  if (source == "onednn") return cpu::load_onednn(device.info(), code, shapes);
#endif
  throw Error(fmt::format("the plan has kernels of the source {}, which this version does not have", source),
              "rebuild it from the ONNX model");
}

#if HONE_WITH_ONEDNN
std::string cpu_versions() { return cpu::versions() + ", " + cpu::onednn_version(); }
const TacticSource* const kCpuSources[] = {&cpu::source(), &cpu::onednn_source(), &reference::source()};
#else
std::string cpu_versions() { return cpu::versions(); }
const TacticSource* const kCpuSources[] = {&cpu::source(), &reference::source()};
#endif
const Backend kCpu{"cpu", [] { return 1; }, open_cpu, load_cpu, kCpuSources, cpu_versions};

#if HONE_WITH_CUDA
/// Runs on the host, on copies that the recording makes.
class HostKernel final : public cuda::CudaKernel {
 public:
  HostKernel(const Blob& code, const KernelShapes& shapes) : program_(code, shapes), shapes_(shapes) {}
  void enqueue(CUstream, const Bindings&, bool) const override {
    throw InternalError("the reference runs on the host");
  }
  bool on_host() const override { return true; }
  void run_on_host(const Bindings& bindings) const override { program_.run(bindings); }
  KernelShapes host_shapes() const override { return shapes_; }

 private:
  reference::Program program_;
  KernelShapes shapes_;
};

std::unique_ptr<Device> open_cuda(int ordinal) { return std::make_unique<cuda::CudaDevice>(ordinal); }

std::shared_ptr<const Kernel> load_cuda(Device& device, std::string_view source, const Blob& code,
                                        const KernelShapes& shapes) {
  if (source == "reference") return std::make_shared<HostKernel>(code, shapes);
  check_unmanaged(source, shapes);
  if (std::shared_ptr<const Kernel> kernel = cuda::load(static_cast<cuda::CudaDevice&>(device), source, code, shapes))
    return kernel;
  throw Error(fmt::format("the plan has kernels of the source {}, which this version does not have", source),
              "rebuild it from the ONNX model");
}

const TacticSource* const kCudaSources[] = {&cuda::cudnn_source(), &cuda::cublaslt_source(), &cuda::source(),
                                            &reference::source()};
const Backend kCuda{"cuda", cuda::device_count, open_cuda, load_cuda, kCudaSources, cuda::versions};
const Backend* const kBackends[] = {&kCpu, &kCuda};
#else
const Backend* const kBackends[] = {&kCpu};
#endif

}  // namespace

std::span<const Backend* const> all_backends() { return kBackends; }

const Backend* find_backend(std::string_view name) {
  for (const Backend* backend : kBackends)
    if (backend->name == name) return backend;
  return nullptr;
}

/// A number alone means a GPU, where there is one.
static std::string_view default_backend() {
  const Backend* cuda = find_backend("cuda");
  return cuda != nullptr && cuda->devices() > 0 ? "cuda" : "cpu";
}

OpenDevice open_device(const std::string& name) {
  const size_t colon = name.find(':');
  const bool named = !name.empty() && std::isalpha(static_cast<unsigned char>(name[0]));
  const std::string_view backend_name = named ? std::string_view(name).substr(0, colon) : default_backend();
  const std::string_view number =
      named ? (colon == std::string::npos ? "0" : std::string_view(name).substr(colon + 1)) : std::string_view(name);
  const std::optional<int64_t> ordinal = parse_integer(trim(number));
  const Backend* backend = find_backend(backend_name);
  if (backend == nullptr || !ordinal)
    throw Error(fmt::format("Cannot find device ID {}!", name),
                "this build has the CPU alone: leave --device out, or write --device=cpu");
  try {
    return {backend, std::shared_ptr<Device>(backend->open(static_cast<int>(*ordinal)))};
  } catch (const Error& error) {
    throw Error(fmt::format("Cannot find device ID {}! {}", name, error.message()), error.hint());
  }
}

}  // namespace hone
