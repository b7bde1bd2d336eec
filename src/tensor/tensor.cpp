// SPDX-License-Identifier: Apache-2.0
//
// Tensor types, layouts and host tensors.
#include "tensor/tensor.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/numbers.h"
#include "base/state_error.h"
#include "tensor/free_memory.h"

namespace hone {
namespace {

struct LayoutTraits {
  std::string_view name;
  int64_t block;
  bool blocked, channels_last;
};
constexpr LayoutTraits kLayouts[] = {
    {"linear", 1, false, false},    {"channels_last", 1, false, true},  {"blocked8", 8, true, false},
    {"blocked16", 16, true, false}, {"blocked2", 2, true, false},       {"blocked4", 4, true, false},
    {"blocked32", 32, true, false}, {"channels_last8", 8, false, true}, {"channels_last16", 16, false, true},
};
const LayoutTraits& traits(Layout layout) { return kLayouts[static_cast<size_t>(layout)]; }

}  // namespace

std::string_view name_of(Layout layout) { return traits(layout).name; }
int64_t channel_block(Layout layout) { return traits(layout).block; }
bool is_blocked(Layout layout) { return traits(layout).blocked; }
bool is_channels_last(Layout layout) { return traits(layout).channels_last; }

std::optional<Layout> parse_layout(std::string_view name) {
  for (size_t i = 0; i < std::size(kLayouts); ++i)
    if (kLayouts[i].name == name) return static_cast<Layout>(i);
  return std::nullopt;
}

bool operator==(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.ranked != b.ranked || a.shape != b.shape || a.layout != b.layout) return false;
  if (a.dtype == DType::map && a.key != b.key) return false;
  return a.element == b.element || (a.element != nullptr && b.element != nullptr && *a.element == *b.element);
}

TensorType unranked(DType dtype) {
  TensorType type;
  type.dtype = dtype;
  type.ranked = false;
  return type;
}

TensorType container_of(DType kind, TensorType element) {
  TensorType type;
  type.dtype = kind;
  type.element = std::make_shared<const TensorType>(std::move(element));
  return type;
}

TensorType map_of(DType key, DType value) {
  TensorType type = container_of(DType::map, {value, {}});
  type.key = key;
  return type;
}

std::string TensorType::text() const {
  if (dtype == DType::map && element != nullptr) return fmt::format("map<{},{}>", name_of(key), element->text());
  if (element != nullptr) return fmt::format("{}<{}>", name_of(dtype), element->text());
  if (!ranked) return fmt::format("{}[*]", name_of(dtype));
  std::string result = fmt::format("{}[{}]", name_of(dtype), shape.text());
  if (layout != Layout::linear) result += fmt::format("@{}", name_of(layout));
  return result;
}

int64_t byte_size(DType dtype, std::span<const int64_t> dims, Layout layout) {
  const int64_t block = channel_block(layout);
  int64_t count = static_cast<int64_t>(size_of(dtype));
  for (size_t i = 0; i < dims.size(); ++i)
    count = checked_multiply(count, i == 1 && block > 1 ? round_up(dims[i], block) : dims[i]);
  return count;
}

bool same_bytes(std::span<const int64_t> dims, Layout a, Layout b) {
  if (a == b) return true;
  if (dims.size() < 3) return channel_block(a) == channel_block(b);
  const int64_t channels = dims[1], area = elements(dims.subspan(2));
  const auto unpadded = [&](Layout layout) { return channels % channel_block(layout) == 0; };
  const auto flat = [&](Layout layout) {  // equal to N,C,area in row-major order
    if (layout == Layout::linear) return true;
    return unpadded(layout) && (area == 1 || (is_channels_last(layout) && channels == 1));
  };
  if (flat(a) && flat(b)) return true;
  const auto last = [&](Layout layout) {  // equal to N,area,C in row-major order
    return unpadded(layout) && (is_channels_last(layout) || (is_blocked(layout) && channels == channel_block(layout)));
  };
  return last(a) && last(b);
}

Dims layout_strides(std::span<const int64_t> dims, Layout layout) {
  Dims strides = strides_of(dims);
  if (layout == Layout::linear || dims.size() < 3) return strides;
  HONE_ASSERT(is_channels_last(layout), "layout {} has no plain strides", name_of(layout));
  strides[1] = 1;
  int64_t stride = round_up(dims[1], channel_block(layout));
  for (size_t i = dims.size(); i-- > 2; stride *= dims[i]) strides[i] = stride;
  strides[0] = stride;
  return strides;
}

Tensor::Tensor(DType dtype, Dims dims, Blob bytes) : dtype_(dtype), dims_(std::move(dims)), bytes_(std::move(bytes)) {
  const int64_t expected = byte_size(dtype_, dims_);
  HONE_CHECK(static_cast<int64_t>(bytes_.size()) == expected, "a tensor {}[{}] needs {} bytes but has {}",
             name_of(dtype_), join_dims(dims_, ","), expected, bytes_.size());
}

Tensor Tensor::of_strings(Dims dims, std::vector<std::string> values) {
  HONE_CHECK(elements(dims) == static_cast<int64_t>(values.size()), "a string tensor [{}] needs {} strings but has {}",
             join_dims(dims, ","), elements(dims), values.size());
  Tensor tensor;
  tensor.dtype_ = DType::string;
  tensor.dims_ = std::move(dims);
  tensor.strings_ = std::make_shared<const std::vector<std::string>>(std::move(values));
  return tensor;
}

Tensor Tensor::of_items(DType kind, std::vector<Tensor> items) {
  HONE_ASSERT(is_container(kind), "{} holds no items", name_of(kind));
  Tensor tensor;
  tensor.dtype_ = kind;
  tensor.dims_ = {};
  tensor.items_ = std::make_shared<const std::vector<Tensor>>(std::move(items));
  return tensor;
}

namespace {

/// Positions in ascending order of their keys; of equal keys the last.
std::vector<size_t> order_of_keys(const Tensor& keys) {
  std::vector<size_t> order(static_cast<size_t>(keys.size()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto arrange = [&](const auto& key) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key[a] < key[b]; });
    const auto last = std::unique(order.rbegin(), order.rend(), [&](size_t a, size_t b) { return key[a] == key[b]; });
    order.erase(order.begin(), last.base());
  };
  if (keys.dtype() == DType::string) arrange(keys.strings());
  else arrange(keys.data<int64_t>());
  return order;
}

Tensor chosen(const Tensor& list, const std::vector<size_t>& order) {
  const Dims dims{static_cast<int64_t>(order.size())};
  if (list.dtype() == DType::string) {
    std::vector<std::string> strings;
    for (const size_t i : order) strings.push_back(list.strings()[i]);
    return Tensor::of_strings(dims, std::move(strings));
  }
  TensorBuilder builder(list.dtype(), dims);
  const size_t size = size_of(list.dtype());
  for (size_t i = 0; i < order.size(); ++i)
    std::memcpy(builder.bytes() + i * size, list.bytes().data() + order[i] * size, size);
  return builder.finish();
}

}  // namespace

Tensor Tensor::of_map(const Tensor& keys, const Tensor& values) {
  HONE_CHECK(keys.dtype() == DType::i64 || keys.dtype() == DType::string, "keys of maps are i64 or string, not {}",
             name_of(keys.dtype()));
  HONE_CHECK(!is_container(values.dtype()), "values of maps are single elements, not a {}", name_of(values.dtype()));
  HONE_CHECK(keys.dims().size() == 1 && values.dims() == keys.dims(),
             "a map is made of two lists of one length; the keys are [{}], the values [{}]",
             join_dims(keys.dims(), ","), join_dims(values.dims(), ","));
  const std::vector<size_t> order = order_of_keys(keys);
  return of_items(DType::map, {chosen(keys, order), chosen(values, order)});
}

bool holds_elements_of(const TensorType& type, const Tensor& value) {
  if (value.dtype() != type.dtype) return false;
  if (!is_container(type.dtype)) return true;
  const std::vector<Tensor>& items = value.items();
  if (type.dtype == DType::map) return items[0].dtype() == type.key && items[1].dtype() == type.element->dtype;
  return std::all_of(items.begin(), items.end(),
                     [&](const Tensor& item) { return holds_elements_of(*type.element, item); });
}

const std::vector<Tensor>& Tensor::items() const {
  HONE_CHECK(items_ != nullptr, "a {} tensor is used where a sequence, an optional or a map is needed",
             name_of(dtype_));
  return *items_;
}

TensorType Tensor::type() const {
  if (items_ == nullptr) return {dtype_, Shape(dims_), Layout::linear};
  if (dtype_ == DType::map) return map_of(items_->at(0).dtype(), items_->at(1).dtype());
  return container_of(dtype_, items_->empty() ? unranked(DType::f32) : items_->front().type());
}

const std::vector<std::string>& Tensor::strings() const {
  HONE_ASSERT(strings_ != nullptr, "tensor is {}, not string", name_of(dtype_));
  return *strings_;
}

Tensor Tensor::reshaped(Dims dims) const {
  HONE_CHECK(elements(dims) == size(), "cannot reshape [{}] to [{}]", join_dims(dims_, ","), join_dims(dims, ","));
  Tensor result = *this;
  result.dims_ = std::move(dims);
  return result;
}

static void check_index(const Tensor& tensor, int64_t i) {
  HONE_CHECK(i >= 0 && i < tensor.size(), "element {} of a tensor [{}] is read", i, join_dims(tensor.dims(), ","));
}

int64_t Tensor::integer(int64_t i) const {
  check_index(*this, i);
  if (is_small(dtype_)) return saturated<int64_t>(small_to_float(dtype_, codes()[static_cast<size_t>(i)]));
  return visit(dtype_, [&]<typename T>() {
    const T value = data<T>()[static_cast<size_t>(i)];
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>)
      return saturated<int64_t>(static_cast<float>(value));
    else if constexpr (std::is_floating_point_v<T>) return saturated<int64_t>(value);
    else return static_cast<int64_t>(value);
  });
}

double Tensor::real(int64_t i) const {
  check_index(*this, i);
  if (is_small(dtype_)) return static_cast<double>(small_to_float(dtype_, codes()[static_cast<size_t>(i)]));
  return visit(dtype_, [&]<typename T>() {
    const T value = data<T>()[static_cast<size_t>(i)];
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>)
      return static_cast<double>(static_cast<float>(value));
    else return static_cast<double>(value);
  });
}

std::vector<int64_t> Tensor::integers() const {
  std::vector<int64_t> values(static_cast<size_t>(size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = integer(static_cast<int64_t>(i));
  return values;
}

static AlignedBuffer memory_for(DType dtype, const Dims& dims) {
  require_memory(dtype, dims);
  const auto bytes = static_cast<size_t>(byte_size(dtype, dims));
  try {
    return AlignedBuffer(bytes);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(
        fmt::format("there is no memory for a tensor {}[{}] of {} bytes", name_of(dtype), join_dims(dims, ","), bytes),
        "use a smaller batch or smaller shapes");
  }
}

TensorBuilder::TensorBuilder(DType dtype, Dims dims)
    : dtype_(dtype), dims_(std::move(dims)), buffer_(memory_for(dtype_, dims_)) {}

}  // namespace hone
