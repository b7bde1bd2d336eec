// SPDX-License-Identifier: Apache-2.0
//
// TopK of any element type. An element and its place become one key, so that ranking compares integers: not-a-number counts as
// largest, equals stay in order. Keys that beat the bar are collected; when there is no more room, the best k of them stay and the
// worst of those becomes the bar, so that most elements are only held against it, in vectors.
#include "backends/cpu/reduce/top_k.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <functional>

#include "backends/cpu/reduce/row_folds.h"
#include "backends/cpu/support/number.h"

namespace hone::cpu {
namespace {

/// Numbers as unsigned integers of the same order.
template <typename T>
auto ranked(T value) {
  const auto number = comparable(value);
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr Bits kTop = Bits{1} << (8 * sizeof(Bits) - 1);
  if constexpr (std::is_floating_point_v<decltype(number + 0)>) {
    if (number != number) return ~Bits{0};
    const auto bits = std::bit_cast<Bits>(number + 0);  // one zero
    return (bits & kTop) != 0 ? ~bits : bits | kTop;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Bits>(number) ^ kTop;
  } else {
    return static_cast<Bits>(number);
  }
}

struct WideKey {
  uint64_t rank, place;
  friend auto operator<=>(const WideKey&, const WideKey&) = default;
};

template <typename T>
using Key = std::conditional_t<sizeof(T) == 8, WideKey, uint64_t>;

/// The larger the better, whichever end is asked for.
template <typename T>
Key<T> key_of(T value, int64_t place, bool largest) {
  const auto rank = largest ? ranked(value) : ~ranked(value);
  const auto from_end = ~static_cast<uint32_t>(place);
  if constexpr (sizeof(T) == 8) return {rank, from_end};
  else return uint64_t{rank} << 32 | from_end;
}

int64_t place_of(uint64_t key) { return ~static_cast<uint32_t>(key); }
int64_t place_of(const WideKey& key) { return place_of(key.place); }

/// Whether one of `count` elements is better than `bar`.
template <typename T>
bool one_beats(const T* x, int64_t count, int64_t step, T bar, bool largest) {
  const auto limit = comparable(bar);
  int found = 0;
  const auto look = [&](auto stride) {
    if (largest && limit == limit)
      for (int64_t j = 0; j < count; ++j) found |= comparable(x[j * stride]) <= limit ? 0 : 1;
    else if (!largest && limit == limit)
      for (int64_t j = 0; j < count; ++j) found |= comparable(x[j * stride]) < limit ? 1 : 0;
    else if (!largest)
      for (int64_t j = 0; j < count; ++j) found |= comparable(x[j * stride]) == comparable(x[j * stride]) ? 1 : 0;
  };
  if (step == 1) look(std::integral_constant<int64_t, 1>());
  else look(step);
  return found != 0;
}

/// The keys of a line are ranked in the workspace, of which each worker has a part.
class TopK final : public CpuKernel {
 public:
  TopK(const Lines& lines, bool largest, const BoundNode& node, const CpuInfo& info)
      : lines_(lines), workers_(info.workers), largest_(largest), bars_(bar_tests(info.isa)), x_(node.operand(0)) {
    node.require(node.wants(0) || node.wants(1));
    if (node.wants(0)) values_ = node.result(0);
    if (node.wants(1)) indices_ = node.result(1);
    const ConcreteType& type = node.wants(0) ? node.result(0).type : node.result(1).type;
    node.require(lines_.count() > 0 && elements(type.dims) % lines_.count() == 0);
    k_ = elements(type.dims) / lines_.count();
    node.require(k_ <= lines_.n && lines_.n < INT32_MAX);
    if (values_) node.require(values_->type.dtype == x_.type.dtype);
    if (indices_) node.require(indices_->type.dtype == DType::i64 && indices_->type.dims == type.dims);
    room_ = std::min(lines_.n, std::max<int64_t>(256, 4 * k_)) + kBlock;
  }
  bool serial() const override { return lines_.count() < 2 || lines_.count() * lines_.n < 2048; }
  size_t workspace_bytes() const override { return static_cast<size_t>(room_ * workers_) * sizeof(WideKey); }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    if (k_ == 0) return;
    const Share share = share_of(lines_.count(), worker, workers);
    visit(x_.type.dtype, [&]<typename T>() {
      auto* keys = reinterpret_cast<Key<T>*>(static_cast<WideKey*>(bindings.workspace) + worker * room_);
      for (int64_t line = share.begin; line < share.end; ++line) {
        const T* x = x_.as<T>(bindings) + lines_.start(line, lines_.n);
        rank(x, keys);
        write(line, x, keys, bindings);
      }
    });
  }

 private:
  static constexpr int64_t kBlock = 32;  // elements that are held against the bar at once

  /// A bit for each element that may be better than `bar`.
  template <typename T>
  uint32_t passing(const T* x, int64_t count, T bar) const {
    if constexpr (std::is_same_v<T, float>)
      if (lines_.inner == 1 && bar == bar) return (largest_ ? bars_.above : bars_.below)(x, count, bar);
    return one_beats(x, count, lines_.inner, bar, largest_) ? all_of(count) : 0;
  }
  static uint32_t all_of(int64_t count) { return ~uint32_t{0} >> (kBlock - count); }

  /// The best keys of a line, in order.
  template <typename T>
  void rank(const T* x, Key<T>* keys) const {
    const int64_t step = lines_.inner;
    Key<T> bar{};
    bool barred = false;
    int64_t count = 0;
    for (int64_t i = 0; i < lines_.n; i += kBlock) {
      const int64_t here = std::min(lines_.n - i, kBlock);
      uint32_t left = barred ? passing(x + i * step, here, x[place_of(bar) * step]) : all_of(here);
      for (; left != 0; left &= left - 1) {
        const int64_t j = i + std::countr_zero(left);
        keys[count] = key_of(x[j * step], j, largest_);
        count += !barred || keys[count] > bar ? 1 : 0;
      }
      if (count + kBlock <= room_) continue;
      std::nth_element(keys, keys + k_ - 1, keys + count, std::greater<>());
      count = k_, bar = keys[k_ - 1], barred = true;
    }
    if (count > k_) std::nth_element(keys, keys + k_ - 1, keys + count, std::greater<>());
    std::sort(keys, keys + k_, std::greater<>());
  }

  template <typename T>
  void write(int64_t line, const T* x, const Key<T>* keys, const Bindings& bindings) const {
    const int64_t start = lines_.start(line, k_);
    for (int64_t k = 0; k < k_; ++k) {
      const int64_t place = place_of(keys[k]);
      if (values_) values_->as<T>(bindings)[start + k * lines_.inner] = x[place * lines_.inner];
      if (indices_) indices_->as<int64_t>(bindings)[start + k * lines_.inner] = place;
    }
  }

  Lines lines_;
  int workers_;
  bool largest_;
  BarTests bars_;
  NodeOperand x_;
  std::optional<NodeResult> values_, indices_;
  int64_t k_ = 0, room_ = 0;
};

}  // namespace

std::shared_ptr<const CpuKernel> top_k(const Lines& lines, bool largest, const BoundNode& node, const CpuInfo& info) {
  return std::make_shared<TopK>(lines, largest, node, info);
}

}  // namespace hone::cpu
