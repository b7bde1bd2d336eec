// SPDX-License-Identifier: Apache-2.0
//
// Calibration caches, TensorRT's and Hone's: scales that are read are written and read again as they are, or the file is refused.
#include "harness.h"
#include "quantize/calibration_cache.h"

namespace hone::fuzz {

std::vector<std::string> seed_inputs() {
  return {
      "TRT-8601-EntropyCalibration2\nconv1: 3c010a14\n(Unnamed Layer* 0) [Shuffle]_output: 3f800000\na:0: 00000000\n",
      "TRT-101300-MinMaxCalibration\r\ninput: 3caa5293\r\n"};
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  fuzz::accepted([&] {
    const CalibrationCache cache = parse_calibration_cache(fuzz::text_of(data, size));
    const CalibrationCache again = parse_calibration_cache(format_calibration_cache(cache));
    HONE_ASSERT(again.calibrator == cache.calibrator && again.scales == cache.scales, "{} scales became {}",
                cache.scales.size(), again.scales.size());
  });
  return 0;
}
