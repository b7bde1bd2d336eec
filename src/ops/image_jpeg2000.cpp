// SPDX-License-Identifier: Apache-2.0
//
// JPEG 2000 through OpenJPEG, which sees the codestream alone: what a JP2 file says around it was read before. Components
// may have fewer samples than the image has pixels, and other than 8 bits.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "ops/image_formats.h"

#if HONE_WITH_JPEG2000
#include <openjpeg.h>
#endif

namespace hone {

#if HONE_WITH_JPEG2000
namespace {

template <auto destroy>
struct Destroy {
  void operator()(auto* object) const { destroy(object); }
};
using Codec = std::unique_ptr<opj_codec_t, Destroy<opj_destroy_codec>>;
using Stream = std::unique_ptr<opj_stream_t, Destroy<opj_stream_destroy>>;
using Image = std::unique_ptr<opj_image_t, Destroy<opj_image_destroy>>;

struct Source {
  std::span<const uint8_t> bytes;
  size_t at = 0;
};

OPJ_SIZE_T read(void* to, OPJ_SIZE_T wanted, void* user) {
  auto& source = *static_cast<Source*>(user);
  const size_t count = std::min<size_t>(wanted, source.bytes.size() - source.at);
  if (count == 0) return static_cast<OPJ_SIZE_T>(-1);  // the end
  std::memcpy(to, source.bytes.data() + source.at, count);
  source.at += count;
  return count;
}
OPJ_BOOL seek(OPJ_OFF_T to, void* user) {
  auto& source = *static_cast<Source*>(user);
  if (to < 0 || to > static_cast<OPJ_OFF_T>(source.bytes.size())) return OPJ_FALSE;
  source.at = static_cast<size_t>(to);
  return OPJ_TRUE;
}
OPJ_OFF_T skip(OPJ_OFF_T count, void* user) {
  return seek(static_cast<OPJ_OFF_T>(static_cast<Source*>(user)->at) + count, user) != 0 ? count : -1;
}

/// The last message of an error; what OpenJPEG only warns of is let pass.
struct Message {
  char text[256] = "no reason is given";
};
void keep(const char* text, void* user) {
  auto& message = *static_cast<Message*>(user);
  std::snprintf(message.text, sizeof message.text, "%s", text);
  if (char* end = std::strchr(message.text, '\n')) *end = 0;
}
void ignore(const char*, void*) {}

Image read_components(std::span<const uint8_t> codestream) {
  Message message;
  Source source{codestream};
  const Codec codec(opj_create_decompress(OPJ_CODEC_J2K));
  const Stream stream(opj_stream_create(std::min<size_t>(codestream.size(), OPJ_J2K_STREAM_CHUNK_SIZE), OPJ_TRUE));
  if (codec == nullptr || stream == nullptr) throw std::bad_alloc();
  opj_set_error_handler(codec.get(), keep, &message);
  opj_set_warning_handler(codec.get(), ignore, nullptr);
  opj_set_info_handler(codec.get(), ignore, nullptr);
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), codestream.size());
  opj_stream_set_read_function(stream.get(), read);
  opj_stream_set_skip_function(stream.get(), skip);
  opj_stream_set_seek_function(stream.get(), seek);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* made = nullptr;
  bool done =
      opj_setup_decoder(codec.get(), &parameters) != 0 && opj_read_header(stream.get(), codec.get(), &made) != 0;
  Image image(made);
  done = done && opj_decode(codec.get(), stream.get(), image.get()) != 0 &&
         opj_end_decompress(codec.get(), stream.get()) != 0;
  HONE_CHECK(done, "the JPEG 2000 image is damaged: {}", message.text);
  return image;
}

uint8_t to_byte(double value) { return static_cast<uint8_t>(std::clamp(std::lround(value), 0L, 255L)); }

/// A component's samples as bytes, one for each pixel of the image.
std::vector<uint8_t> plane(const opj_image_t& image, const opj_image_comp_t& component) {
  HONE_CHECK(component.data != nullptr && component.w > 0 && component.h > 0 && component.dx > 0 && component.dy > 0 &&
                 component.prec >= 1 && component.prec <= 31,
             "the JPEG 2000 image is damaged: a component has no samples");
  const int64_t width = image.x1 - image.x0, height = image.y1 - image.y0;
  const int64_t top = (int64_t{1} << component.prec) - 1, lift = component.sgnd != 0 ? (top + 1) / 2 : 0;
  const int shift = static_cast<int>(component.prec) - 8;
  std::vector<uint8_t> bytes(static_cast<size_t>(width * height));
  const auto sample_of = [](int64_t pixel, int64_t origin, int64_t step, int64_t first, int64_t count) {
    return std::clamp<int64_t>((origin + pixel) / step - first, 0, count - 1);
  };
  for (int64_t y = 0; y < height; ++y) {
    const OPJ_INT32* row = component.data + sample_of(y, image.y0, component.dy, component.y0, component.h) *
                                                static_cast<int64_t>(component.w);
    for (int64_t x = 0; x < width; ++x) {
      const int64_t at = sample_of(x, image.x0, component.dx, component.x0, component.w);
      const int64_t value = std::clamp<int64_t>(row[at] + lift, 0, top);
      bytes[static_cast<size_t>(y * width + x)] =
          static_cast<uint8_t>(shift >= 0 ? value >> shift : (value * 255 + top / 2) / top);
    }
  }
  return bytes;
}

}  // namespace

RgbImage decode_jpeg2000(std::span<const uint8_t> bytes) {
  const Jpeg2000Layout layout = read_jpeg2000_layout(bytes);
  const Image read = read_components(layout.codestream);
  RgbImage image = blank_image(int64_t{read->x1} - read->x0, int64_t{read->y1} - read->y0);
  const bool colour = read->numcomps >= 3;  // one and two are grey, and grey with transparency
  for (size_t c = 0; c < (colour ? 3 : 1); ++c) {
    const std::vector<uint8_t> samples = plane(*read, read->comps[c]);
    for (size_t i = 0; i < samples.size(); ++i)
      if (colour) image.pixels[i * 3 + c] = samples[i];
      else std::fill_n(image.pixels.begin() + static_cast<std::ptrdiff_t>(i * 3), 3, samples[i]);
  }
  if (colour && layout.luma_chroma)
    for (size_t i = 0; i < image.pixels.size(); i += 3) {
      uint8_t* pixel = image.pixels.data() + i;
      const double luma = pixel[0], blue = pixel[1] - 128.0, red = pixel[2] - 128.0;
      pixel[0] = to_byte(luma + 1.402 * red);
      pixel[1] = to_byte(luma - 0.344 * blue - 0.714 * red);
      pixel[2] = to_byte(luma + 1.772 * blue);
    }
  return image;
}
#else
RgbImage decode_jpeg2000(std::span<const uint8_t>) {
  throw Error("this build cannot read JPEG 2000 images", "build it with libopenjp2-7-dev installed");
}
#endif

}  // namespace hone
