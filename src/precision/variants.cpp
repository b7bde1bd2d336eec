// SPDX-License-Identifier: Apache-2.0
#include "precision/variants.h"

#include "quantize/read_scales.h"

namespace hone {
namespace {

bool can_quantize(const Graph& graph, const BuildOptions& options, const DeviceInfo& device) {
  const bool calibrated = !options.scales.empty() || !options.calibration_file.empty();
  return options.int8 && calibrated && device.has_integers() && !is_quantized(graph);
}

bool prefers_f16(const BuildOptions& options, const DeviceInfo& device) {
  return options.fp16 && (device.half_networks || !options.bf16);
}

}  // namespace

std::vector<std::string> left_out(const Graph& graph, const BuildOptions& options, const DeviceInfo& device) {
  std::vector<std::string> result;
  if (options.fp16 && options.bf16)
    result.emplace_back(prefers_f16(options, device)
                            ? "BF16: this device is no faster in it than in FP16"
                            : "FP16: this device has no kernels in it, of 16 bits it takes BF16");
  if (!options.int8 || can_quantize(graph, options, device)) return result;
  result.emplace_back(is_quantized(graph)
                          ? "INT8: the network has quantised tensors of its own, which stay so in every engine"
                      : !device.has_integers() ? "INT8: this device has no kernels for 8-bit integers"
                                               : "INT8: there is no calibration; give it with --calib or --calibData");
  return result;
}

std::vector<Variant> variants_of(const Graph& graph, const BuildOptions& options, const DeviceInfo& device) {
  const bool half = options.fp16 || options.bf16, int8 = can_quantize(graph, options, device);
  const bool is_f16 = prefers_f16(options, device);
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
