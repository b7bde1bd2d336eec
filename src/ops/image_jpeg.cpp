// SPDX-License-Identifier: Apache-2.0
//
// libjpeg reports errors by not returning from error_exit, so a long jump leads back; nothing with a destructor lives
// between the two. It would fill in what a file lacks at its end, and decode a whole image anew for each of any number of
// scans of a few bytes; both are refused.
#include "base/error.h"
#include "ops/image_formats.h"

#if HONE_WITH_JPEG
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>
#endif

namespace hone {

#if HONE_WITH_JPEG
namespace {

/// Progressive files have some ten.
constexpr int kMaxScans = 200;

/// libjpeg hands back pointers to its own part of each of these, which therefore comes first.
struct ErrorManager {
  jpeg_error_mgr base{};
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX] = "";
};
struct Decoder {
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { jpeg_destroy_decompress(&jpeg); }

  jpeg_decompress_struct jpeg{};
  jpeg_progress_mgr progress{};
  ErrorManager manager;
};

void leave(j_common_ptr common) {
  auto* manager = reinterpret_cast<ErrorManager*>(common->err);
  common->err->format_message(common, manager->message);
  std::longjmp(manager->back, 1);
}
void warn(j_common_ptr common, int level) {
  const int code = common->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) leave(common);
}
void count_scans(j_common_ptr common) {
  if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number <= kMaxScans) return;
  auto* manager = reinterpret_cast<ErrorManager*>(common->err);
  std::snprintf(manager->message, sizeof manager->message, "it has more than %d scans", kMaxScans);
  std::longjmp(manager->back, 1);
}

/// Both belong to the caller, so that a jump leaves nothing behind.
bool read(std::span<const uint8_t> bytes, RgbImage& image, Decoder& decoder) {
  jpeg_decompress_struct& jpeg = decoder.jpeg;
  jpeg.err = jpeg_std_error(&decoder.manager.base);
  decoder.manager.base.error_exit = leave;
  decoder.manager.base.emit_message = warn;
  if (setjmp(decoder.manager.back) != 0) return false;
  jpeg_create_decompress(&jpeg);
  decoder.progress.progress_monitor = count_scans;
  jpeg.progress = &decoder.progress;
  jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  check_image_size(jpeg.image_width, jpeg.image_height);
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
  return true;
}

}  // namespace

RgbImage decode_jpeg(std::span<const uint8_t> bytes) {
  RgbImage image;
  Decoder decoder;
  HONE_CHECK(read(bytes, image, decoder), "the JPEG image is damaged: {}", decoder.manager.message);
  return image;
}
#else
RgbImage decode_jpeg(std::span<const uint8_t>) {
  throw Error("this build cannot read JPEG images", "build it with libjpeg-dev installed");
}
#endif

}  // namespace hone
