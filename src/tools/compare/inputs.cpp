// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text.h"

namespace hone {
namespace {

/// A default of NumPy's: uniform doubles from 53 bits of two words.
double unit(std::mt19937& engine) {
  const uint64_t a = static_cast<uint32_t>(engine()) >> 5, b = static_cast<uint32_t>(engine()) >> 6;
  return (static_cast<double>(a) * 67108864.0 + static_cast<double>(b)) / 9007199254740992.0;
}

uint64_t mask_of(uint64_t most) {
  uint64_t mask = most;
  for (const int shift : {1, 2, 4, 8, 16, 32}) mask |= mask >> shift;
  return mask;
}

template <typename Number>
void store(std::byte* to, Number value) {
  std::memcpy(to, &value, sizeof value);
}

/// The last colon that stands in front of a bracket or of a size ends the name.
std::pair<std::string, std::string> name_and_rest(std::string_view flag, const std::string& word) {
  size_t at = word.find(":[");
  if (at == std::string::npos) at = word.rfind(':');
  if (at == std::string::npos || at == 0)
    throw UsageError(fmt::format("{} takes name:[sizes], not '{}'", flag, word), "for example x:[1,3,224,224]");
  return {word.substr(0, at), word.substr(at + 1)};
}

std::vector<std::string> elements_of(std::string text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const char separator = text.find(',') == std::string::npos && text.find('x') != std::string::npos ? 'x' : ',';
  std::vector<std::string> parts;
  if (trim(text).empty()) return parts;
  for (const std::string_view part : split(text, separator)) parts.emplace_back(trim(part));
  return parts;
}

/// An input that holds a shape: what --input-shapes says is then its contents.
bool is_shape_tensor(const KnownTensor& input, const Dims& given) {
  return is_integer(input.dtype) && input.dims.size() == 1 && input.dims[0] == static_cast<int64_t>(given.size()) &&
         given != input.dims;
}

[[noreturn]] void refuse_name(std::string_view flag, const std::string& name, const ModelFace& face) {
  std::vector<std::string_view> names;
  for (const KnownTensor& input : face.inputs) names.push_back(input.name);
  throw UsageError(fmt::format("{} names {}, which is no input of the model", flag, name),
                   fmt::format("did you mean {}? The inputs are {}", nearest(name, names), join(names, ", ")));
}

}  // namespace

Tensor LegacyRandom::reals(DType type, const Dims& dims, double low, double high) {
  TensorBuilder builder(type, dims);
  const auto count = static_cast<size_t>(elements(dims));
  double scale = high - low, shift = low;
  if (std::isinf(low)) {  // infinities are wanted, and the difference of two would be a NaN
    scale = low;
    shift = 0;
  }
  if (std::isinf(high)) scale = high;
  for (size_t i = 0; i < count; ++i) {
    const double value = unit(engine_) * scale + shift;
    std::byte* to = builder.bytes() + i * size_of(type);
    if (type == DType::f64) store(to, value);
    else if (type == DType::f16) store(to, float_to_half(static_cast<float>(value)));
    else if (type == DType::bf16) store(to, float_to_bfloat(static_cast<float>(value)));
    else if (is_small(type)) store(to, float_to_small(type, static_cast<float>(value)));
    else store(to, static_cast<float>(value));
  }
  return builder.finish();
}

/// Words are masked and drawn again until they are in range; types of one or two bytes take several out of a word.
uint64_t LegacyRandom::bounded(uint64_t most, uint64_t mask, size_t bytes) {
  while (true) {
    uint64_t word = 0;
    if (bytes == 0) {  // a bool: a bit
      if (left_ == 0) held_ = static_cast<uint32_t>(engine_());
      else held_ >>= 1;
      left_ = left_ == 0 ? 31 : left_ - 1;
      word = held_ & 1u;
    } else if (bytes <= 2) {
      if (left_ == 0) {
        held_ = static_cast<uint32_t>(engine_());
        left_ = bytes == 1 ? 3 : 1;
      } else {
        held_ >>= 8 * bytes;
        --left_;
      }
      word = held_ & (bytes == 1 ? 0xffu : 0xffffu);
    } else if (most <= 0xffffffffu) {
      word = static_cast<uint32_t>(engine_());
    } else {
      word = uint64_t{static_cast<uint32_t>(engine_())} << 32;
      word |= static_cast<uint32_t>(engine_());
    }
    if ((word & mask) <= most) return word & mask;
  }
}

Tensor LegacyRandom::integers(DType type, const Dims& dims, int64_t low, int64_t high) {
  TensorBuilder builder(type, dims);
  const auto count = static_cast<size_t>(elements(dims));
  const uint64_t most = static_cast<uint64_t>(high) - static_cast<uint64_t>(low), mask = mask_of(most);
  left_ = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t value =
        static_cast<uint64_t>(low) + (most == 0 ? 0 : bounded(most, mask, type == DType::boolean ? 0 : size_of(type)));
    std::memcpy(builder.bytes() + i * size_of(type), &value, size_of(type));
  }
  return builder.finish();
}

std::vector<KnownTensor> resolved_inputs(const ModelFace& face, const InputRequest& request, const Narrator& narrator) {
  for (const auto& [name, dims] : request.shapes)
    if (std::ranges::find(face.inputs, name, &KnownTensor::name) == face.inputs.end())
      refuse_name("--input-shapes", name, face);
  for (const auto& [name, range] : request.ranges)
    if (!name.empty() && std::ranges::find(face.inputs, name, &KnownTensor::name) == face.inputs.end())
      refuse_name("--val-range", name, face);
  std::vector<KnownTensor> inputs = face.inputs;
  for (KnownTensor& input : inputs) {
    if (const auto given = request.shapes.find(input.name);
        given != request.shapes.end() && !is_shape_tensor(input, given->second)) {
      bool fits = given->second.size() == input.dims.size();
      for (size_t i = 0; fits && i < input.dims.size(); ++i)
        fits = input.dims[i] < 0 || input.dims[i] == given->second[i];
      if (!fits)
        throw UsageError(fmt::format("--input-shapes gives {} the shape {}, the model {}", input.name,
                                     shape_text(given->second), shape_text(input.dims)),
                         "sizes that are not -1 are fixed");
      input.dims = given->second;
    }
    if (std::ranges::none_of(input.dims, [](int64_t size) { return size < 0; })) continue;
    for (int64_t& size : input.dims) size = std::max<int64_t>(size, size < 0 ? 1 : size);
    narrator.warning(
        "Input tensor: {} | Will generate data of shape: {}.\nSizes that nobody gave became 1: --input-shapes {}:[...] "
        "gives them.",
        input.name, shape_text(input.dims), input.name);
  }
  return inputs;
}

DrawnInput drawn_input(const KnownTensor& input, const InputRequest& request) {
  DrawnInput drawn;
  const auto named = request.ranges.find(input.name), any = request.ranges.find("");
  const auto accepted = request.accepted.find(input.name);
  if (named != request.ranges.end()) drawn.range = named->second;
  else if (any != request.ranges.end()) drawn.range = any->second;
  else if (accepted != request.accepted.end() && is_integer(input.dtype)) {
    drawn.range = accepted->second;
    drawn.accepted = true;
  }
  if (const auto given = request.shapes.find(input.name);
      given != request.shapes.end() && is_shape_tensor(input, given->second))
    drawn.contents = given->second;
  return drawn;
}

TensorList draw_inputs(const std::vector<KnownTensor>& inputs, const InputRequest& request, int64_t iteration,
                       const Narrator& narrator, bool tell) {
  LegacyRandom random(request.seed + static_cast<uint32_t>(iteration));
  TensorList list;
  for (const KnownTensor& input : inputs) {
    const DrawnInput drawn = drawn_input(input, request);
    const DrawRange& range = drawn.range;
    if (drawn.accepted && tell)
      narrator.info("Input tensor: {} | Integers are drawn from {} to {}, which its consumers accept.", input.name,
                    range.low, range.high);
    if (is_object(input.dtype))
      throw UsageError(
          fmt::format("input {} holds {}, which cannot be drawn at random", input.name, name_of(input.dtype)),
          "give it with --load-inputs");
    if (drawn.contents) {
      if (tell)
        narrator.info("Input tensor: {} | It is taken for a shape: its contents are {}.", input.name,
                      shape_text(*drawn.contents));
      TensorBuilder builder(input.dtype, input.dims);
      for (size_t i = 0; i < drawn.contents->size(); ++i)
        std::memcpy(builder.bytes() + i * size_of(input.dtype), &(*drawn.contents)[i], size_of(input.dtype));
      list.push_back({input.name, builder.finish()});
      continue;
    }
    if (is_float(input.dtype)) {
      list.push_back({input.name, random.reals(input.dtype, input.dims, range.low, range.high)});
    } else {
      if (!std::isfinite(range.low) || !std::isfinite(range.high) || range.high < range.low)
        throw UsageError(fmt::format("--val-range of the integers {} has to be two ascending numbers", input.name));
      list.push_back({input.name, random.integers(input.dtype, input.dims, static_cast<int64_t>(range.low),
                                                  static_cast<int64_t>(range.high))});
    }
  }
  return list;
}

std::map<std::string, Dims> parse_shape_words(std::string_view flag, const std::vector<std::string>& words) {
  std::map<std::string, Dims> shapes;
  for (const std::string& word : words) {
    const auto [name, text] = name_and_rest(flag, word);
    Dims dims;
    for (const std::string& part : elements_of(text)) {
      const bool quoted = part.size() > 1 && (part.front() == '\'' || part.front() == '"');
      const std::optional<int64_t> size = quoted ? -1 : parse_integer(part);
      if (!size || *size < -1)
        throw UsageError(fmt::format("{}: '{}' is no size of {}", flag, part, name), "for example x:[1,3,224,224]");
      dims.push_back(*size);
    }
    shapes[name] = dims;
  }
  return shapes;
}

std::map<std::string, DrawRange, std::less<>> parse_range_words(const std::vector<std::string>& words) {
  std::map<std::string, DrawRange, std::less<>> ranges;
  for (const std::string& word : words) {
    const size_t at = word.find('[');
    if (at == std::string::npos || (at > 0 && word[at - 1] != ':'))
      throw UsageError(fmt::format("--val-range takes [low,high] or name:[low,high], not '{}'", word));
    const std::vector<std::string> ends = elements_of(word.substr(at));
    std::optional<double> low, high;
    if (ends.size() == 2) {
      low = parse_real(ends[0]);
      high = parse_real(ends[1]);
    }
    if (!low || !high)
      throw UsageError(fmt::format("--val-range: '{}' is no range", word), "for example [0,1] or x:[5,6]");
    ranges[at == 0 ? "" : word.substr(0, at - 1)] = {*low, *high};
  }
  return ranges;
}

std::map<std::string, std::string, std::less<>> parse_named_words(const std::vector<std::string>& words) {
  std::map<std::string, std::string, std::less<>> named;
  for (const std::string& word : words) {
    const size_t at = word.rfind(':');
    if (at == std::string::npos) named[""] = word;
    else named[word.substr(0, at)] = word.substr(at + 1);
  }
  return named;
}

}  // namespace hone
