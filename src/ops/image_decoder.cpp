// SPDX-License-Identifier: Apache-2.0
//
// ImageDecoder, and the formats without compression: BMP, PNM and TIFF. Every size and offset comes from the image and is
// checked before it is used.
#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/limits.h"
#include "base/node_error.h"
#include "ops/image_formats.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {

void check_image_size(int64_t width, int64_t height) {
  HONE_CHECK(width > 0 && height > 0 && width <= kMaxImagePixels / height,
             "an image of {} x {} cannot be read; one may have {} pixels", width, height, kMaxImagePixels);
}
RgbImage blank_image(int64_t width, int64_t height) {
  check_image_size(width, height);
  return {.width = width, .height = height, .pixels = std::vector<uint8_t>(static_cast<size_t>(3 * width * height))};
}

int64_t ImageBytes::number(int64_t at, int size) const {
  const std::span<const uint8_t> part = range(at, size);
  int64_t value = 0;
  for (int i = 0; i < size; ++i)
    value |= static_cast<int64_t>(part[static_cast<size_t>(big_ ? size - 1 - i : i)]) << (8 * i);
  return value;
}
std::span<const uint8_t> ImageBytes::range(int64_t at, int64_t count) const {
  HONE_CHECK(at >= 0 && count >= 0 && at <= size() && count <= size() - at, "the image is cut short at byte {}",
             size());
  return bytes_.subspan(static_cast<size_t>(at), static_cast<size_t>(count));
}

namespace {

constexpr int64_t kMaxStrips = 1 << 16;

RgbImage decode_bmp(std::span<const uint8_t> data) {
  const ImageBytes bytes(data, false);
  const int64_t begin = bytes.number(10, 4), width = bytes.number(18, 4), depth = bytes.number(28, 2);
  const auto signed_height = static_cast<int32_t>(bytes.number(22, 4));
  HONE_CHECK((depth == 24 || depth == 32) && bytes.number(30, 4) == 0,
             "a BMP image of {} bits per pixel, or compressed, cannot be read", depth);
  const int64_t height = std::abs(static_cast<int64_t>(signed_height)), step = depth / 8,
                row_bytes = (width * step + 3) / 4 * 4;
  check_image_size(width, height);
  bytes.range(begin, (height - 1) * row_bytes + width * step);
  RgbImage image = blank_image(width, height);
  for (int64_t y = 0; y < height; ++y) {
    const std::span<const uint8_t> row =
        bytes.range(begin + (signed_height > 0 ? height - 1 - y : y) * row_bytes, width * step);
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < 3; ++c)
        image.pixels[static_cast<size_t>((y * width + x) * 3 + c)] = row[static_cast<size_t>(x * step + 2 - c)];
  }
  return image;
}

/// P5 (grey) and P6 (colour): three numbers in text, one blank, then the pixels.
RgbImage decode_pnm(std::span<const uint8_t> data) {
  size_t at = 2;
  const auto number = [&] {
    while (at < data.size() && (std::isspace(data[at]) != 0 || data[at] == '#')) {
      if (data[at] == '#')
        at = static_cast<size_t>(std::find(data.begin() + static_cast<std::ptrdiff_t>(at), data.end(), '\n') -
                                 data.begin());
      else ++at;
    }
    int64_t value = 0;
    for (; at < data.size() && std::isdigit(data[at]) != 0 && value <= kMaxImagePixels; ++at)
      value = value * 10 + (data[at] - '0');
    return value;
  };
  const int64_t width = number(), height = number(), top = number(), channels = data[1] == '6' ? 3 : 1;
  HONE_CHECK(top == 255, "a PNM image with values up to {} cannot be read", top);
  check_image_size(width, height);
  const std::span<const uint8_t> pixels =
      ImageBytes(data, false).range(static_cast<int64_t>(at) + 1, width * height * channels);
  RgbImage image = blank_image(width, height);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = pixels[channels == 3 ? i : i / 3];
  return image;
}

/// One entry of a TIFF directory: its values, inline or elsewhere.
std::vector<int64_t> tiff_values(const ImageBytes& bytes, int64_t entry) {
  const int64_t type = bytes.number(entry + 2, 2), count = bytes.number(entry + 4, 4);
  const int size = type == 3 ? 2 : type == 4 ? 4 : type == 1 ? 1 : 0;
  if (size == 0 || count > kMaxStrips) return {};
  const int64_t begin = count * size <= 4 ? entry + 8 : bytes.number(entry + 8, 4);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(bytes.number(begin + i * size, size));
  return values;
}

RgbImage decode_tiff(std::span<const uint8_t> data) {
  const ImageBytes bytes(data, data[0] == 'M');
  const int64_t directory = bytes.number(4, 4), entries = bytes.number(directory, 2);
  const auto values = [&](int64_t tag, std::vector<int64_t> fallback) {
    for (int64_t i = 0; i < entries; ++i)
      if (const int64_t entry = directory + 2 + 12 * i; bytes.number(entry, 2) == tag) return tiff_values(bytes, entry);
    return fallback;
  };
  const std::vector<int64_t> width = values(256, {}), height = values(257, {}), offsets = values(273, {}),
                             sizes = values(279, {});
  HONE_CHECK(width.size() == 1 && height.size() == 1 && !offsets.empty() && offsets.size() == sizes.size(),
             "the TIFF image names no sizes or no strips");
  const std::vector<int64_t> depth = values(258, {1});
  const bool plain = std::all_of(depth.begin(), depth.end(), [](int64_t bits) { return bits == 8; }) &&
                     values(277, {1}) == std::vector<int64_t>{3} && values(259, {1}) == std::vector<int64_t>{1} &&
                     values(284, {1}) == std::vector<int64_t>{1};
  HONE_CHECK(plain, "only TIFF images of three bytes per pixel without compression can be read");
  check_image_size(width[0], height[0]);
  int64_t held = 0;
  for (const int64_t size : sizes) held += size;
  HONE_CHECK(held == 3 * width[0] * height[0], "the strips of the TIFF image hold {} of {} bytes", held,
             3 * width[0] * height[0]);
  RgbImage image = blank_image(width[0], height[0]);
  size_t done = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const std::span<const uint8_t> strip = bytes.range(offsets[i], sizes[i]);
    std::copy(strip.begin(), strip.end(), image.pixels.begin() + static_cast<std::ptrdiff_t>(done));
    done += strip.size();
  }
  return image;
}

void infer_image(InferContext& context) {
  HONE_CHECK_AS(TypeError, context.dtype(0) == DType::u8 && context.rank(0) == 1, "ImageDecoder reads bytes");
  const std::string& format = context.attrs().text("pixel_format");
  HONE_CHECK_AS(AttributeError, format == "RGB" || format == "BGR" || format == "Grayscale", "'{}' is no pixel format",
                format);
  context.set(0, DType::u8,
              {context.data_dependent(0, 0), context.data_dependent(0, 1), Dim(format == "Grayscale" ? 1 : 3)});
}

void eval_image(EvalContext& context) {
  const RgbImage image = decode_image(context.input(0).data<uint8_t>());
  const std::string& format = context.attrs().text("pixel_format");
  TensorBuilder builder(DType::u8, {image.height, image.width, format == "Grayscale" ? 1 : 3});
  const std::span<uint8_t> out = builder.data<uint8_t>();
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    const uint8_t *pixel = image.pixels.data() + i, r = pixel[0], g = pixel[1], b = pixel[2];
    // Grey as in ITU-R 601, in 16 bits behind the point.
    if (format == "Grayscale") out[i / 3] = static_cast<uint8_t>((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16);
    else
      for (size_t c = 0; c < 3; ++c) out[i + c] = pixel[format == "BGR" ? 2 - c : c];
  }
  context.set(0, builder.finish());
}

}  // namespace

RgbImage decode_image(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\x89PNG")) return decode_png(bytes);
  if (text.starts_with("\xff\xd8\xff")) return decode_jpeg(bytes);
  if (text.starts_with("BM")) return decode_bmp(bytes);
  if (text.starts_with("P5") || text.starts_with("P6")) return decode_pnm(bytes);
  if (text.starts_with(std::string_view("II*\0", 4)) || text.starts_with(std::string_view("MM\0*", 4)))
    return decode_tiff(bytes);
  if (text.starts_with("RIFF") && text.substr(0, 12).ends_with("WEBP")) return decode_webp(bytes);
  if (text.starts_with("\xff\x4f\xff\x51") || text.starts_with(std::string_view("\0\0\0\x0cjP  \r\n\x87\n", 12)))
    return decode_jpeg2000(bytes);
  throw Error("the image is in a format that is not known here",
              "known are BMP, PNM, TIFF without compression, PNG, JPEG, JPEG 2000 and WebP");
}

const OpDef ops::image_decoder{.name = "ImageDecoder",
                               .attrs = {text_attr("pixel_format", "RGB")},
                               .infer = infer_image,
                               .eval = eval_image,
                               .onnx = {{"ImageDecoder", 20}},
                               .traits = {.data_dependent = true}};

}  // namespace hone
