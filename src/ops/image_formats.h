// SPDX-License-Identifier: Apache-2.0
//
// Reading encoded images. Plain formats are read here; PNG, JPEG, WebP and JPEG 2000 by libpng, libjpeg, libwebp and
// OpenJPEG where the build has them. Transparency is dropped in every format: the colours are those that are stored.
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

/// Black, or an Error where a side is not positive or the image has more than kMaxImagePixels.
RgbImage blank_image(int64_t width, int64_t height);
void check_image_size(int64_t width, int64_t height);

/// Reads numbers of either byte order, never beyond the end.
class ImageBytes {
 public:
  ImageBytes(std::span<const uint8_t> bytes, bool big_endian) : bytes_(bytes), big_(big_endian) {}
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  int64_t number(int64_t at, int size) const;
  std::span<const uint8_t> range(int64_t at, int64_t size) const;

 private:
  std::span<const uint8_t> bytes_;
  bool big_;
};

/// The format is told by the first bytes. Throws Error for damaged data and for formats that this build cannot read.
RgbImage decode_image(std::span<const uint8_t> bytes);

RgbImage decode_png(std::span<const uint8_t> bytes);       ///< image_png.cpp
RgbImage decode_jpeg(std::span<const uint8_t> bytes);      ///< image_jpeg.cpp
RgbImage decode_webp(std::span<const uint8_t> bytes);      ///< image_webp.cpp
RgbImage decode_jpeg2000(std::span<const uint8_t> bytes);  ///< image_jpeg2000.cpp

/// What the boxes and markers of a JPEG 2000 file say: see image_jpeg2000_layout.cpp.
struct Jpeg2000Layout {
  std::span<const uint8_t> codestream;
  bool luma_chroma = false;  // sYCC
};
Jpeg2000Layout read_jpeg2000_layout(std::span<const uint8_t> bytes);

}  // namespace hone
