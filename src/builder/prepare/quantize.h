// SPDX-License-Identifier: Apache-2.0
//
// --int8 for a network in f32: its tensors with known scales are quantised before any pass sees it.
#pragma once

#include <set>
#include <string>

#include "builder/events/listener.h"
#include "builder/options.h"
#include "ir/graph.h"

namespace hone {

struct DeviceInfo;

/// Nothing happens without --int8, without scales, on a device that has no kernels for 8-bit integers, and to a network with
/// quantised tensors of its own. Throws Error for a calibration cache that does not fit, and where BuildOptions::required_types
/// names a layer that cannot be computed in int8. Returns the scales that are known (scales.h).
TensorScales quantize_network(Graph& graph, const BuildOptions& options, const DeviceInfo& device,
                              const Listeners& listeners);
/// Results that are to be int8 or fp8 by BuildOptions::result_types: a QuantizeLinear and a DequantizeLinear behind each. Throws Error
/// naming layer and tensor where nothing says the scale.
void quantize_results(Graph& graph, const BuildOptions& options, const TensorScales& scales);
/// The tensors of that kind of which the model itself says no scale.
std::set<std::string> results_without_scale(const Graph& graph, const BuildOptions& options);

}  // namespace hone
