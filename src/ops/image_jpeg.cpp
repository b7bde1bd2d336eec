// SPDX-License-Identifier: Apache-2.0
//
// libjpeg reports errors by not returning from error_exit, so a long jump leads back; nothing with a destructor lives
// between the two.
#include "base/error.h"
#include "ops/image_formats.h"

#if HONE_WITH_JPEG
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>
#endif

namespace hone {

#if HONE_WITH_JPEG
namespace {

struct ErrorManager {
  jpeg_error_mgr base;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

void leave(j_common_ptr common) {
  auto* manager = reinterpret_cast<ErrorManager*>(common->err);
  common->err->format_message(common, manager->message);
  std::longjmp(manager->back, 1);
}
void ignore(j_common_ptr, int) {}

/// `image` belongs to the caller, so that a jump leaves nothing behind.
bool read(std::span<const uint8_t> bytes, RgbImage& image, ErrorManager& manager) {
  jpeg_decompress_struct jpeg{};
  jpeg.err = jpeg_std_error(&manager.base);
  manager.base.error_exit = leave;
  manager.base.emit_message = ignore;
  if (setjmp(manager.back) != 0) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  image.width = jpeg.output_width;
  image.height = jpeg.output_height;
  image.pixels.resize(static_cast<size_t>(image.width * image.height * 3));
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row =
        image.pixels.data() + static_cast<size_t>(jpeg.output_scanline) * static_cast<size_t>(image.width) * 3;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return true;
}

}  // namespace

RgbImage decode_jpeg(std::span<const uint8_t> bytes) {
  RgbImage image;
  ErrorManager manager{};
  HONE_CHECK(read(bytes, image, manager), "the JPEG image is damaged: {}", manager.message);
  return image;
}
#else
RgbImage decode_jpeg(std::span<const uint8_t>) {
  throw Error("this build cannot read JPEG images", "build it with libjpeg-dev installed");
}
#endif

}  // namespace hone
