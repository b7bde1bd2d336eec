// SPDX-License-Identifier: Apache-2.0
//
// Calibration caches of TensorRT: a line that names the calibrator, then "tensor: scale" with the scale's float bits in
// hexadecimal, most significant digit first.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/log.h"
#include "ir/graph.h"

namespace hone {

struct CalibrationCache {
  std::string calibrator;  // "TRT-8601-EntropyCalibration2"
  std::map<std::string, float> scales;
};

/// Throws Error for a text that is no such cache, and naming the lines that cannot be read.
CalibrationCache parse_calibration_cache(std::string_view text);
/// Reads the file and tells how it fits the network.
void check_calibration_cache(const std::string& path, const Graph& graph, const Logger& log);

}  // namespace hone
