// SPDX-License-Identifier: Apache-2.0
//
// WebP, lossy and lossless. The sizes are read before anything is decoded.
#include "base/error.h"
#include "ops/image_formats.h"

#if HONE_WITH_WEBP
#include <webp/decode.h>
#endif

namespace hone {

#if HONE_WITH_WEBP
RgbImage decode_webp(std::span<const uint8_t> bytes) {
  WebPBitstreamFeatures features{};
  HONE_CHECK(WebPGetFeatures(bytes.data(), bytes.size(), &features) == VP8_STATUS_OK, "the WebP image is damaged");
  HONE_CHECK(features.has_animation == 0, "the WebP image is an animation, which cannot be read");
  RgbImage image = blank_image(features.width, features.height);
  HONE_CHECK(WebPDecodeRGBInto(bytes.data(), bytes.size(), image.pixels.data(), image.pixels.size(),
                               features.width * 3) != nullptr,
             "the WebP image is damaged");
  return image;
}
#else
RgbImage decode_webp(std::span<const uint8_t>) {
  throw Error("this build cannot read WebP images", "build it with libwebp-dev installed");
}
#endif

}  // namespace hone
