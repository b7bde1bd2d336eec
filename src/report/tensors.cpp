// SPDX-License-Identifier: Apache-2.0
#include "report/tensors.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "report/text.h"
#include "tensor/layout.h"

namespace hone {
namespace {

template <typename Spell>
void for_each_value(const BoundTensor& tensor, Spell&& spell) {
  AlignedBuffer linear(static_cast<size_t>(byte_size(tensor.dtype, tensor.dims)));
  convert_layout(tensor.bytes.data(), linear.data(), tensor.dtype, tensor.dims, tensor.layout, Layout::linear);
  if (is_small(tensor.dtype)) {
    const auto* codes = reinterpret_cast<const uint8_t*>(linear.data());
    for (size_t i = 0; i < linear.size(); ++i) spell(small_to_float(tensor.dtype, codes[i]));
    return;
  }
  visit(tensor.dtype, [&]<typename T>() {
    const std::span<const T> values(reinterpret_cast<const T*>(linear.data()), linear.size() / sizeof(T));
    for (const T value : values) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) spell(static_cast<float>(value));
      else spell(value);
    }
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

std::vector<double> values_of(const BoundTensor& tensor) {
  std::vector<double> values;
  for_each_value(tensor, [&](auto value) { values.push_back(static_cast<double>(value)); });
  return values;
}

std::string outputs_json(std::span<const BoundTensor> outputs) {
  std::string text = "[\n";
  for (size_t i = 0; i < outputs.size(); ++i) {
    const BoundTensor& tensor = outputs[i];
    text += fmt::format("{} {{ \"name\" : {}\n  , \"dimensions\" : \"{}\"\n  , \"values\" : [ ", i == 0 ? " " : ",",
                        json_text(tensor.name), join_dims(tensor.dims));
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

static std::string safe_file_name(std::string name) {
  std::ranges::replace_if(
      name,
      [](unsigned char c) {
        return !std::isalnum(c) && std::string_view("._-,").find(static_cast<char>(c)) == std::string_view::npos;
      },
      '_');
  return name;
}

std::string FileNames::take(std::string_view tensor, std::string_view ending) {
  std::string name = safe_file_name(fmt::format("{}{}", tensor, ending));
  for (int number = 2; !taken_.insert(name).second; ++number)
    name = safe_file_name(fmt::format("{}_{}{}", tensor, number, ending));
  return name;
}

static std::string raw_ending(const BoundTensor& tensor, RawNames style) {
  return fmt::format(".{}.{}.{}.raw", tensor.is_input ? "input" : "output", join_dims(tensor.dims, "."),
                     style == RawNames::long_types ? type_word(tensor.dtype) : short_type_word(tensor.dtype));
}

std::string raw_file_name(const BoundTensor& tensor, RawNames style) {
  return FileNames().take(tensor.name, raw_ending(tensor, style));
}

std::vector<std::string> raw_file_names(std::span<const BoundTensor> tensors, RawNames style) {
  FileNames files;
  std::vector<std::string> names;
  for (const BoundTensor& tensor : tensors) names.push_back(files.take(tensor.name, raw_ending(tensor, style)));
  return names;
}

}  // namespace hone
