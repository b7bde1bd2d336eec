// SPDX-License-Identifier: Apache-2.0
#include "report/tensors.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>

#include "base/text.h"
#include "report/text.h"

namespace hone {
namespace {

/// Element offset of a logical index; blocked layouts hold block, sizes behind the channel, then the channel in the block.
int64_t offset_of(std::span<const int64_t> dims, std::span<const int64_t> index, Layout layout, std::span<const int64_t> strides) {
  int64_t offset = 0;
  if (layout == Layout::linear || layout == Layout::channels_last) {
    for (size_t i = 0; i < dims.size(); ++i) offset += index[i] * strides[i];
    return offset;
  }
  const int64_t block = layout == Layout::blocked8 ? 8 : 16;
  offset = index[0] * ((dims[1] + block - 1) / block) + index[1] / block;
  for (size_t i = 2; i < dims.size(); ++i) offset = offset * dims[i] + index[i];
  return offset * block + index[1] % block;
}

void for_each_offset(const BoundTensor& tensor, const std::function<void(int64_t offset)>& body) {
  const bool blocked = tensor.layout == Layout::blocked8 || tensor.layout == Layout::blocked16;
  const Dims strides = blocked ? Dims() : layout_strides(tensor.dims, tensor.layout);
  const int64_t count = elements(tensor.dims);
  Dims index(tensor.dims.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    body(offset_of(tensor.dims, index, tensor.layout, strides));
    for (size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < tensor.dims[axis]) break;
      index[axis] = 0;
    }
  }
}

template <typename Spell>
void for_each_value(const BoundTensor& tensor, Spell&& spell) {
  visit(tensor.dtype, [&]<typename T>() {
    for_each_offset(tensor, [&](int64_t offset) {
      T value;
      std::memcpy(&value, tensor.bytes.data() + static_cast<size_t>(offset) * sizeof(T), sizeof(T));
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) spell(static_cast<float>(value));
      else spell(value);
    });
  });
}

}  // namespace

std::string values_line(const BoundTensor& tensor) {
  std::string text;
  for_each_value(tensor, [&](auto value) {
    if (!text.empty()) text += ' ';
    if constexpr (std::is_floating_point_v<decltype(value)>) fmt::format_to(std::back_inserter(text), "{:g}", value);
    else fmt::format_to(std::back_inserter(text), "{:d}", value);
  });
  return text;
}

std::string outputs_json(std::span<const BoundTensor> outputs) {
  std::string text = "[\n";
  for (size_t i = 0; i < outputs.size(); ++i) {
    const BoundTensor& tensor = outputs[i];
    text += fmt::format("{} {{ \"name\" : {}\n  , \"dimensions\" : \"{}\"\n  , \"values\" : [ ", i == 0 ? " " : ",", json_text(tensor.name), join_dims(tensor.dims));
    bool first = true;
    for_each_value(tensor, [&](auto value) {
      if (!first) text += ", ";
      first = false;
      if constexpr (std::is_floating_point_v<decltype(value)>) text += json_number(value);
      else fmt::format_to(std::back_inserter(text), "{:d}", value);
    });
    text += " ]\n  }\n";
  }
  return text + "]\n";
}

static std::string raw_name(const BoundTensor& tensor, std::string_view number) {
  std::string name = fmt::format("{}{}.{}.{}.{}.raw", tensor.name, number, tensor.is_input ? "input" : "output", join_dims(tensor.dims, "."), type_word(tensor.dtype));
  std::ranges::replace_if(name, [](unsigned char c) { return !std::isalnum(c) && std::string_view("._-,").find(static_cast<char>(c)) == std::string_view::npos; }, '_');
  return name;
}

std::string raw_file_name(const BoundTensor& tensor) { return raw_name(tensor, ""); }

std::vector<std::string> raw_file_names(std::span<const BoundTensor> tensors) {
  std::vector<std::string> names;
  for (const BoundTensor& tensor : tensors) {
    std::string name = raw_file_name(tensor);
    for (int number = 2; std::ranges::find(names, name) != names.end(); ++number) name = raw_name(tensor, fmt::format("_{}", number));
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace hone
