// SPDX-License-Identifier: Apache-2.0
//
// libpng lays a transparent image over black if asked for three channels; four are asked for then, and one is dropped.
#include <memory>

#include "base/error.h"
#include "ops/image_formats.h"

#if HONE_WITH_PNG
#include <png.h>
#endif

namespace hone {

#if HONE_WITH_PNG
RgbImage decode_png(std::span<const uint8_t> bytes) {
  png_image png{};
  const std::unique_ptr<png_image, decltype(&png_image_free)> holder(&png, png_image_free);
  png.version = PNG_IMAGE_VERSION;
  HONE_CHECK(png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) != 0, "the PNG image is damaged: {}",
             png.message);
  check_image_size(png.width, png.height);
  const size_t channels = (png.format & PNG_FORMAT_FLAG_ALPHA) != 0 ? 4 : 3;
  png.format = channels == 4 ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  RgbImage image{.width = png.width, .height = png.height, .pixels = std::vector<uint8_t>(PNG_IMAGE_SIZE(png))};
  HONE_CHECK(png_image_finish_read(&png, nullptr, image.pixels.data(), 0, nullptr) != 0, "the PNG image is damaged: {}",
             png.message);
  if (channels == 3) return image;
  const auto pixels = static_cast<size_t>(image.width * image.height);
  for (size_t i = 0; i < 3 * pixels; ++i) image.pixels[i] = image.pixels[i / 3 * 4 + i % 3];
  image.pixels.resize(3 * pixels);
  return image;
}
#else
RgbImage decode_png(std::span<const uint8_t>) {
  throw Error("this build cannot read PNG images", "build it with libpng-dev installed");
}
#endif

}  // namespace hone
