// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/conv/tiled_weights.h"

#include <array>
#include <cstring>

#include "backends/cuda/support/source_text.h"
#include "base/checked.h"
#include "base/error.h"

namespace hone::cuda {
namespace {

constexpr int64_t kPiece = 16, kGroup = 4, kDepth = 64;  // bytes; channels, of which two are kept; of a step
constexpr int64_t kRows = 64, kThreads = 128;            // of the instruction

/// Two of four weights that may not be zero, and where they are: two bits each, the first ones lower.
struct Kept {
  std::array<uint16_t, 2> weights{};
  unsigned places = 0;
};

bool is_zero(uint16_t bits) { return (bits & 0x7fff) == 0; }

Kept kept_of(std::span<const uint16_t> four) {
  std::array<unsigned, 2> places{0, 0};
  size_t count = 0;
  for (unsigned i = 0; i < four.size(); ++i)
    if (!is_zero(four[i])) {
      HONE_CHECK(count < 2, "weights of no 2:4 structure");
      places[count++] = i;
    }
  if (count == 1) places = places[0] < 3 ? std::array{places[0], 3U} : std::array{0U, 3U};
  if (count == 0) places = {0, 1};
  return {{four[places[0]], four[places[1]]}, places[0] | places[1] << 2};
}

/// One tile and step of sparse weights.
class SparseStep {
 public:
  SparseStep(std::byte* to, int64_t filters) : to_(to), places_(to + filters * kDepth) {}

  void put(int64_t filter, int64_t channel, const Kept& kept) {
    // Half as many weights of two bytes each: a channel's byte has its number.
    const int64_t piece = channel / kPiece ^ filter / 2 % 4;
    std::memcpy(to_ + filter * kDepth + piece * kPiece + channel % kPiece, kept.weights.data(), sizeof kept.weights);
    // A thread holds 16 channels of a row and of the eighth behind it; each half of a step is told by two of four threads.
    const int64_t row = filter % kRows, thread = row / 16 * 32 + row % 8 * 4 + channel / 16;
    const int64_t shift = row % 16 / 8 * 16 + channel % 16 / kGroup * 4;
    std::byte* const at = places_ + (filter / kRows * kThreads + thread) * 4;
    uint32_t word = 0;
    std::memcpy(&word, at, sizeof word);
    word |= kept.places << shift;
    std::memcpy(at, &word, sizeof word);
  }

 private:
  std::byte *to_, *places_;
};

/// The column of the product in which a tile's filter is: lane i of four has columns 2i and 2i + 1 of every eight.
int64_t column_of(int64_t filter, int64_t neighbours) {
  const int64_t together = 4 * neighbours, lane = filter % together / neighbours, own = filter % neighbours;
  return filter / together * together + own / 2 * 8 + lane * 2 + own % 2;
}

}  // namespace

Tensor tiled(const Tensor& rows, int64_t tile_filters, int64_t neighbours) {
  constexpr int64_t kPieces = kTiledBytes / kPiece;
  const int64_t filters = rows.dims()[0], bytes = static_cast<int64_t>(rows.bytes().size()) / filters;
  const int64_t tiles = blocks_of(filters, tile_filters), steps = blocks_of(bytes, kTiledBytes);
  TensorBuilder laid(rows.dtype(),
                     {tiles, steps, tile_filters, kTiledBytes / static_cast<int64_t>(size_of(rows.dtype()))});
  std::memset(laid.bytes(), 0, static_cast<size_t>(tiles * steps * tile_filters * kTiledBytes));
  for (int64_t filter = 0; filter < filters; ++filter)
    for (int64_t at = 0; at < bytes; at += kPiece) {
      const int64_t row = column_of(filter % tile_filters, neighbours), step = at / kTiledBytes,
                    piece = at % kTiledBytes / kPiece ^ row % kPieces;
      const int64_t to = ((filter / tile_filters * steps + step) * tile_filters + row) * kTiledBytes + piece * kPiece;
      std::memcpy(laid.bytes() + to, rows.bytes().data() + filter * bytes + at, kPiece);
    }
  return laid.finish();
}

Tensor in_chunks(const Tensor& rows, int64_t chunk_bytes) {
  const auto size = static_cast<int64_t>(size_of(rows.dtype()));
  const int64_t filters = rows.dims()[0], taps = rows.dims()[1], bytes = rows.dims()[2] * size;
  const int64_t chunks = bytes / chunk_bytes, stride = round_up(taps * chunk_bytes, kTiledBytes);
  TensorBuilder laid(rows.dtype(), {filters, chunks, stride / size});
  std::memset(laid.bytes(), 0, static_cast<size_t>(filters * chunks * stride));
  for (int64_t filter = 0; filter < filters; ++filter)
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      for (int64_t tap = 0; tap < taps; ++tap)
        std::memcpy(laid.bytes() + (filter * chunks + chunk) * stride + tap * chunk_bytes,
                    rows.bytes().data() + (filter * taps + tap) * bytes + chunk * chunk_bytes,
                    static_cast<size_t>(chunk_bytes));
  return laid.finish();
}

Tensor tiled_sparse(const Tensor& rows, int64_t tile_filters) {
  const int64_t filters = rows.dims()[0], depth = rows.size() / filters;
  const int64_t tiles = blocks_of(filters, tile_filters), steps = blocks_of(depth, kDepth);
  TensorBuilder laid(rows.dtype(), {tiles, steps, tile_filters, (kSparseBytes + kPlacesBytes) / 2});
  std::memset(laid.bytes(), 0, static_cast<size_t>(tiles * steps * tile_filters * (kSparseBytes + kPlacesBytes)));
  // Every four say two places, where there is nothing, too: the same place twice is not allowed.
  for (int64_t filter = 0; filter < tiles * tile_filters; ++filter)
    for (int64_t channel = 0; channel < steps * kDepth; channel += kGroup) {
      std::array<uint16_t, kGroup> four{};
      if (filter < filters && channel < depth)
        std::memcpy(four.data(), rows.bytes().data() + (filter * depth + channel) * 2, sizeof four);
      SparseStep step(laid.bytes() + (filter / tile_filters * steps + channel / kDepth) * tile_filters *
                                         (kSparseBytes + kPlacesBytes),
                      tile_filters);
      step.put(filter % tile_filters, channel % kDepth, kept_of(four));
    }
  return laid.finish();
}

}  // namespace hone::cuda
