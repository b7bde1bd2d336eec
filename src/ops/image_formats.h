// SPDX-License-Identifier: Apache-2.0
//
// Reading encoded images. Plain formats are read here; PNG and JPEG by libpng and libjpeg where the build has them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hone {

/// Rows of red, green, blue.
struct RgbImage {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels;
};

/// The format is told by the first bytes. Throws Error for damaged data and for formats that this build cannot read.
RgbImage decode_image(std::span<const uint8_t> bytes);

RgbImage decode_png(std::span<const uint8_t> bytes);   ///< image_png.cpp
RgbImage decode_jpeg(std::span<const uint8_t> bytes);  ///< image_jpeg.cpp

}  // namespace hone
