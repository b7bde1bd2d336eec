// SPDX-License-Identifier: Apache-2.0
//
// Scales that somebody else determined, brought to a network.
#pragma once

#include "base/log.h"
#include "quantize/calibration_cache.h"
#include "quantize/placement.h"
#include "tensor/scale.h"

namespace hone {

/// Whether the network computes with quantised tensors of its own: then they are what it means, and others are not added.
bool is_quantized(const Graph& graph);

/// One scale for each tensor of the cache. Throws Error when none of them is in the network or one is 0.
TensorScales scales_in(const CalibrationCache& cache, const Graph& graph, const Logger& log);
/// The file's, with a note of it in errors.
TensorScales read_scales(const std::string& path, const Graph& graph, const Logger& log);

}  // namespace hone
