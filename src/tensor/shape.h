// SPDX-License-Identifier: Apache-2.0
//
// Shape: the sizes of a tensor, some of them possibly symbolic. Dims: the same with every size known.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dim.h"

namespace hone {

using Dims = std::vector<int64_t>;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  explicit Shape(std::span<const int64_t> dims) : dims_(dims.begin(), dims.end()) {}

  size_t rank() const { return dims_.size(); }
  const Dim& operator[](size_t i) const { return dims_[i]; }
  Dim& operator[](size_t i) { return dims_[i]; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  void push_back(Dim dim) { dims_.push_back(std::move(dim)); }
  const std::vector<Dim>& dims() const { return dims_; }

  bool is_static() const;
  Dim elements() const;  ///< product of all sizes; 1 for rank 0
  Dims values() const;   ///< throws InternalError when symbolic
  Dims evaluate(const SymbolValues& values) const;
  Shape substitute(const SymbolValues& values) const;
  /// "2,N,3" (no brackets).
  std::string text() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<Dim> dims_;
};

/// Checked product; 1 for an empty list.
int64_t elements(std::span<const int64_t> dims);
/// Row-major strides in elements.
Dims strides_of(std::span<const int64_t> dims);
/// "4x3x224x224", the command line's form.
std::string join_dims(std::span<const int64_t> dims, std::string_view separator = "x");
/// ONNX axis (may be negative) to an index below `rank`; throws Error when out of range.
size_t normalize_axis(int64_t axis, size_t rank);

}  // namespace hone
