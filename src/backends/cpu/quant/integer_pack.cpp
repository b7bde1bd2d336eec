// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/quant/integer_pack.h"

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.h"

namespace hone::cpu {
namespace {

/// Calls body(indices) for every index of `sizes`, the last axis fastest.
template <typename Body>
void for_each_index(const Dims& sizes, Body&& body) {
  Dims indices(sizes.size(), 0);
  for (int64_t left = elements(sizes); left > 0; --left) {
    body(indices);
    for (size_t axis = sizes.size(); axis-- > 0 && ++indices[axis] == sizes[axis];) indices[axis] = 0;
  }
}

/// A step for each pixel of so many planes; what is left of it is 0.
template <int channels, typename From>
void join_planes(const From* planes, int64_t plane, int64_t count, int add, uint8_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t step = 0;
    for (int c = 0; c < channels; ++c)
      step |= static_cast<uint32_t>(static_cast<uint8_t>(planes[c * plane + i] + add)) << 8 * c;
    std::memcpy(to + i * kStepBytes, &step, kStepBytes);
  }
}

uint32_t sum_of(const int16_t* numbers, int64_t count) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<uint32_t>(numbers[i]);
  return sum;
}
/// One instruction adds up eight bytes: their distances from 0.
uint32_t sum_of(const uint8_t* bytes, int64_t count) {
  constexpr int64_t kVector = 16;
  __m128i sums = _mm_setzero_si128();
  int64_t i = 0;
  for (; i + kVector <= count; i += kVector)
    sums = _mm_add_epi64(
        sums, _mm_sad_epu8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i)), _mm_setzero_si128()));
  auto sum = static_cast<uint32_t>(_mm_cvtsi128_si64(_mm_add_epi64(sums, _mm_unpackhi_epi64(sums, sums))));
  for (; i < count; ++i) sum += bytes[i];
  return sum;
}

template <typename To, typename From>
void convert(const From* from, To* to, int64_t count, int add) {
  if (sizeof(To) == sizeof(From) && add == 0) std::memcpy(to, from, static_cast<size_t>(count));
  else
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i] + add);
}

}  // namespace

IntegerPack::IntegerPack(const IntegerShape& shape, const IntegerConfig& config, Copy copy)
    : s_(shape),
      sums_(copy == Copy::with_window_sums),
      depth_(config.pixel_steps(shape) * step_of(config.dot)),
      added_(config.added(shape)),
      element_bytes_(kStepBytes / step_of(config.dot)) {
  packs_ = copy != Copy::where_needed || !fits_in_place();
  for (size_t axis = 0; axis < s_.in.size(); ++axis) sizes_.push_back(packs_ ? s_.span(axis) : s_.in[axis]);
  pixels_ = elements(sizes_);
  group_bytes_ = depth_ * element_bytes_;
  pixel_bytes_ = s_.groups * group_bytes_;
  place_rows();
  place_taps();
}

bool IntegerPack::fits_in_place() const {
  if (!s_.source.empty() || element_bytes_ != 1 || added_ != 0 || depth_ != s_.depth ||
      s_.layout != Layout::channels_last)
    return false;
  for (size_t axis = 0; axis < s_.in.size(); ++axis)
    if (s_.pads[axis] != 0 || s_.span(axis) > s_.in[axis]) return false;
  return true;
}

int64_t IntegerPack::pixel_at(const Dims& indices) const {
  int64_t pixel = 0;
  for (size_t axis = 0; axis < indices.size(); ++axis) pixel = pixel * sizes_[axis] + indices[axis];
  return pixel;
}

void IntegerPack::place_rows() {
  Dims rows = s_.out;
  rows.back() = 1;
  for_each_index(rows, [&](Dims indices) {
    for (size_t axis = 0; axis < indices.size(); ++axis) indices[axis] *= s_.strides[axis];
    row_pixels_.push_back(pixel_at(indices));
  });
}

void IntegerPack::place_taps() {
  for_each_index(s_.filter, [&](Dims indices) {
    for (size_t axis = 0; axis < indices.size(); ++axis) indices[axis] *= s_.dilations[axis];
    tap_pixels_.push_back(pixel_at(indices));
  });
  for (size_t tap = 0; tap < tap_pixels_.size(); tap += static_cast<size_t>(s_.run()))
    taps_.push_back(tap_pixels_[tap] * pixel_bytes_);
}

std::vector<int64_t> IntegerPack::all_taps() const {
  std::vector<int64_t> result = tap_pixels_;
  for (int64_t& tap : result) tap *= pixel_bytes_;
  return result;
}

int64_t IntegerPack::copy_bytes() const { return round_up(s_.images * image_bytes(), 64); }
int64_t IntegerPack::pixel_sums_bytes() const { return sums_ ? round_up(s_.images * pixels_ * s_.groups * 4, 64) : 0; }
int64_t IntegerPack::window_sums_bytes() const {
  return sums_ ? round_up(s_.images * elements(s_.out) * s_.groups * 4, 64) : 0;
}

void IntegerPack::run(int phase, int worker, int workers, const std::byte* a, int64_t zero, std::byte* packed) const {
  if (phase == 1) return sum_windows(worker, workers, packed);
  const auto* u = reinterpret_cast<const uint8_t*>(a);
  const auto* i = reinterpret_cast<const int8_t*>(a);
  if (element_bytes_ == 1 && s_.signed_a) pack_rows<uint8_t>(worker, workers, i, zero, packed);
  else if (element_bytes_ == 1) pack_rows<uint8_t>(worker, workers, u, zero, packed);
  else if (s_.signed_a) pack_rows<int16_t>(worker, workers, i, zero, packed);
  else pack_rows<int16_t>(worker, workers, u, zero, packed);
}

int64_t IntegerPack::source_of(int64_t row) const {
  Dims indices(sizes_.size(), 0);
  for (size_t axis = sizes_.size() - 1; axis-- > 0; row /= sizes_[axis]) indices[axis] = row % sizes_[axis];
  int64_t pixel = 0;
  for (size_t axis = 0; axis + 1 < sizes_.size(); ++axis) {
    const int64_t at = indices[axis] - s_.pads[axis];
    if (at < 0 || at >= s_.in[axis]) return -1;
    pixel = pixel * s_.in[axis] + at;
  }
  return pixel * s_.in.back();
}

template <typename To, typename From>
void IntegerPack::pack_rows(int worker, int workers, const From* a, int64_t zero, std::byte* packed) const {
  if (!s_.source.empty()) return pack_kept<To>(worker, workers, a, packed);
  const int64_t width = sizes_.back(), rows = pixels_ / width, pixel = s_.groups * depth_,
                image = elements(s_.in) * s_.groups * s_.depth;
  const int64_t left = std::clamp<int64_t>(s_.pads.back(), 0, width),
                right = std::clamp<int64_t>(s_.pads.back() + s_.in.back(), left, width);
  const Share share = share_of(s_.images * rows, worker, workers);
  for (int64_t row = share.begin; row < share.end; ++row) {
    To* to = reinterpret_cast<To*>(packed) + row * width * pixel;
    const int64_t source = source_of(row % rows);
    const int64_t begin = source < 0 ? width : left, end = source < 0 ? width : right;
    std::fill(to, to + begin * pixel, static_cast<To>(zero));
    if (begin < end)
      copy_pixels(a + row / rows * image, source + begin - s_.pads.back(), end - begin, to + begin * pixel);
    std::fill(to + end * pixel, to + width * pixel, static_cast<To>(zero));
    if (sums_) sum_pixels(to, width, pixel_sums(packed) + row * width * s_.groups);
  }
}

int64_t IntegerPack::kept_source(int64_t row) const {
  int64_t pixel = 0, between = s_.source.back();
  for (size_t axis = s_.kept.size() - 1; axis-- > 0; between *= s_.source[axis], row /= s_.kept[axis])
    pixel += row % s_.kept[axis] * s_.apart[axis] * between;
  return pixel;
}

template <typename To, typename From>
void IntegerPack::pack_kept(int worker, int workers, const From* a, std::byte* packed) const {
  const int64_t width = s_.kept.back(), pixel = s_.groups * depth_;
  const Share share = share_of(elements(s_.kept) / width, worker, workers);
  for (int64_t row = share.begin; row < share.end; ++row) {
    To* to = reinterpret_cast<To*>(packed) + row * width * pixel;
    const int64_t source = kept_source(row);
    for (int64_t x = 0; x < width; ++x) copy_pixels(a, source + x * s_.apart.back(), 1, to + x * pixel);
    if (sums_) sum_pixels(to, width, pixel_sums(packed) + row * width * s_.groups);
  }
}

template <typename To, typename From>
void IntegerPack::copy_pixels(const From* image, int64_t first, int64_t count, To* to) const {
  const int64_t channels = s_.groups * s_.depth, plane = elements(s_.in);
  const auto add = static_cast<int>(added_);
  if (s_.layout == Layout::channels_last && depth_ == s_.depth)
    return convert(image + first * channels, to, count * channels, add);
  if constexpr (sizeof(To) == 1)
    if (s_.layout == Layout::linear && s_.groups == 1 && depth_ == kStepBytes) {
      constexpr auto kJoin = std::to_array<void (*)(const From*, int64_t, int64_t, int, uint8_t*)>(
          {join_planes<1, From>, join_planes<2, From>, join_planes<3, From>, join_planes<4, From>});
      return kJoin[static_cast<size_t>(s_.depth - 1)](image + first, plane, count, add, to);
    }
  for (int64_t pixel = 0; pixel < count; ++pixel)
    for (int64_t group = 0; group < s_.groups; ++group, to += depth_) {
      if (s_.layout == Layout::channels_last)
        convert(image + ((first + pixel) * s_.groups + group) * s_.depth, to, s_.depth, add);
      else
        for (int64_t c = 0; c < s_.depth; ++c)
          to[c] = static_cast<To>(image[(group * s_.depth + c) * plane + first + pixel] + add);
      std::fill(to + s_.depth, to + depth_, To{0});
    }
}

template <typename To>
void IntegerPack::sum_pixels(const To* row, int64_t count, uint32_t* to) const {
  for (int64_t i = 0; i < count * s_.groups; ++i, row += depth_) to[i] = sum_of(row, s_.depth);
}

void IntegerPack::sum_windows(int worker, int workers, std::byte* packed) const {
  const int64_t width = s_.out.back(), pixels = s_.images * rows() * width;
  const uint32_t* from = pixel_sums(packed);
  auto* to = const_cast<uint32_t*>(window_sums(packed));
  const Share share = share_of(pixels, worker, workers);
  for (int64_t pixel = share.begin; pixel < share.end; ++pixel) {
    const int64_t row = pixel / width, place = row / rows() * pixels_ + row_pixels_[static_cast<size_t>(row % rows())] +
                                               pixel % width * s_.strides.back();
    for (int64_t group = 0; group < s_.groups; ++group) {
      uint32_t sum = 0;
      for (const int64_t tap : tap_pixels_) sum += from[(place + tap) * s_.groups + group];
      to[group * pixels + pixel] = sum;
    }
  }
}

}  // namespace hone::cpu
