// SPDX-License-Identifier: Apache-2.0
#include "precision/variants.h"

#include "quantize/read_scales.h"

namespace hone {
namespace {

bool can_quantize(const Graph& graph, const BuildOptions& options, const DeviceInfo& device) {
  const bool calibrated = !options.scales.empty() || !options.calibration_file.empty();
  return options.int8 && calibrated && device.byte_matmuls && !is_quantized(graph);
}

}  // namespace

std::vector<Variant> variants_of(const Graph& graph, const BuildOptions& options, const DeviceInfo& device) {
  const bool half = options.fp16 || options.bf16, int8 = can_quantize(graph, options, device);
  const bool is_f16 = options.fp16 && (device.half_networks || !options.bf16);
  const std::string half_name = is_f16 ? "FP16" : "BF16", half_type = is_f16 ? "fp16" : "bf16";
  const auto with = [&](bool allows_half, bool allows_int8) {
    BuildOptions result = options;
    result.best = false;
    result.fp16 = options.fp16 && allows_half;
    result.bf16 = options.bf16 && allows_half;
    result.int8 = allows_int8;
    return result;
  };
  std::vector<Variant> variants{{"FP32", "fp32", with(false, false)}};
  if (half) variants.push_back({half_name, half_type, with(true, false)});
  if (int8) variants.push_back({"INT8", "int8", with(false, true)});
  if (half && int8) variants.push_back({"INT8+" + half_name, "int8", with(true, true)});
  return variants;
}

}  // namespace hone
