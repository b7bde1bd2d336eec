// SPDX-License-Identifier: Apache-2.0
//
// TensorType: what a value is (element type, logical shape, how its bytes lie). Tensor: host data in linear layout.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hone {

/// How the bytes of a tensor lie. Shapes are always the logical (ONNX) ones.
/// linear: row-major. channels_last: N,(D,)H,W,C for logical N,C,(D,)H,W. blockedB: N,C/B,H,W,B; channels_lastB: N,H,W,C;
/// both with C padded to a multiple of B by zeros. Kernels use the first four; the others are for network inputs and outputs.
enum class Layout : uint8_t {
  linear,
  channels_last,
  blocked8,
  blocked16,
  blocked2,
  blocked4,
  blocked32,
  channels_last8,
  channels_last16
};
std::string_view name_of(Layout layout);
std::optional<Layout> parse_layout(std::string_view name);
/// What the number of channels is padded to a multiple of; 1 for linear and channels_last.
int64_t channel_block(Layout layout);
bool is_blocked(Layout layout);
bool is_channels_last(Layout layout);

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  Layout layout = Layout::linear;
  bool ranked = true;                              // false: only a run tells how many sizes there are
  std::shared_ptr<const TensorType> element = {};  // of sequences and optionals; of maps: one value
  DType key = DType::i64;                          // of maps: i64 or string

  /// "f32[2,N,8]", with "@channels_last" behind when not linear; "f32[*]" without rank; "sequence<f32[2,3]>";
  /// "map<string,f32[]>".
  std::string text() const;
  friend bool operator==(const TensorType& a, const TensorType& b);
};
/// A tensor of which only the element type is known.
TensorType unranked(DType dtype);
/// A sequence or optional (`kind`) of such elements.
TensorType container_of(DType kind, TensorType element);
/// A map from integers or strings (`key`) to single values.
TensorType map_of(DType key, DType value);

/// Bytes that a tensor of these sizes takes in this layout (blocked layouts pad the channels).
int64_t byte_size(DType dtype, std::span<const int64_t> dims, Layout layout = Layout::linear);
/// Whether two layouts put the same bytes in the same places for these sizes (for example N,C,1,1).
bool same_bytes(std::span<const int64_t> dims, Layout a, Layout b);
/// Strides in elements of the logical axes; not for blocked layouts, which have none.
Dims layout_strides(std::span<const int64_t> dims, Layout layout);

/// Immutable host tensor, linear layout; copying shares the bytes. String tensors hold `strings` instead; sequences (any
/// number) and optionals (none or one) hold tensors as `items`; maps two lists of one length: keys, each once and ascending, and
/// values.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Dims dims, Blob bytes);
  /// Uninitialised writable memory goes through TensorBuilder below; these are for constants.
  template <typename T>
  static Tensor of(Dims dims, std::span<const T> values) {
    return Tensor(dtype_of<T>(), std::move(dims), Blob::copy(std::as_bytes(values)));
  }
  template <typename T>
  static Tensor of(Dims dims, std::initializer_list<T> values) {
    return of<T>(std::move(dims), std::span<const T>(values.begin(), values.size()));
  }
  template <typename T>
  static Tensor scalar(T value) {
    return of<T>({}, std::span<const T>(&value, 1));
  }
  static Tensor of_strings(Dims dims, std::vector<std::string> values);
  static Tensor of_items(DType kind, std::vector<Tensor> items);
  /// Of a key that is given several times the last value stays. Throws Error when the lists are no such lists.
  static Tensor of_map(const Tensor& keys, const Tensor& values);

  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int64_t size() const { return elements(dims_); }
  const Blob& blob() const { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_.bytes(); }
  const std::vector<std::string>& strings() const;
  const std::vector<Tensor>& items() const;
  TensorType type() const;
  /// The same bytes under other sizes with the same count.
  Tensor reshaped(Dims dims) const;

  template <typename T>
  std::span<const T> data() const {
    HONE_ASSERT(dtype_ == dtype_of<T>(), "tensor is {}, not {}", name_of(dtype_), name_of(dtype_of<T>()));
    return {reinterpret_cast<const T*>(bytes_.data()), static_cast<size_t>(size())};
  }
  /// The codes of a small kind.
  std::span<const uint8_t> codes() const { return {reinterpret_cast<const uint8_t*>(bytes_.data()), bytes_.size()}; }
  /// Element `i` converted; for small tensors such as axes and shapes. Throws for strings.
  int64_t integer(int64_t i) const;
  double real(int64_t i) const;
  std::vector<int64_t> integers() const;

 private:
  DType dtype_ = DType::f32;
  Dims dims_{0};
  Blob bytes_;
  std::shared_ptr<const std::vector<std::string>> strings_;
  std::shared_ptr<const std::vector<Tensor>> items_;
};

/// Whether a value is of this type as far as the elements go, those of containers included; sizes are not compared.
bool holds_elements_of(const TensorType& type, const Tensor& value);

/// Writable tensor under construction; `finish` makes it immutable.
class TensorBuilder {
 public:
  TensorBuilder(DType dtype, Dims dims);
  template <typename T>
  std::span<T> data() {
    HONE_ASSERT(dtype_ == dtype_of<T>(), "tensor is {}, not {}", name_of(dtype_), name_of(dtype_of<T>()));
    return {reinterpret_cast<T*>(buffer_.data()), static_cast<size_t>(elements(dims_))};
  }
  std::byte* bytes() { return buffer_.data(); }
  /// The codes of a small kind.
  std::span<uint8_t> codes() { return {reinterpret_cast<uint8_t*>(buffer_.data()), buffer_.size()}; }
  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  Tensor finish() { return Tensor(dtype_, std::move(dims_), Blob::own(std::move(buffer_))); }

 private:
  DType dtype_;
  Dims dims_;
  AlignedBuffer buffer_;
};

/// Calls `body.template operator()<T>()` with the C++ type of a numeric dtype (f16/bf16 as Half/BFloat, bool as bool).
/// The small kinds have none: their codes are bytes, and values go through small_to_float().
template <typename Body>
decltype(auto) visit(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f32: return body.template operator()<float>();
    case DType::f16: return body.template operator()<Half>();
    case DType::bf16: return body.template operator()<BFloat>();
    case DType::f64: return body.template operator()<double>();
    case DType::i8: return body.template operator()<int8_t>();
    case DType::u8: return body.template operator()<uint8_t>();
    case DType::i16: return body.template operator()<int16_t>();
    case DType::u16: return body.template operator()<uint16_t>();
    case DType::i32: return body.template operator()<int32_t>();
    case DType::u32: return body.template operator()<uint32_t>();
    case DType::i64: return body.template operator()<int64_t>();
    case DType::u64: return body.template operator()<uint64_t>();
    case DType::boolean: return body.template operator()<bool>();
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1:
    case DType::i4:
    case DType::u4:
    case DType::i2:
    case DType::u2:
    case DType::string:
    case DType::sequence:
    case DType::optional:
    case DType::map: break;
  }
  throw Error(fmt::format("a {} tensor is used where plain numbers are needed", name_of(dtype)));
}

}  // namespace hone
