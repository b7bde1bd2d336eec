// SPDX-License-Identifier: Apache-2.0
//
// --int8 for a network in f32: its tensors with known scales are quantised before any pass sees it.
#pragma once

#include "builder/events/listener.h"
#include "builder/options.h"
#include "ir/graph.h"

namespace hone {

struct DeviceInfo;

/// Nothing happens without --int8, without scales, on a device that has no kernels for 8-bit integers, and to a network with
/// quantised tensors of its own. Throws Error for a calibration cache that does not fit.
void quantize_network(Graph& graph, const BuildOptions& options, const DeviceInfo& device, const Listeners& listeners);

}  // namespace hone
