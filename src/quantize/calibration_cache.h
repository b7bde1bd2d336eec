// SPDX-License-Identifier: Apache-2.0
//
// Calibration caches of TensorRT: a line that names the calibrator, then "tensor: scale" with the scale's float bits in
// hexadecimal, most significant digit first.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace hone {

struct CalibrationCache {
  std::string calibrator;  // "TRT-8601-EntropyCalibration2"
  std::map<std::string, float> scales;
};

/// Throws Error for a text that is no such cache, and naming the lines that cannot be read.
CalibrationCache parse_calibration_cache(std::string_view text);
CalibrationCache read_calibration_cache(const std::string& path);
/// What parse_calibration_cache() reads; scales keep all their bits.
std::string format_calibration_cache(const CalibrationCache& cache);

}  // namespace hone
