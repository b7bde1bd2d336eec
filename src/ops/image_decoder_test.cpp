// SPDX-License-Identifier: Apache-2.0
//
// ImageDecoder: what tiny images of the compressed formats hold, and that damaged and absurd ones end in an Error.
#include <gtest/gtest.h>

#include <map>

#include "base/limits.h"
#include "ops/eval_for_test.h"
#include "ops/image_formats.h"
#include "ops/images_for_test.h"

namespace hone {
namespace {

using namespace test_images;
using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

const std::map<std::string, std::string_view>& all_images() {
  static const std::map<std::string, std::string_view> images = {{"PNG with alpha", kPngAlpha},
                                                                 {"JPEG", kJpeg},
                                                                 {"JPEG, progressive", kJpegProgressive},
                                                                 {"WebP", kWebp},
                                                                 {"WebP, grey", kWebpGrey},
                                                                 {"WebP with alpha", kWebpAlpha},
                                                                 {"WebP, lossy", kWebpLossy},
                                                                 {"WebP, lossy with alpha", kWebpLossyAlpha},
                                                                 {"JPEG 2000", kJp2},
                                                                 {"JPEG 2000, grey", kJp2Grey},
                                                                 {"JPEG 2000 with alpha", kJp2Alpha},
                                                                 {"JPEG 2000, grey with alpha", kJp2GreyAlpha},
                                                                 {"JPEG 2000, tiles", kCodestreamTiles},
                                                                 {"JPEG 2000, 16 bits", kCodestream16}};
  return images;
}

/// What is said of bytes that are no image; nothing where they are one.
std::string refusal(const Bytes& bytes) {
  try {
    decode_image(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}
bool readable(std::string_view image) {
  return refusal(from_hex(image)).find("this build cannot") == std::string::npos;
}

Tensor decoded(std::string_view image, const std::string& format) {
  const Bytes bytes = from_hex(image);
  Attrs attrs;
  attrs.set("pixel_format", format);
  const Tensor operand = Tensor::of<uint8_t>({static_cast<int64_t>(bytes.size())}, std::span<const uint8_t>(bytes));
  Graph graph;
  const Node* node =
      graph.add(*find_op("ImageDecoder"), {graph.add_input("x", operand.type())}, std::move(attrs), "node", 1);
  graph.set_outputs({node->output(0)});
  const std::vector<Tensor> operands = {operand};
  return evaluate(graph, operands).front();
}

std::array<int, 3> colour(int x, int y) { return {60 * x + 10, 80 * y + 20, 200 - 30 * x - 10 * y}; }
std::array<int, 3> grey(int x, int y) {
  const int value = 50 * x + 30 * y + 7;
  return {value, value, value};
}

/// In all three formats.
void expect_pixels(const char* name, std::string_view image, std::array<int, 3> (*pixel)(int, int)) {
  SCOPED_TRACE(name);
  if (!readable(image)) GTEST_SKIP() << "this build has no library for it";
  std::vector<double> rgb, bgr, luma;
  for (int y = 0; y < 3; ++y)
    for (int x = 0; x < 4; ++x) {
      const auto [r, g, b] = pixel(x, y);
      for (const int value : {r, g, b}) rgb.push_back(value);
      for (const int value : {b, g, r}) bgr.push_back(value);
      luma.push_back(std::floor(0.299 * r + 0.587 * g + 0.114 * b + 0.5));
    }
  expect_near(decoded(image, "RGB"), {3, 4, 3}, rgb, 0);
  expect_near(decoded(image, "BGR"), {3, 4, 3}, bgr, 0);
  expect_near(decoded(image, "Grayscale"), {3, 4, 1}, luma, 0);
}

TEST(ImageDecoder, ReadsWebPWithoutLoss) {
  expect_pixels("colour", kWebp, colour);
  expect_pixels("grey", kWebpGrey, grey);
}
TEST(ImageDecoder, ReadsJpeg2000WithoutLoss) {
  expect_pixels("colour", kJp2, colour);
  expect_pixels("grey", kJp2Grey, grey);
  expect_pixels("tiles of 2 x 2 without a JP2 file around them", kCodestreamTiles, colour);
  expect_pixels("16 bits", kCodestream16, grey);
}
TEST(ImageDecoder, DropsAlphaInEveryFormat) {
  expect_pixels("PNG", kPngAlpha, colour);
  expect_pixels("WebP", kWebpAlpha, colour);
  expect_pixels("JPEG 2000", kJp2Alpha, colour);
  expect_pixels("JPEG 2000, grey", kJp2GreyAlpha, grey);
}
TEST(ImageDecoder, ReadsLossyImagesNearlyRight) {
  for (const std::string_view image : {kJpeg, kJpegProgressive, kWebpLossy, kWebpLossyAlpha}) {
    if (!readable(image)) continue;
    const Tensor pixels = decoded(image, "RGB");
    for (int64_t i = 0; i < pixels.size(); ++i)
      EXPECT_NEAR(pixels.real(i), (std::array{200, 100, 50})[static_cast<size_t>(i % 3)], 8);
  }
}

TEST(HostileImages, CutAnywhereAreRefused) {
  for (const auto& [name, image] : all_images()) {
    const Bytes whole = from_hex(image);
    const size_t needed = whole.size() - (name.starts_with("PNG") ? 12 : 0);  // nothing stands in the last chunk
    for (size_t size = 0; size < needed; ++size)
      EXPECT_NE(refusal(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))), "")
          << name << " of " << whole.size() << " bytes cut to " << size;
  }
}

TEST(HostileImages, AlteredBytesNeverCrash) {
  for (const auto& [name, image] : all_images()) {
    const Bytes whole = from_hex(image);
    for (size_t i = 0; i < whole.size(); ++i)
      for (const int value : {0, 1, 0x7f, 0xff, whole[i] ^ 1, whole[i] ^ 0x80}) {
        Bytes altered = whole;
        altered[i] = static_cast<uint8_t>(value);
        EXPECT_THAT(refusal(altered), Not(HasSubstr("internal error"))) << name;
      }
  }
}

/// `image` with other bytes at each of the given places.
Bytes patched(std::string_view image, const std::vector<std::pair<size_t, std::string_view>>& changes) {
  Bytes bytes = from_hex(image);
  for (const auto& [at, hex] : changes) {
    const Bytes part = from_hex(hex);
    std::copy(part.begin(), part.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return bytes;
}
/// Behind the first place where the given bytes stand.
size_t behind(std::string_view image, std::string_view hex) {
  for (size_t at = 0; at + hex.size() <= image.size(); at += 2)
    if (image.substr(at, hex.size()) == hex) return (at + hex.size()) / 2;
  ADD_FAILURE() << hex << " is not in the image";
  return 0;
}

TEST(HostileImages, HugeSizesAreRefusedBeforeMemoryIsTaken) {
  const std::string limit = std::to_string(kMaxImagePixels);
  const std::string bmp = "424d" + std::string(16, '0') + "36000000" + "28000000" + "ffff0000" + "ffff0000" +
                          "01001800" + std::string(48, '0');
  EXPECT_THAT(refusal(from_hex(bmp)), HasSubstr(limit));
  const std::string_view pnm = "P6 65536 65536 255 ", wide = "P5 99999999999999999999 1 255 ";
  EXPECT_THAT(refusal(Bytes(pnm.begin(), pnm.end())), HasSubstr(limit));
  EXPECT_THAT(refusal(Bytes(wide.begin(), wide.end())), HasSubstr("cannot be read"));
  if (readable(kJpeg)) {  // the sizes of the frame stand behind its length and depth
    EXPECT_THAT(refusal(patched(kJpeg, {{behind(kJpeg, "ffc0001108"), "ffdcffdc"}})), HasSubstr(limit));
  }
  if (readable(kPngAlpha)) {  // the checksum is that of the sizes as they were
    EXPECT_NE(refusal(patched(kPngAlpha, {{behind(kPngAlpha, "49484452"), "0000ffff0000ffff"}})), "");
  }
  if (readable(kWebp)) {  // 14 bits each, less one
    EXPECT_THAT(refusal(patched(kWebp, {{behind(kWebp, "5650384c") + 5, "ffffff0f"}})), HasSubstr(limit));
  }
}

constexpr std::string_view kJp2Sizes = "ff51002f0000", kJp2Style = "ff52000c00";

TEST(HostileImages, Jpeg2000ThatAsksForMoreThanItHoldsIsRefused) {
  if (!readable(kJp2)) GTEST_SKIP() << "this build has no library for it";
  const size_t sizes = behind(kJp2, kJp2Sizes), style = behind(kJp2, kJp2Style);
  const auto refused = [](const std::vector<std::pair<size_t, std::string_view>>& changes) {
    return refusal(patched(kJp2, changes));
  };
  EXPECT_THAT(refused({{sizes, "ffffffffffffffff"}}), HasSubstr("pixels"));
  EXPECT_THAT(refused({{sizes, "0000200000002000"}, {sizes + 16, "0000000100000001"}}), HasSubstr("tiles"));
  EXPECT_THAT(refused({{sizes + 16, "0000000000000000"}}), HasSubstr("tiles"));
  EXPECT_THAT(refused({{sizes + 32, "4000"}}), HasSubstr("16384 components"));
  EXPECT_THAT(refused({{style + 1, "ffff"}}), HasSubstr("65535 layers"));
  EXPECT_THAT(refused({{style + 4, "ff"}}), HasSubstr("255 levels"));
  const std::string_view large =
      "00002000000020000000000000000000"
      "0000200000002000";
  EXPECT_THAT(refused({{sizes, large}, {style + 5, "0000"}}), HasSubstr("blocks"));
  EXPECT_THAT(refused({{sizes + 8, "00000004"}}), HasSubstr("0 x 3"));
}

TEST(HostileImages, Jpeg2000OfSmallPrecinctsIsRefused) {
  if (!readable(kJp2)) GTEST_SKIP() << "this build has no library for it";
  // An image of 8192 x 8192 whose style names precincts of 1 x 1 for both resolutions, then of 1 x 32768 and 32768 x 1.
  const std::string head =
      "ff4fff51002f000000002000000020000000000000000000"
      "00002000000020000000000000000000"
      "0003070101070101070101";
  const std::string tail = "ff90000a0000000001080001ff93" + std::string(500, '0') + "ffd9";
  for (const std::string precincts : {"0000", "0ff0"}) {
    const std::string image = fmt::format("{}ff52000e01000001010104040001{}{}", head, precincts, tail);
    EXPECT_THAT(refusal(from_hex(image)), HasSubstr("precincts")) << precincts;
  }
}

TEST(HostileImages, Jpeg2000WithWhatCannotBeReadIsRefused) {
  if (!readable(kJp2)) GTEST_SKIP() << "this build has no library for it";
  EXPECT_THAT(refusal(patched(kJp2, {{behind(kJp2, "636f6c72") - 4, "70636c72"}})), HasSubstr("palette"));
  EXPECT_THAT(refusal(patched(kJp2, {{behind(kJp2, "636f6c72") + 3, "0000000c"}})), HasSubstr("colour space 12"));
  EXPECT_THAT(refusal(patched(kJp2, {{behind(kJp2, kJp2Style) - 5, "ff50"}})), HasSubstr("marker ff50"));
  const size_t second = behind(kCodestreamTiles, "ff90000a0001");
  EXPECT_THAT(refusal(patched(kCodestreamTiles, {{second - 2, "0000"}})), HasSubstr("lacks a tile"));
}

TEST(HostileImages, AnimationsAreRefused) {
  if (!readable(kWebp)) GTEST_SKIP() << "this build has no library for it";
  EXPECT_THAT(refusal(from_hex(kWebpAnimation)), HasSubstr("animation"));
}

TEST(HostileImages, ScansWithoutEndAreRefused) {
  if (!readable(kJpegProgressive)) GTEST_SKIP() << "this build has no library for it";
  const std::string_view image = kJpegProgressive;
  const size_t last = image.rfind("ffda");
  std::string many(image.substr(0, last));
  for (int i = 0; i < 400; ++i) many += image.substr(last, image.size() - 4 - last);
  EXPECT_THAT(refusal(from_hex(many + "ffd9")), HasSubstr("scans"));
}

}  // namespace
}  // namespace hone
