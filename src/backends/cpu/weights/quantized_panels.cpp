// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/weights/quantized_panels.h"

#include <algorithm>
#include <cstring>

namespace hone::cpu {
namespace {

class PanelWriter {
 public:
  PanelWriter(const QuantizedWeights& weights, const QuantizedFormat& format, int64_t panel)
      : w_(weights), f_(format), panel_(panel) {}

  /// Returns where the next panels go.
  std::byte* write(std::byte* to) {
    to_ = to;
    for (first_ = 0; first_ < w_.n; first_ += panel_)
      for (int64_t block = 0; block < f_.blocks(); ++block) write_block(block);
    return to_;
  }

 private:
  template <typename T>
  void put(T value) {
    std::memcpy(to_, &value, sizeof value);
    to_ += sizeof value;
  }
  template <typename Body>
  void each_column(Body&& body) const {
    for (int64_t j = first_; j < first_ + panel_; ++j) body(j);
  }

  void write_block(int64_t block) {
    const auto of = [&](const std::vector<float>& values, int64_t j) {
      return j < w_.n ? values[static_cast<size_t>(block * w_.n + j)] : 0.0F;
    };
    each_column([&](int64_t j) { put(of(w_.scales, j) * f_.scale_factor()); });
    const auto zero = [&](int64_t j) { return w_.zeros.empty() ? 0 : of(w_.zeros, j); };
    if (f_.zeros == ZeroPoints::bytes) each_column([&](int64_t j) { put(static_cast<int8_t>(zero(j))); });
    if (f_.zeros == ZeroPoints::floats) each_column([&](int64_t j) { put(zero(j)); });
    const int64_t begin = block * f_.block, end = std::min(begin + f_.block, f_.k);
    for (int64_t p = begin; p < end; p += QuantizedFormat::kUnit) write_unit(p, end);
  }

  void write_unit(int64_t begin, int64_t end) {
    const auto code = [&](int64_t i, int64_t j) {
      const bool given = begin + i < end && j < w_.n;
      return given ? w_.codes[static_cast<size_t>((begin + i) * w_.n + j)] : int8_t{0};
    };
    if (f_.bits == 8) {
      for (int64_t i = 0; i < QuantizedFormat::kUnit; ++i) each_column([&](int64_t j) { put(code(i, j)); });
      return;
    }
    each_column([&](int64_t j) {
      uint32_t word = 0;
      for (int64_t i = 0; i < QuantizedFormat::kUnit; ++i)
        word |= static_cast<uint32_t>(code(i, j) + QuantizedFormat::kMiddle) << (4 * QuantizedFormat::place(i));
      put(word);
    });
  }

  const QuantizedWeights& w_;
  const QuantizedFormat f_;
  const int64_t panel_;
  int64_t first_ = 0;
  std::byte* to_ = nullptr;
};

}  // namespace

std::byte* write_panels(const QuantizedWeights& weights, const QuantizedFormat& format, int64_t panel, std::byte* to) {
  return PanelWriter(weights, format, panel).write(to);
}

}  // namespace hone::cpu
