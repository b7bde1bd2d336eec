// SPDX-License-Identifier: Apache-2.0
//
// The C interface to values that stand for themselves: what a network takes or gives that cannot be bound as memory.
#include <algorithm>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/tensor.h"

using hone::capi::ArgumentError;
using hone::capi::dims_of;
using hone::capi::guarded;
using hone::capi::require;
using hone::capi::require_index;

hone_status hone_value_create_tensor(hone_dtype dtype, const int64_t* dims, int rank, const void* data,
                                     hone_value** value) {
  return guarded([&] {
    require(value, "value");
    const auto type = static_cast<hone::DType>(dtype);
    if (dtype < HONE_F32 || dtype >= HONE_SEQUENCE || dtype == HONE_STRING)
      throw ArgumentError(fmt::format("dtype {} has no bytes", static_cast<int>(dtype)));
    hone::TensorBuilder builder(type, dims_of(dims, rank));
    const auto bytes = static_cast<size_t>(hone::byte_size(type, builder.dims()));
    if (bytes != 0) {
      require(data, "data");
      std::copy_n(static_cast<const std::byte*>(data), bytes, builder.bytes());
    }
    *value = new hone_value(builder.finish());
  });
}

hone_status hone_value_create_strings(const int64_t* dims, int rank, const char* const* texts, const size_t* lengths,
                                      hone_value** value) {
  return guarded([&] {
    require(value, "value");
    hone::Dims sizes = dims_of(dims, rank);
    std::vector<std::string> strings;
    const int64_t count = hone::elements(sizes);
    if (count > 0) {
      require(texts, "texts");
      require(lengths, "lengths");
    }
    for (int64_t i = 0; i < count; ++i) {
      require(texts[i], "a text");
      strings.emplace_back(texts[i], lengths[i]);
    }
    *value = new hone_value(hone::Tensor::of_strings(std::move(sizes), std::move(strings)));
  });
}

hone_status hone_value_create_sequence(const hone_value* const* items, size_t count, hone_value** value) {
  return guarded([&] {
    require(value, "value");
    std::vector<hone::Tensor> tensors;
    if (count > 0) require(items, "items");
    for (size_t i = 0; i < count; ++i) {
      require(items[i], "an item");
      tensors.push_back(items[i]->tensor);
    }
    *value = new hone_value(hone::Tensor::of_items(hone::DType::sequence, std::move(tensors)));
  });
}

hone_status hone_value_create_optional(const hone_value* item, hone_value** value) {
  return guarded([&] {
    require(value, "value");
    std::vector<hone::Tensor> items;
    if (item != nullptr) {
      require(item, "item");
      items.push_back(item->tensor);
    }
    *value = new hone_value(hone::Tensor::of_items(hone::DType::optional, std::move(items)));
  });
}

hone_status hone_value_create_map(const hone_value* keys, const hone_value* values, hone_value** value) {
  return guarded([&] {
    require(keys, "keys");
    require(values, "values");
    require(value, "value");
    *value = new hone_value(hone::Tensor::of_map(keys->tensor, values->tensor));
  });
}

hone_status hone_value_describe(const hone_value* value, hone_tensor* tensor) {
  return guarded([&] {
    require(value, "value");
    const bool container = hone::is_container(value->tensor.dtype());
    const hone::Dims items{container ? static_cast<int64_t>(value->tensor.items().size()) : 0};
    hone::capi::describe({}, value->tensor.type(), false, true, tensor, container ? &items : nullptr);
  });
}

const void* hone_value_data(const hone_value* value) {
  const void* data = nullptr;
  guarded([&] {
    require(value, "value");
    if (!hone::is_object(value->tensor.dtype())) data = value->tensor.bytes().data();
  });
  return data;
}

hone_status hone_value_string(const hone_value* value, size_t index, const char** text, size_t* length) {
  return guarded([&] {
    require(value, "value");
    require(text, "text");
    require(length, "length");
    if (value->tensor.dtype() != hone::DType::string)
      throw ArgumentError(fmt::format("the value is {}, not string", hone::name_of(value->tensor.dtype())));
    const std::vector<std::string>& strings = value->tensor.strings();
    require_index(index, strings.size(), "string");
    *text = strings[index].c_str();
    *length = strings[index].size();
  });
}

hone_status hone_value_create_from_item(const hone_value* value, size_t index, hone_value** item) {
  return guarded([&] {
    require(value, "value");
    require(item, "item");
    if (!hone::is_container(value->tensor.dtype()))
      throw ArgumentError(fmt::format("the value is {}, which has no items", hone::name_of(value->tensor.dtype())));
    const std::vector<hone::Tensor>& items = value->tensor.items();
    require_index(index, items.size(), "item");
    *item = new hone_value(items[index]);
  });
}

void hone_value_destroy(hone_value* value) { hone::capi::destroy(value, "value"); }
