// SPDX-License-Identifier: Apache-2.0
//
// The types that a build allows, each alone and all together.
#pragma once

#include <string>
#include <vector>

#include "builder/options.h"
#include "device/device.h"
#include "ir/graph.h"

namespace hone {

/// Options that allow some of the types.
struct Variant {
  std::string name;  // "FP32", "INT8+BF16"
  std::string type;  // what BuildOptions::layer_types calls the type that it is for: "fp32", "bf16", "int8"
  BuildOptions options;
};

/// FP32 first. Types by which the device or the network gains nothing are left out: 8-bit integers want a calibration.
std::vector<Variant> variants_of(const Graph& graph, const BuildOptions& options, const DeviceInfo& device);
/// What the options allow and variants_of() leaves out, and why: "INT8: there is no calibration".
std::vector<std::string> left_out(const Graph& graph, const BuildOptions& options, const DeviceInfo& device);

}  // namespace hone
