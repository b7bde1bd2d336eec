// SPDX-License-Identifier: Apache-2.0
//
// A tensor as layer information describes it, and what its words mean: Hone writes "Half", NVIDIA's releases write
// "Row major linear FP16 format" and some forty more sentences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

struct ElementWord {
  std::string name;  // "FP32", "INT8", …; the words as they stand where the type is not known
  int bits = 0;      // of an element; 0: not known
};
ElementWord element_word(std::string_view format);

struct TensorRow {
  std::string name, format;  // format: the words of the file, with Hone's layout behind them
  ElementWord element;
  std::vector<int64_t> dims;

  /// Elements; 0 where a size is dynamic (-1).
  int64_t count() const;
  int64_t bytes() const { return (count() * element.bits + 7) / 8; }
};

/// Whether it numbers or marks other data and is not what a layer computes in.
bool is_index(const ElementWord& element);
bool is_integer(const ElementWord& element);

}  // namespace hone
