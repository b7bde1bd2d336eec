// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/movement/strided_copy.h"

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "backends/cpu/movement/interleave.h"
#include "backends/cpu/movement/transpose.h"
#include "base/error.h"

namespace hone::cpu {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Elements of an item: enough to hide the cost of starting one, few enough that a small copy has a share for every worker, too.
int64_t item_elements(int64_t elements) { return std::clamp<int64_t>(elements / 16, 256, 2048); }

struct Axis {
  int64_t size, from, to;
};

/// Axes of more than one element, outermost of the destination first, merged where both sides are walked evenly.
std::vector<Axis> simplest(const StridedCopy& copy) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < copy.sizes.size(); ++i)
    if (copy.sizes[i] != 1) axes.push_back({copy.sizes[i], copy.from[i], copy.to[i]});
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return std::abs(a.to) > std::abs(b.to); });
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    if (!merged.empty() && merged.back().from == axis.from * axis.size && merged.back().to == axis.to * axis.size)
      merged.back() = {merged.back().size * axis.size, axis.from, axis.to};
    else merged.push_back(axis);
  }
  return merged;
}

/// Rows of at least a chunk, by chunks; the last one overlaps the one before. A call of memcpy takes as long as 100 bytes.
template <typename Chunk>
void copy_chunks(const std::byte* from, std::byte* to, int64_t bytes, int64_t m, int64_t m_from, int64_t m_to) {
  constexpr int64_t kChunk = sizeof(Chunk);
  const auto copy = [](const std::byte* source, std::byte* target) {
    Chunk chunk;
    std::memcpy(&chunk, source, sizeof chunk);
    std::memcpy(target, &chunk, sizeof chunk);
  };
  for (int64_t i = 0; i < m; ++i, from += m_from, to += m_to) {
    for (int64_t at = 0; at < bytes - kChunk; at += kChunk) copy(from + at, to + at);
    copy(from + bytes - kChunk, to + bytes - kChunk);
  }
}

template <typename T>
void copy_rows(const T* from, T* to, int64_t n, int64_t m, int64_t m_from, int64_t m_to) {
  constexpr int64_t kSize = sizeof(T), kLongRow = 192;
  using Chunk16 = std::array<uint64_t, 2>;
  const int64_t bytes = n * kSize;
  const auto by_chunks = [&]<typename Chunk>(Chunk) {
    copy_chunks<Chunk>(reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to), bytes, m,
                       m_from * kSize, m_to * kSize);
  };
  if (bytes > kLongRow) {
    for (int64_t i = 0; i < m; ++i) std::memcpy(to + i * m_to, from + i * m_from, static_cast<size_t>(bytes));
  } else if (bytes >= 16) {
    by_chunks(Chunk16());
  } else if (bytes >= 4 && kSize <= 4) {
    by_chunks(uint32_t());
  } else {
    by_chunks(T());
  }
}

/// Long rows from what is written already, a kilobyte at a time: memcpy has the machine's widest stores, the compiler has not.
template <typename T>
void repeat_elements(const T* from, T* to, int64_t n, int64_t m, int64_t m_from, int64_t m_to) {
  constexpr int64_t kBlock = 1024 / sizeof(T);
  for (int64_t i = 0; i < m; ++i, from += m_from, to += m_to) {
    const int64_t first = std::min(n, kBlock);
    std::fill_n(to, first, *from);
    for (int64_t at = first; at < n; at += kBlock)
      std::memcpy(to + at, to, static_cast<size_t>(std::min(kBlock, n - at)) * sizeof(T));
  }
}

template <typename T>
void copy_elements(const T* from, T* to, int64_t n, int64_t n_from, int64_t n_to, int64_t m, int64_t m_from,
                   int64_t m_to) {
  if constexpr (sizeof(T) <= 4)
    if (m >= 2 && m <= 4 && n_from == m && n_to == 1 && m_from == 1 && m_to >= n)
      return pixel_moves<T>().split(from, m, n, to, m_to);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) to[i * m_to + j * n_to] = from[i * m_from + j * n_from];
}

template <typename To, typename V>
auto as(V v) {
  return hn::BitCast(hn::Full128<To>(), v);
}

/// to[i*m_to + j] = from[j*n_from + i] for a square of 8 whose rows are registers: neighbouring rows are interleaved, then pairs of
/// elements, then fours of them.
void transpose_tile(const uint16_t* from, int64_t n_from, uint16_t* to, int64_t m_to) {
  const hn::Full128<uint16_t> d;
  const hn::Full128<uint32_t> pairs;
  const hn::Full128<uint64_t> fours;
  hn::Vec<decltype(fours)> columns[2][4];  // of the upper and lower four rows: two columns in each
  for (int half = 0; half < 2; ++half) {
    const uint16_t* rows = from + 4 * half * n_from;
    const auto a = hn::LoadU(d, rows), b = hn::LoadU(d, rows + n_from), c = hn::LoadU(d, rows + 2 * n_from),
               e = hn::LoadU(d, rows + 3 * n_from);
    const auto ab0 = as<uint32_t>(hn::InterleaveLower(d, a, b)), ab1 = as<uint32_t>(hn::InterleaveUpper(d, a, b));
    const auto ce0 = as<uint32_t>(hn::InterleaveLower(d, c, e)), ce1 = as<uint32_t>(hn::InterleaveUpper(d, c, e));
    columns[half][0] = as<uint64_t>(hn::InterleaveLower(pairs, ab0, ce0));
    columns[half][1] = as<uint64_t>(hn::InterleaveUpper(pairs, ab0, ce0));
    columns[half][2] = as<uint64_t>(hn::InterleaveLower(pairs, ab1, ce1));
    columns[half][3] = as<uint64_t>(hn::InterleaveUpper(pairs, ab1, ce1));
  }
  for (int k = 0; k < 4; ++k) {
    const auto upper = columns[0][k], lower = columns[1][k];
    hn::StoreU(as<uint16_t>(hn::InterleaveLower(fours, upper, lower)), d, to + 2 * k * m_to);
    hn::StoreU(as<uint16_t>(hn::InterleaveUpper(fours, upper, lower)), d, to + (2 * k + 1) * m_to);
  }
}

/// Elements of a square's side: a line.
constexpr int64_t square_of(size_t element) { return element == 2 ? 32 : 16; }

/// to[i*m_to + j] = from[j*n_from + i], in squares so that the lines of both sides are used while they are near.
template <typename T>
void copy_transposed(const T* from, T* to, int64_t n, int64_t n_from, int64_t m, int64_t m_to) {
  if constexpr (sizeof(T) <= 4)
    if (n >= 2 && n <= 4 && m_to == n && n_from >= m) return pixel_moves<T>().join(from, n_from, n, m, to);
  if constexpr (sizeof(T) == 4) {
    static const auto transpose = transpose_words(best_isa());
    return transpose({from, n_from, n, m, to, m_to});
  }
  constexpr int64_t kSquare = square_of(sizeof(T)), kTile = 8;
  for (int64_t i0 = 0; i0 < m; i0 += kSquare)
    for (int64_t j0 = 0; j0 < n; j0 += kSquare) {
      const int64_t i_end = std::min(m, i0 + kSquare), j_end = std::min(n, j0 + kSquare);
      int64_t i = i0;
      if constexpr (sizeof(T) == 2) {
        for (; i + kTile <= i_end; i += kTile) {
          int64_t j = j0;
          for (; j + kTile <= j_end; j += kTile) transpose_tile(from + j * n_from + i, n_from, to + i * m_to + j, m_to);
          for (; j < j_end; ++j)
            for (int64_t k = i; k < i + kTile; ++k) to[k * m_to + j] = from[j * n_from + k];
        }
      }
      for (; i < i_end; ++i)
        for (int64_t j = j0; j < j_end; ++j) to[i * m_to + j] = from[j * n_from + i];
    }
}

}  // namespace

void transpose_floats(const float* from, int64_t from_step, float* to, int64_t to_step, int64_t rows, int64_t columns) {
  copy_transposed(reinterpret_cast<const uint32_t*>(from), reinterpret_cast<uint32_t*>(to), rows, from_step, columns,
                  to_step);
}

bool moves_rows(const StridedCopy& copy) {
  constexpr int64_t kShortRow = 4;
  const std::vector<Axis> axes = simplest(copy);
  return axes.empty() ||
         (axes.back().to == 1 && (axes.back().from == 1 || axes.back().from == 0) && axes.back().size >= kShortRow);
}

CopyLoops::CopyLoops(const StridedCopy& copy, size_t element)
    : element_(element), from_offset_(copy.from_offset), to_offset_(copy.to_offset) {
  HONE_ASSERT(copy.sizes.size() == copy.from.size() && copy.sizes.size() == copy.to.size(), "axes of a copy disagree");
  HONE_ASSERT(element == 1 || element == 2 || element == 4 || element == 8, "elements of {} bytes", element);
  elements_ = hone::elements(copy.sizes);
  if (elements_ == 0) {
    outer_ = 0;
    return;
  }
  std::vector<Axis> axes = simplest(copy);
  if (!axes.empty()) {
    n_ = axes.back().size, n_from_ = axes.back().from, n_to_ = axes.back().to;
    axes.pop_back();
  }
  if (n_to_ == 1 && n_from_ == 1) kind_ = Kind::rows;
  else if (n_to_ == 1 && n_from_ == 0) kind_ = Kind::repeat;
  // The second axis: the one the source walks element by element when the first does not, else the next.
  size_t second = axes.size();
  for (size_t i = 0; i < axes.size(); ++i)
    if (kind_ == Kind::elements && n_to_ == 1 && axes[i].from == 1 && axes[i].size >= 4)
      second = i, kind_ = Kind::transpose;
  if (second == axes.size() && !axes.empty()) second = axes.size() - 1;
  if (second < axes.size()) {
    m_ = axes[second].size, m_from_ = axes[second].from, m_to_ = axes[second].to;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(second));
  }
  const bool by_rows = kind_ == Kind::rows || kind_ == Kind::repeat;
  const int64_t item = item_elements(elements_);
  if (by_rows && n_ >= item) {  // a row alone is work enough
    axes.push_back({m_, m_from_, m_to_});
    m_ = 1;
  }
  for (const Axis& axis : axes) {
    sizes_.push_back(axis.size), from_.push_back(axis.from), to_.push_back(axis.to);
    outer_ *= axis.size;
  }
  split_n_ = by_rows ? m_ == 1 : m_ < n_;
  const int64_t whole = split_n_ ? n_ : m_, other = split_n_ ? m_ : n_;
  const int64_t least = kind_ == Kind::transpose ? std::min(square_of(element), whole) : 1;
  part_ = std::clamp<int64_t>(item / other, least, whole);
  if (part_ > 16) part_ = part_ / 16 * 16;
  parts_ = (whole + part_ - 1) / part_;
}

template <typename T>
void CopyLoops::run_as(int64_t begin, int64_t end, const T* from, T* to) const {
  for (int64_t item = begin; item < end; ++item) {
    int64_t source = from_offset_, target = to_offset_, rest = item / parts_;
    for (size_t axis = sizes_.size(); axis-- > 0; rest /= sizes_[axis]) {
      const int64_t i = rest % sizes_[axis];
      source += i * from_[axis], target += i * to_[axis];
    }
    const int64_t first = item % parts_ * part_, count = std::min(part_, (split_n_ ? n_ : m_) - first);
    const int64_t n = split_n_ ? count : n_, m = split_n_ ? m_ : count;
    source += first * (split_n_ ? n_from_ : m_from_), target += first * (split_n_ ? n_to_ : m_to_);
    switch (kind_) {
      case Kind::rows: copy_rows(from + source, to + target, n, m, m_from_, m_to_); break;
      case Kind::repeat: repeat_elements(from + source, to + target, n, m, m_from_, m_to_); break;
      case Kind::transpose: copy_transposed(from + source, to + target, n, n_from_, m, m_to_); break;
      case Kind::elements: copy_elements(from + source, to + target, n, n_from_, n_to_, m, m_from_, m_to_); break;
    }
  }
}

void CopyLoops::run(int64_t begin, int64_t end, const void* from, void* to) const {
  switch (element_) {
    case 1: return run_as(begin, end, static_cast<const uint8_t*>(from), static_cast<uint8_t*>(to));
    case 2: return run_as(begin, end, static_cast<const uint16_t*>(from), static_cast<uint16_t*>(to));
    case 4: return run_as(begin, end, static_cast<const uint32_t*>(from), static_cast<uint32_t*>(to));
    case 8: return run_as(begin, end, static_cast<const uint64_t*>(from), static_cast<uint64_t*>(to));
  }
}

}  // namespace hone::cpu
