// SPDX-License-Identifier: Apache-2.0
//
// The C interface to values that stand for themselves: what a network takes or gives that cannot be bound as memory.
#include <algorithm>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/tensor.h"

using hone::capi::guarded;
using hone::capi::require;

namespace {

hone::Dims dims_of(const int64_t* dims, int rank) {
  HONE_CHECK(rank >= 0 && rank <= HONE_MAX_RANK, "rank {} is out of range", rank);
  for (int i = 0; i < rank; ++i) HONE_CHECK(dims[i] >= 0, "size {} is negative", dims[i]);
  return hone::Dims(dims, dims + rank);
}

}  // namespace

hone_status hone_value_tensor(hone_dtype dtype, const int64_t* dims, int rank, const void* data, hone_value** value) {
  return guarded([&] {
    require(value, "value");
    const auto type = static_cast<hone::DType>(dtype);
    HONE_CHECK(dtype >= HONE_F32 && dtype < HONE_SEQUENCE && dtype != HONE_STRING, "element type {} has no bytes",
               static_cast<int>(dtype));
    hone::TensorBuilder builder(type, dims_of(dims, rank));
    const auto bytes = static_cast<size_t>(hone::byte_size(type, builder.dims()));
    if (bytes != 0) {
      require(data, "data");
      std::copy_n(static_cast<const std::byte*>(data), bytes, builder.bytes());
    }
    *value = new hone_value{builder.finish()};
  });
}

hone_status hone_value_strings(const int64_t* dims, int rank, const char* const* texts, const size_t* lengths,
                               hone_value** value) {
  return guarded([&] {
    require(value, "value");
    hone::Dims sizes = dims_of(dims, rank);
    std::vector<std::string> strings;
    for (int64_t i = 0; i < hone::elements(sizes); ++i) strings.emplace_back(texts[i], lengths[i]);
    *value = new hone_value{hone::Tensor::of_strings(std::move(sizes), std::move(strings))};
  });
}

hone_status hone_value_sequence(const hone_value* const* items, size_t count, hone_value** value) {
  return guarded([&] {
    require(value, "value");
    std::vector<hone::Tensor> tensors;
    for (size_t i = 0; i < count; ++i) tensors.push_back(items[i]->tensor);
    *value = new hone_value{hone::Tensor::of_items(hone::DType::sequence, std::move(tensors))};
  });
}

hone_status hone_value_optional(const hone_value* item, hone_value** value) {
  return guarded([&] {
    require(value, "value");
    std::vector<hone::Tensor> items;
    if (item != nullptr) items.push_back(item->tensor);
    *value = new hone_value{hone::Tensor::of_items(hone::DType::optional, std::move(items))};
  });
}

hone_status hone_value_map(const hone_value* keys, const hone_value* values, hone_value** value) {
  return guarded([&] {
    require(keys, "keys");
    require(values, "values");
    require(value, "value");
    *value = new hone_value{hone::Tensor::of_map(keys->tensor, values->tensor)};
  });
}

hone_status hone_value_describe(const hone_value* value, hone_tensor* tensor) {
  return guarded([&] {
    require(value, "value");
    require(tensor, "tensor");
    hone::capi::describe({}, value->tensor.type(), false, tensor);
    tensor->name = nullptr;
    tensor->by_value = 1;
    if (hone::is_container(value->tensor.dtype()))
      hone::capi::copy_dims({static_cast<int64_t>(value->tensor.items().size())}, tensor->dims, &tensor->rank);
  });
}

const void* hone_value_data(const hone_value* value) {
  return value == nullptr || hone::is_object(value->tensor.dtype()) ? nullptr : value->tensor.bytes().data();
}

hone_status hone_value_string(const hone_value* value, size_t index, const char** text, size_t* length) {
  return guarded([&] {
    require(value, "value");
    HONE_CHECK(value->tensor.dtype() == hone::DType::string, "the value is {}, not string",
               hone::name_of(value->tensor.dtype()));
    const std::vector<std::string>& strings = value->tensor.strings();
    HONE_CHECK(index < strings.size(), "string {} is asked for, there are {}", index, strings.size());
    *text = strings[index].c_str();
    *length = strings[index].size();
  });
}

hone_status hone_value_item(const hone_value* value, size_t index, hone_value** item) {
  return guarded([&] {
    require(value, "value");
    const std::vector<hone::Tensor>& items = value->tensor.items();
    HONE_CHECK(index < items.size(), "item {} is asked for, there are {}", index, items.size());
    *item = new hone_value{items[index]};
  });
}

void hone_value_destroy(hone_value* value) { delete value; }

hone_status hone_context_set_value(hone_context* context, const char* input, const hone_value* value) {
  return guarded([&] {
    require(context, "context");
    require(value, "value");
    context->context->set_value(input, value->tensor);
  });
}

hone_status hone_context_value(hone_context* context, const char* output, hone_value** value) {
  return guarded([&] {
    require(context, "context");
    require(value, "value");
    *value = new hone_value{context->context->value(output)};
  });
}

hone_status hone_context_debug_value(const hone_context* context, const char* tensor, hone_value** value) {
  return guarded([&] {
    require(context, "context");
    require(tensor, "tensor");
    require(value, "value");
    *value = new hone_value{context->context->debug_value(tensor)};
  });
}
