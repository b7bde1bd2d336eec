// SPDX-License-Identifier: Apache-2.0
//
// Unique of elements: each is looked up in a table of those before it, and only what is unique is sorted. NaNs are one value, behind all
// numbers.
#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "backends/cpu/host/rules.h"

namespace hone::cpu {
namespace {

/// Bits that are the same where values are.
template <typename T>
uint64_t bits_of(T value) {
  if constexpr (std::is_integral_v<T>) return static_cast<uint64_t>(value);
  else {
    if (value != value) return ~uint64_t{0};
    const T plain = value == 0 ? T(0) : value;  // not minus zero
    std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t> bits;
    std::memcpy(&bits, &plain, sizeof bits);
    return bits;
  }
}

template <typename T>
bool before(T a, T b) {
  return a < b || (b != b && a == a);
}

/// In the order of their first appearance: where each value is first and how often it is there; of each element its value's number.
struct Groups {
  std::vector<int64_t> first, counts, of;
};

template <typename T>
Groups groups_of(std::span<const T> x) {
  Groups groups;
  groups.of.resize(x.size());
  const size_t slots = std::bit_ceil(2 * x.size() + 1);
  const int shift = 64 - std::countr_zero(slots);
  std::vector<int64_t> table(slots, -1);
  for (size_t i = 0; i < x.size(); ++i) {
    const uint64_t bits = bits_of(x[i]);
    size_t slot = slots == 1 ? 0 : static_cast<size_t>((bits * 0x9e3779b97f4a7c15U) >> shift);
    while (table[slot] >= 0 && bits_of(x[static_cast<size_t>(groups.first[static_cast<size_t>(table[slot])])]) != bits)
      slot = (slot + 1) & (slots - 1);
    if (table[slot] < 0) {
      table[slot] = static_cast<int64_t>(groups.first.size());
      groups.first.push_back(static_cast<int64_t>(i));
      groups.counts.push_back(0);
    }
    groups.of[i] = table[slot];
    ++groups.counts[static_cast<size_t>(table[slot])];
  }
  return groups;
}

template <typename T>
void unique(std::span<const T> x, bool sorted, const HostResults& results) {
  const Groups groups = groups_of(x);
  const auto count = static_cast<int64_t>(groups.first.size());
  const auto at = [](const auto& list, int64_t i) { return list[static_cast<size_t>(i)]; };
  std::vector<int64_t> order(groups.first.size());
  std::iota(order.begin(), order.end(), 0);
  if (sorted)
    std::ranges::sort(
        order, [&](int64_t a, int64_t b) { return before(at(x, at(groups.first, a)), at(x, at(groups.first, b))); });
  if (results.wants(0))
    std::ranges::transform(order, results.write<T>(0, {count}).begin(),
                           [&](int64_t g) { return at(x, at(groups.first, g)); });
  if (results.wants(1))
    std::ranges::transform(order, results.write<int64_t>(1, {count}).begin(),
                           [&](int64_t g) { return at(groups.first, g); });
  if (results.wants(2)) {
    std::vector<int64_t> rank(order.size());
    for (size_t i = 0; i < order.size(); ++i) rank[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    std::ranges::transform(groups.of, results.write<int64_t>(2, {static_cast<int64_t>(x.size())}).begin(),
                           [&](int64_t g) { return at(rank, g); });
  }
  if (results.wants(3))
    std::ranges::transform(order, results.write<int64_t>(3, {count}).begin(),
                           [&](int64_t g) { return at(groups.counts, g); });
}

}  // namespace

void run_unique(const Node& node, HostOperands operands, const HostResults& results) {
  const Tensor& x = *operands[0];
  visit(x.dtype(), [&]<typename T>() {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int8_t> ||
                  std::is_same_v<T, uint8_t> || std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>)
      unique<T>(x.data<T>(), node.attrs.integer("sorted") != 0, results);
  });
}

}  // namespace hone::cpu
