// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "ops/image_formats.h"

#if HONE_WITH_PNG
#include <png.h>
#endif

namespace hone {

#if HONE_WITH_PNG
RgbImage decode_png(std::span<const uint8_t> bytes) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  HONE_CHECK(png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) != 0, "the PNG image is damaged: {}",
             png.message);
  png.format = PNG_FORMAT_RGB;
  RgbImage image{.width = png.width, .height = png.height, .pixels = std::vector<uint8_t>(PNG_IMAGE_SIZE(png))};
  const bool read = png_image_finish_read(&png, nullptr, image.pixels.data(), 0, nullptr) != 0;
  png_image_free(&png);
  HONE_CHECK(read, "the PNG image is damaged: {}", png.message);
  return image;
}
#else
RgbImage decode_png(std::span<const uint8_t>) {
  throw Error("this build cannot read PNG images", "build it with libpng-dev installed");
}
#endif

}  // namespace hone
