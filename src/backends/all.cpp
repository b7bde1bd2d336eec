// SPDX-License-Identifier: Apache-2.0
//
// Puts the backends together from the folders, which do not know each other.
#include "backends/all.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>

#include "backends/cpu/collective/collective.h"
#include "backends/cpu/custom/custom.h"
#include "backends/cpu/host/host.h"
#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/run/device.h"
#include "backends/cpu/run/sources.h"
#include "backends/cpu/run/team.h"
#if HONE_WITH_CUDA
#include "backends/cuda/collective/collective.h"
#include "backends/cuda/custom/custom.h"
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
  ReferenceKernel(const Blob& code, const KernelShapes& shapes, int workers)
      : program_(code, shapes), workers_(workers) {}
  bool self_parallel() const override { return true; }
  void run(int, int, int, const Bindings& bindings) const override {
    const cpu::TeamSize team(workers_);
    program_.run(bindings);
  }

 private:
  reference::Program program_;
  int workers_;
};

constexpr int kMostWorkers = 1024;

void check_unmanaged(std::string_view source, const KernelShapes& shapes) {
  const auto managed = [](const ConcreteType& type) { return type.managed; };
  HONE_CHECK(std::none_of(shapes.inputs.begin(), shapes.inputs.end(), managed) &&
                 std::none_of(shapes.outputs.begin(), shapes.outputs.end(), managed),
             "the plan gives a kernel of the source {} an operand that no kernel of it can hold", source);
}

std::unique_ptr<Device> open_cpu(const DeviceChoice& choice) {
  HONE_CHECK(choice.ordinal == 0, "there is no CPU device {}; the only one is 0", choice.ordinal);
  HONE_CHECK(choice.workers >= 0 && choice.workers <= kMostWorkers, "{} workers are asked for; 1 to {} can be had",
             choice.workers, kMostWorkers);
  cpu::DeviceOptions options{.workers = choice.workers, .cores = choice.cores};
  if (!choice.instruction_set.empty()) {
    const std::optional<cpu::Isa> most = cpu::isa_from_string(choice.instruction_set);
    if (!most)
      throw Error(fmt::format("there is no instruction set {}", choice.instruction_set), "scalar, avx2 or avx512");
    options.isa = std::min(options.isa, *most);
  }
  return std::make_unique<cpu::CpuDevice>(options);
}

std::shared_ptr<Group> group_of(Device& device) {
  const auto* member = dynamic_cast<const HasGroup*>(&device);
  return member == nullptr ? nullptr : member->group();
}

std::shared_ptr<const Kernel> load_cpu(Device& device, std::string_view source, const Blob& code,
                                       const KernelShapes& shapes) {
  if (source == "reference") return std::make_shared<ReferenceKernel>(code, shapes, device.info().workers);
  if (source == "host") return cpu::load_host(code, shapes);
  check_unmanaged(source, shapes);
  if (source == "cpu") return cpu::load(device.info(), code, shapes);
  if (source == "custom") return cpu::load_custom(device.info(), code, shapes);
  if (source == "gloo") return cpu::load_collective(group_of(device), code, shapes);
#if HONE_WITH_ONEDNN
  if (source == "onednn") return cpu::load_onednn(device.info(), code, shapes);
#endif
  throw Error(fmt::format("the plan has kernels of the source {}, which this version does not have", source),
              "rebuild it from the ONNX model");
}

#if HONE_WITH_ONEDNN
std::string cpu_versions() { return cpu::versions() + ", " + cpu::onednn_version(); }
const TacticSource* const kCpuSources[] = {&cpu::source(),        &cpu::onednn_source(),
                                           &cpu::custom_source(), &cpu::collective_source(),
                                           &cpu::host_source(),   &reference::source()};
#else
std::string cpu_versions() { return cpu::versions(); }
const TacticSource* const kCpuSources[] = {&cpu::source(), &cpu::custom_source(), &cpu::collective_source(),
                                           &cpu::host_source(), &reference::source()};
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

std::unique_ptr<Device> open_cuda(const DeviceChoice& choice) {
  HONE_CHECK(choice.workers == 0 && choice.cores.empty() && choice.instruction_set.empty(),
             "workers, cores and instruction sets are those of a CPU device");
  return std::make_unique<cuda::CudaDevice>(choice.ordinal);
}

std::shared_ptr<const Kernel> load_cuda(Device& device, std::string_view source, const Blob& code,
                                        const KernelShapes& shapes) {
  if (source == "reference") return std::make_shared<HostKernel>(code, shapes);
  check_unmanaged(source, shapes);
  if (source == "custom") return cuda::load_custom(static_cast<cuda::CudaDevice&>(device), code, shapes);
  if (source == "nccl") return cuda::load_collective(static_cast<cuda::CudaDevice&>(device), code, shapes);
  if (std::shared_ptr<const Kernel> kernel = cuda::load(static_cast<cuda::CudaDevice&>(device), source, code, shapes))
    return kernel;
  throw Error(fmt::format("the plan has kernels of the source {}, which this version does not have", source),
              "rebuild it from the ONNX model");
}

const TacticSource* const kCudaSources[] = {&cuda::cudnn_source(),  &cuda::cublaslt_source(),   &cuda::source(),
                                            &cuda::custom_source(), &cuda::collective_source(), &reference::source()};
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

namespace {

/// What stands behind the first of these characters; the text then ends before it.
std::optional<std::string_view> cut_off(std::string_view& text, char mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + 1);
  text = text.substr(0, at);
  return rest;
}

std::optional<int> small_number(std::string_view text) {
  const std::optional<int64_t> number = parse_integer(trim(text));
  if (!number || *number < 0 || *number > 1'000'000) return std::nullopt;
  return static_cast<int>(*number);
}

/// "8-11,14" in ascending order; nothing where it is no list of numbers.
std::optional<std::vector<int>> core_list(std::string_view text) {
  std::set<int> cores;
  for (const std::string_view range : split(text, ',')) {
    std::string_view first = range;
    const std::optional<std::string_view> last = cut_off(first, '-');
    const std::optional<int> begin = small_number(first), end = last ? small_number(*last) : begin;
    if (!begin || !end || *end < *begin || *end - *begin >= kMostWorkers) return std::nullopt;
    for (int core = *begin; core <= *end; ++core) cores.insert(core);
  }
  return std::vector<int>(cores.begin(), cores.end());
}

/// Reads name[:ordinal][@cores][/workers] into `choice`; the name of the backend, or nothing where it is none of that.
std::optional<std::string_view> read_name(std::string_view name, DeviceChoice& choice) {
  const bool named = !name.empty() && std::isalpha(static_cast<unsigned char>(name[0]));
  const std::optional<std::string_view> workers = cut_off(name, '/'), cores = cut_off(name, '@');
  if (workers) {
    const std::optional<int> number = small_number(*workers);
    if (!number || *number == 0) return std::nullopt;
    choice.workers = *number;
  }
  if (cores) {
    const std::optional<std::vector<int>> list = core_list(*cores);
    if (!list) return std::nullopt;
    choice.cores = *list;
  }
  const std::string_view number = named ? cut_off(name, ':').value_or("0") : name;
  const std::optional<int> ordinal = small_number(number);
  if (!ordinal) return std::nullopt;
  choice.ordinal = *ordinal;
  return named ? name : default_backend();
}

}  // namespace

OpenDevice open_device(const std::string& name, DeviceChoice choice) {
  const std::optional<std::string_view> backend_name = read_name(name, choice);
  const Backend* backend = backend_name ? find_backend(*backend_name) : nullptr;
  if (backend == nullptr)
    throw Error(fmt::format("Cannot find device ID {}!", name),
                all_backends().size() > 1
                    ? "devices are called cpu, cpu/4 (workers), cpu@8-11 (cores), cuda or cuda:1"
                    : "this build has the CPU alone: leave --device out, or write --device=cpu, cpu/4 (workers) or "
                      "cpu@8-11 (cores)");
  try {
    return {backend, std::shared_ptr<Device>(backend->open(choice))};
  } catch (const Error& error) {
    throw Error(fmt::format("Cannot find device ID {}! {}", name, error.message()), error.hint());
  }
}

}  // namespace hone
