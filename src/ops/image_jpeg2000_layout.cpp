// SPDX-License-Identifier: Apache-2.0
//
// The boxes of a JP2 file and the markers of a JPEG 2000 codestream, read before OpenJPEG sees them. It allocates and
// iterates by what they say: a file of a hundred bytes may name 2^36 tiles, blocks or packets. Here each of these counts
// must be one that a file of this size can hold, and every tile must be there to its end.
#include <algorithm>
#include <array>

#include "base/checked.h"
#include "ops/image_formats.h"

namespace hone {
namespace {

/// One tile needs some 10 kB of OpenJPEG's memory, a block some 200 bytes, whatever they hold.
constexpr int64_t kMaxTiles = 4096, kMaxBlocks = 1 << 20;
/// A packet takes one byte at least; the spare ones are for counts that are rounded up here.
constexpr int64_t kPacketsPerByte = 4, kSparePackets = 4096;
/// Some orders of packets visit each place where a precinct of any resolution may begin.
constexpr int64_t kMaxPlaces = 1 << 20;

enum Marker : int64_t {
  kStart = 0xff4f,
  kSizes = 0xff51,
  kStyle = 0xff52,
  kComponentStyle = 0xff53,
  kTile = 0xff90,
  kData = 0xff93,
  kEnd = 0xffd9
};
/// RGN, QCD, QCC, POC, TLM, PLM, PLT, PPM, PPT, CRG, COM: their length is all that matters here. Others are refused, for
/// OpenJPEG goes on within a segment that it does not know.
constexpr std::array<int64_t, 11> kOthers = {0xff5e, 0xff5c, 0xff5d, 0xff5f, 0xff55, 0xff57,
                                             0xff58, 0xff60, 0xff61, 0xff63, 0xff64};

constexpr int64_t box(const char (&name)[5]) {
  int64_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(name[i]);
  return value;
}

/// Calls visit(type, begin, size of the content) for each box between two places.
template <typename Visit>
void visit_boxes(const ImageBytes& bytes, int64_t begin, int64_t end, Visit&& visit) {
  while (begin < end) {
    int64_t size = bytes.number(begin, 4), header = 8;
    const int64_t type = bytes.number(begin + 4, 4);
    if (size == 1) {
      HONE_CHECK(bytes.number(begin + 8, 4) == 0, "the JPEG 2000 image is damaged: a box is too long");
      size = bytes.number(begin + 12, 4), header = 16;
    } else if (size == 0) {
      size = end - begin;
    }
    HONE_CHECK(size >= header && size <= end - begin, "the JPEG 2000 image is cut short or damaged: a box of {} bytes",
               size);
    visit(type, begin + header, size - header);
    begin += size;
  }
}

class Codestream {
 public:
  explicit Codestream(std::span<const uint8_t> data) : bytes_(data, true) {
    HONE_CHECK(bytes_.number(0, 2) == kStart && bytes_.number(2, 2) == kSizes,
               "the JPEG 2000 image is damaged: no sizes stand in front");
    read_sizes(4);
    int64_t at = 4 + bytes_.number(4, 2);
    while (bytes_.number(at, 2) != kEnd)
      if (bytes_.number(at, 2) == kTile) at = read_tile(at);
      else at = read_segment(at);
    HONE_CHECK(std::find(seen_.begin(), seen_.end(), false) == seen_.end(), "the JPEG 2000 image lacks a tile");
    const int64_t most = checked_add(checked_multiply(kPacketsPerByte, bytes_.size()), kSparePackets);
    HONE_CHECK(checked_multiply(layers_, precincts_) <= most,
               "the JPEG 2000 image names {} precincts in {} layers but has {} bytes", precincts_, layers_,
               bytes_.size());
    HONE_CHECK(checked_multiply(ceil_divide(width_, dx_), ceil_divide(height_, dy_)) <= kMaxPlaces,
               "the JPEG 2000 image has precincts of {} x {} pixels, which are too small", dx_, dy_);
  }

 private:
  void read_sizes(int64_t at) {
    const int64_t right = bytes_.number(at + 4, 4), bottom = bytes_.number(at + 8, 4), x = bytes_.number(at + 12, 4),
                  y = bytes_.number(at + 16, 4), tile_x = bytes_.number(at + 28, 4), tile_y = bytes_.number(at + 32, 4);
    width_ = right - x, height_ = bottom - y;
    check_image_size(width_, height_);
    tile_width_ = bytes_.number(at + 20, 4), tile_height_ = bytes_.number(at + 24, 4);
    components_ = bytes_.number(at + 36, 2);
    HONE_CHECK(components_ >= 1 && components_ <= 4 && bytes_.number(at, 2) == 38 + 3 * components_,
               "a JPEG 2000 image of {} components cannot be read", components_);
    HONE_CHECK(tile_width_ > 0 && tile_height_ > 0 && tile_x <= x && tile_y <= y, "the JPEG 2000 image has no tiles");
    tiles_ = checked_multiply(ceil_divide(right - tile_x, tile_width_), ceil_divide(bottom - tile_y, tile_height_));
    HONE_CHECK(tiles_ <= kMaxTiles, "the JPEG 2000 image has {} tiles; {} can be read", tiles_, kMaxTiles);
    seen_.resize(static_cast<size_t>(tiles_));
    tile_width_ = std::min(tile_width_, width_), tile_height_ = std::min(tile_height_, height_);
  }

  /// The place behind a marker and its segment.
  int64_t read_segment(int64_t at) {
    const int64_t marker = bytes_.number(at, 2), size = bytes_.number(at + 2, 2);
    bytes_.range(at + 2, size);
    if (marker == kStyle) {
      layers_ = std::max(layers_, bytes_.number(at + 6, 2));
      read_style(at + 9, (bytes_.number(at + 4, 1) & 1) != 0);
    } else if (marker == kComponentStyle) {
      read_style(at + 6, (bytes_.number(at + 5, 1) & 1) != 0);
    } else {
      HONE_CHECK(size >= 2 && std::find(kOthers.begin(), kOthers.end(), marker) != kOthers.end(),
                 "the JPEG 2000 image has a marker {:04x}, which cannot be read", marker);
    }
    return at + 2 + size;
  }

  /// Levels, block sizes, a byte each for the blocks' style and the transform, and the sizes of precincts if they are
  /// given. Every style counts as if all components and tiles had it.
  void read_style(int64_t at, bool has_precincts) {
    const int64_t levels = bytes_.number(at, 1), block_x = bytes_.number(at + 1, 1) + 2,
                  block_y = bytes_.number(at + 2, 1) + 2;
    HONE_CHECK(levels <= 32 && block_x <= 10 && block_y <= 10,
               "the JPEG 2000 image is damaged: {} levels with blocks of 2^{} x 2^{}", levels, block_x, block_y);
    const int64_t blocks =
        checked_multiply(ceil_divide(width_, int64_t{1} << block_x), ceil_divide(height_, int64_t{1} << block_y)) *
        components_;
    HONE_CHECK(blocks <= kMaxBlocks, "the JPEG 2000 image has {} blocks; {} can be read", blocks, kMaxBlocks);
    int64_t precincts = 0;
    for (int64_t level = 0; level <= levels; ++level) {
      const int64_t sizes = has_precincts ? bytes_.number(at + 5 + level, 1) : 0xff;
      // In pixels of the image; beyond its largest size one is as good as another.
      const int64_t dx = int64_t{1} << std::min<int64_t>((sizes & 15) + levels - level, 32),
                    dy = int64_t{1} << std::min<int64_t>((sizes >> 4) + levels - level, 32);
      precincts += checked_multiply(ceil_divide(tile_width_, dx), ceil_divide(tile_height_, dy));
      dx_ = std::min(dx_, dx), dy_ = std::min(dy_, dy);
    }
    precincts_ = std::max(precincts_, checked_multiply(precincts, tiles_ * components_));
  }

  /// The place behind a part of a tile, which ends inside the image.
  int64_t read_tile(int64_t begin) {
    const int64_t index = bytes_.number(begin + 4, 2), size = bytes_.number(begin + 6, 4);
    HONE_CHECK(bytes_.number(begin + 2, 2) == 10 && index < tiles_ && size >= 14,
               "the JPEG 2000 image is damaged: tile {} of {} with {} bytes", index, tiles_, size);
    bytes_.range(begin, size);
    seen_[static_cast<size_t>(index)] = true;
    int64_t at = begin + 12;
    while (bytes_.number(at, 2) != kData) at = read_segment(at);
    HONE_CHECK(at + 2 <= begin + size, "the JPEG 2000 image is damaged: tile {} has {} bytes", index, size);
    return begin + size;
  }

  ImageBytes bytes_;
  int64_t width_ = 0, height_ = 0, tile_width_ = 0, tile_height_ = 0, components_ = 0, tiles_ = 0;
  int64_t layers_ = 0, precincts_ = 0, dx_ = int64_t{1} << 32, dy_ = int64_t{1} << 32;
  std::vector<bool> seen_;
};

}  // namespace

Jpeg2000Layout read_jpeg2000_layout(std::span<const uint8_t> data) {
  const ImageBytes bytes(data, true);
  Jpeg2000Layout layout{.codestream = data};
  if (bytes.number(0, 2) != kStart) {
    layout.codestream = {};
    const auto visit_header = [&](int64_t type, int64_t at, int64_t) {
      HONE_CHECK(type != box("pclr"), "a JPEG 2000 image with a palette cannot be read");
      if (type != box("colr") || bytes.number(at, 1) != 1) return;
      const int64_t colours = bytes.number(at + 3, 4);
      HONE_CHECK(colours >= 16 && colours <= 18, "a JPEG 2000 image in colour space {} cannot be read", colours);
      layout.luma_chroma = colours == 18;
    };
    visit_boxes(bytes, 0, bytes.size(), [&](int64_t type, int64_t at, int64_t size) {
      if (type == box("jp2h")) visit_boxes(bytes, at, at + size, visit_header);
      if (type == box("jp2c") && layout.codestream.empty()) layout.codestream = bytes.range(at, size);
    });
    HONE_CHECK(!layout.codestream.empty(), "the JPEG 2000 file holds no image");
  }
  const Codestream checked(layout.codestream);
  return layout;
}

}  // namespace hone
