// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/run/sources.h"

#include <algorithm>

#include "backends/cuda/cublaslt/cublaslt.h"
#include "backends/cuda/cudnn/cudnn.h"
#include "backends/cuda/cudnn/cudnn_attention.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/signature.h"
#include "backends/cuda/support/source_text.h"
#include "backends/cuda/tactic_table.h"
#include "base/hash.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

const CudaTactic* find_family(std::string_view name) {
  for (const CudaTactic* family : cuda_tactics())
    if (family->name == name) return family;
  return nullptr;
}

/// What only Hone's passes make; other operators on such numbers are the host's.
bool has_codes_of_float8(const Graph& region) {
  return std::ranges::any_of(region.nodes(), [](const Node* node) {
    return node->is(ops::encode_float8) || (node->is(ops::decode) && node->input(0)->type.dtype == DType::f8e4m3fn);
  });
}

class CudaSource final : public TacticSource {
 public:
  std::string_view name() const override { return "cuda"; }
  bool compiles_slowly() const override { return true; }

  void propose(const Problem& problem, Candidates& out) const override {
    if (has_codes_of_float8(problem.region))
      for (const std::string& architecture : architectures_of(problem))
        if (!has_float8(architecture)) return out.refuse("cuda", fmt::format("{} has no E4M3", architecture));
    for (const CudaTactic* family : cuda_tactics()) family->propose(problem, out);
  }

  Compiled compile(const Problem& problem, const Tactic& tactic) const override {
    const CudaTactic* family = find_family(tactic.name);
    HONE_ASSERT(family != nullptr, "there is no tactic cuda.{}", tactic.name);
    std::vector<DeviceCode> codes;
    std::vector<Tensor> constants;
    const auto add = [&](const std::string& architecture) {
      Generated generated = family->generate(problem, architecture, tactic);
      const Blob cubin = compile_cubin(types_before(generated.source) + generated.source, architecture);
      codes.push_back({architecture, {std::string(family->name), std::move(generated.attrs), family->version}, cubin});
      constants = std::move(generated.constants);  // the same for all
    };
    for (const std::string& architecture : architectures_of(problem)) add(architecture);
    return {encode_device_code(codes), std::move(constants)};
  }
};

std::shared_ptr<const CudaKernel> load_generated(CudaDevice& device, const Blob& code, const KernelShapes& shapes) {
  const std::vector<DeviceCode> codes = decode_device_code(code);
  const DeviceCode& decoded = code_for(codes, device.info().architecture);
  const CudaTactic* family = find_family(decoded.code.family);
  require_version(decoded.code, "cuda", version_of(family));
  std::shared_ptr<const CudaKernel> kernel =
      family->load(decoded.code.attrs, shapes, device.module(decoded.cubin), device.info().workers);
  kernel->require_places(shapes);
  return kernel;
}

}  // namespace

const TacticSource& source() {
  static const CudaSource instance;
  return instance;
}

std::shared_ptr<const CudaKernel> load(CudaDevice& device, std::string_view source, const Blob& code,
                                       const KernelShapes& shapes) {
  device.context()->select();
  if (source == "cuda") return load_generated(device, code, shapes);
  if (source == "cublaslt") return load_cublaslt(device, code, shapes);
  if (source == "cudnn") return load_cudnn(device, code, shapes);
  return nullptr;
}

std::string versions() {
  std::string kernels;
  for (const CudaTactic* family : cuda_tactics()) kernels += fmt::format("{} {}, ", family->name, family->version);
  kernels +=
      fmt::format("matmul {}, convolution {}, attention {}", kMatmulVersion, kConvolutionVersion, kAttentionVersion);
  return fmt::format("cuda {}, {}", hash_hex(kernels).substr(0, 8), library_versions());
}

}  // namespace hone::cuda
