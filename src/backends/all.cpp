// SPDX-License-Identifier: Apache-2.0
//
// Puts the backends together from the folders, which do not know each other.
#include "backends/all.h"

#include <iterator>

#include "backends/cpu/device.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/sources.h"
#include "backends/reference/reference.h"
#include "base/error.h"

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

std::unique_ptr<Device> open_cpu(int ordinal) {
  HONE_CHECK(ordinal == 0, "there is no CPU device {}; the only one is 0", ordinal);
  return std::make_unique<cpu::CpuDevice>();
}

std::shared_ptr<const Kernel> load_cpu(Device& device, std::string_view source, const Blob& code, const KernelShapes& shapes) {
  if (source == "cpu") return cpu::load(device.info(), code, shapes);
#if HONE_WITH_ONEDNN
  if (source == "onednn") return cpu::load_onednn(device.info(), code, shapes);
#endif
  if (source == "reference") return std::make_shared<ReferenceKernel>(code, shapes);
  throw Error(fmt::format("the plan has kernels of the source {}, which this version does not have", source), "rebuild it from the ONNX model");
}

#if HONE_WITH_ONEDNN
std::string cpu_versions() { return "cpu 1, " + cpu::onednn_version(); }
const TacticSource* const kCpuSources[] = {&cpu::source(), &cpu::onednn_source(), &reference::source()};
#else
std::string cpu_versions() { return "cpu 1"; }
const TacticSource* const kCpuSources[] = {&cpu::source(), &reference::source()};
#endif
const Backend kCpu{"cpu", open_cpu, load_cpu, kCpuSources, cpu_versions};
const Backend* const kBackends[] = {&kCpu};

}  // namespace

std::span<const Backend* const> all_backends() { return kBackends; }

const Backend* find_backend(std::string_view name) {
  for (const Backend* backend : kBackends)
    if (backend->name == name) return backend;
  return nullptr;
}

}  // namespace hone
