// SPDX-License-Identifier: Apache-2.0
//
// Recursive descent is not needed: every grammar is "split, split, convert". A Piece keeps its offset in the value, so
// that an error can put a caret under it.
#include "options/grammar.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace hone {
namespace {

struct Piece {
  std::string_view text;
  size_t offset = 0;  // in Argument::value
};

struct NamedPiece {
  std::string name;
  Piece value;
};

[[noreturn]] void fail_at(const Argument& argument, size_t offset, std::string message, std::string hint) {
  throw Error(std::move(message) + caret_under(argument.flag, argument.value, offset), std::move(hint));
}

std::vector<Piece> split_commas(const Argument& argument) {
  std::vector<Piece> pieces;
  const std::string_view value = argument.value;
  if (value.empty()) return pieces;
  bool quoted = false;
  size_t start = 0;
  for (size_t i = 0; i <= value.size(); ++i) {
    if (i < value.size() && value[i] == '\'') quoted = !quoted;
    if (i < value.size() && (quoted || value[i] != ',')) continue;
    size_t first = start;  // "x:1x3, y:1x3": a blank behind the comma is no part of the name
    while (first < i && value[first] == ' ') ++first;
    pieces.push_back({value.substr(first, i - first), first});
    start = i + 1;
  }
  return pieces;
}

NamedPiece split_name(const Argument& argument, Piece piece) {
  const auto quotes = std::count(piece.text.begin(), piece.text.end(), '\'');
  if (quotes == 0) {
    const size_t colon = piece.text.rfind(':');
    if (colon == std::string_view::npos)
      fail_at(argument, piece.offset, fmt::format("'{}' has no ':' between name and value", piece.text),
              "write name:value, several joined with commas");
    return {std::string(piece.text.substr(0, colon)), {piece.text.substr(colon + 1), piece.offset + colon + 1}};
  }
  if (quotes != 2)
    fail_at(argument, piece.offset, fmt::format("Found invalid number of 's when parsing {}", piece.text),
            "a quoted name has one quote before and one behind it: 'input:0':1x3");
  const size_t open = piece.text.find('\''), close = piece.text.rfind('\'');
  std::string name(piece.text.substr(0, open));
  name += piece.text.substr(open + 1, close - open - 1);
  const size_t value = std::min(close + 2, piece.text.size());
  return {std::move(name), {piece.text.substr(value), piece.offset + value}};
}

std::vector<NamedPiece> split_named(const Argument& argument) {
  std::vector<NamedPiece> result;
  for (const Piece& piece : split_commas(argument)) result.push_back(split_name(argument, piece));
  return result;
}

Dims read_dims(const Argument& argument, Piece piece) {
  Dims dims;
  if (piece.text.empty() || piece.text == "scalar") return dims;
  size_t offset = piece.offset;
  for (const std::string_view word : split(piece.text, 'x')) {
    const std::optional<int64_t> size = parse_integer(trim(word));
    if (!size)
      fail_at(argument, offset,
              fmt::format("stoi conversion failure: failed to parse minShapes/optShapes/maxShapes. Please write every "
                          "size as a number; '{}' is none",
                          word),
              "a shape is a name, a colon and sizes joined with x: input:1x3x224x224");
    dims.push_back(*size);
    offset += word.size() + 1;
  }
  return dims;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// MiB. The unit is binary, "M" when missing. Release 8.6 takes every number as MiB, from 10 on the last letter alone counts.
double read_pool_size(const Argument& argument, Piece piece, Release release) {
  const std::string text(piece.text);
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str())
    fail_at(argument, piece.offset,
            "stod conversion failure: failed to parse --memPoolSize. Please give every pool a number",
            "for example --memPoolSize=workspace:1024MiB");
  std::string unit = lower(end);
  if (is_at_least(release, Release::v10) && !unit.empty()) unit = unit.substr(unit.size() - 1);
  if (release == Release::v8_6) unit.clear();
  if (number < 0)
    fail_at(argument, piece.offset, fmt::format("Negative memory pool size: {}", text), "give a size of 0 or more");
  if (unit.empty() || unit == "m" || unit == "mb" || unit == "mib") return number;
  if (unit == "b") return number / (1 << 20);
  if (unit == "k" || unit == "kb" || unit == "kib") return number / (1 << 10);
  if (unit == "g" || unit == "gb" || unit == "gib") return number * (1 << 10);
  fail_at(argument, piece.offset + static_cast<size_t>(end - text.c_str()),
          fmt::format("Error parsing \"{}\": invalid unit specifier '{}'.", text, *end),
          "units are B, K, M and G (KiB, MiB, GiB), powers of 1024; without a unit MiB are meant");
}

}  // namespace

std::string caret_under(std::string_view flag, std::string_view value, size_t offset) {
  return fmt::format("\n  {}={}\n  {:{}}^", flag, value, "", flag.size() + 1 + offset);
}

std::string caret_under_shape(const NamedTexts& arguments, std::string_view tensor, std::optional<size_t> axis) {
  for (const auto& [flag, value] : arguments) {
    const Argument argument{flag, value};
    for (const Piece& piece : split_commas(argument)) {
      const NamedPiece entry = split_name(argument, piece);
      if (entry.name != tensor) continue;
      if (!axis) return caret_under(flag, value, piece.offset);
      const std::vector<std::string_view> sizes = split(entry.value.text, 'x');
      size_t offset = entry.value.offset;
      for (size_t i = 0; i < std::min(*axis, sizes.size()); ++i) offset += sizes[i].size() + 1;
      return caret_under(flag, value, std::min(offset, value.size()));
    }
  }
  return {};
}

int read_integer(const Argument& argument) {
  const char* text = argument.value.c_str();
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (end == text)
    throw Error(fmt::format("stoi: {}=\"{}\" is not an integer", argument.flag, argument.value),
                fmt::format("write {}=10", argument.flag));
  HONE_CHECK(errno == 0 && value >= INT32_MIN && value <= INT32_MAX, "stoi: {}={} is out of range", argument.flag,
             argument.value);
  return static_cast<int>(value);
}

double read_real(const Argument& argument) {
  const char* text = argument.value.c_str();
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text)
    throw Error(fmt::format("stof: {}=\"{}\" is not a number", argument.flag, argument.value),
                fmt::format("write {}=1.5", argument.flag));
  return value;
}

std::vector<std::string> read_list(const Argument& argument) {
  std::vector<std::string> result;
  for (const Piece& piece : split_commas(argument)) result.emplace_back(piece.text);
  return result;
}

NamedTexts read_named(const Argument& argument) {
  NamedTexts result;
  for (NamedPiece& entry : split_named(argument)) result.emplace_back(std::move(entry.name), entry.value.text);
  return result;
}

ShapeMap read_shapes(const Argument& argument) {
  ShapeMap shapes;
  for (NamedPiece& entry : split_named(argument)) {
    if (shapes.contains(entry.name))
      fail_at(argument, entry.value.offset, fmt::format("{} names the tensor {} twice", argument.flag, entry.name),
              "give every tensor one shape");
    shapes[entry.name] = read_dims(argument, entry.value);
  }
  return shapes;
}

MemoryPools read_pools(const Argument& argument, Release release) {
  MemoryPools pools;
  for (const NamedPiece& entry : split_named(argument)) {
    const double mib = read_pool_size(argument, entry.value, release);
    if (entry.name == "workspace") pools.workspace = mib;
    else if (entry.name == "dlaSRAM") pools.dla_sram = mib;
    else if (entry.name == "dlaLocalDRAM") pools.dla_local_dram = mib;
    else if (entry.name == "dlaGlobalDRAM") pools.dla_global_dram = mib;
    else if (entry.name == "tacticSharedMem") pools.tactic_shared = mib * 1024;
    else
      throw Error(fmt::format("Unknown memory pool: {}", entry.name),
                  "pools are workspace, dlaSRAM, dlaLocalDRAM, dlaGlobalDRAM and tacticSharedMem");
  }
  return pools;
}

std::vector<IoFormatSpec> read_io_formats(const Argument& argument, Release release) {
  static const std::vector<std::string> kTypes = {"fp32", "fp16",  "bf16", "int32", "int64",
                                                  "int8", "uint8", "bool", "fp8",   "int4"};
  static const std::vector<std::string> kFormats = {"chw",   "chw2", "chw4",  "chw16",  "chw32",      "hwc",     "hwc8",
                                                    "hwc16", "dhwc", "dhwc8", "cdhw32", "dla_linear", "dla_hwc4"};
  std::vector<IoFormatSpec> specs;
  for (const Piece& piece : split_commas(argument)) {
    const size_t found = piece.text.find(':'), colon = release == Release::v11 ? size_t{0} : found;
    if (colon == std::string_view::npos)
      fail_at(argument, piece.offset, fmt::format("Invalid IOFormat {}", piece.text),
              "write type:format, for example fp32:chw or fp16:chw+hwc8");
    IoFormatSpec spec{std::string(piece.text.substr(0, colon)), {}};
    if (release != Release::v11 && std::ranges::find(kTypes, spec.type) == kTypes.end())
      fail_at(argument, piece.offset, fmt::format("Invalid DataType {}", spec.type), "types are " + join(kTypes, ", "));
    const size_t skipped = release == Release::v11 ? 0 : colon + 1;
    size_t offset = piece.offset + skipped;
    for (const std::string_view format : split(piece.text.substr(skipped), '+')) {
      if (std::ranges::find(kFormats, format) == kFormats.end())
        fail_at(argument, offset, fmt::format("Invalid TensorFormat {}", format),
                "formats are " + join(kFormats, ", "));
      spec.formats.emplace_back(format);
      offset += format.size() + 1;
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

NamedTexts read_signed(const Argument& argument, const std::string& what, const std::vector<std::string>& words) {
  NamedTexts result;
  for (const Piece& piece : split_commas(argument)) {
    if (piece.text.empty() || (piece.text[0] != '+' && piece.text[0] != '-'))
      fail_at(argument, piece.offset, fmt::format("{} must be prefixed with + or -, not: {}", what, piece.text),
              "+ switches on, - switches off: +A,-B");
    const std::string_view name = piece.text.substr(1);
    const auto found = std::ranges::find_if(words, [&](const std::string& word) { return lower(word) == lower(name); });
    if (found == words.end()) {
      std::string kind = what.ends_with('s') ? what.substr(0, what.size() - 1) : what;
      kind = lower(kind.substr(0, 1)) + kind.substr(1);
      throw Error(fmt::format("Unknown {}: {}", kind, name), "known are " + join(words, ", "));
    }
    const std::string state = piece.text[0] == '+' ? "ON" : "OFF";
    for (const auto& [other, old] : result)
      if (other == *found && old != state)
        throw Error(fmt::format("Cannot enable and disable {}", *found), "name it once");
    result.emplace_back(*found, state);
  }
  return result;
}

std::vector<float> read_percentiles(const Argument& argument) {
  std::vector<float> result;
  for (const std::string& word : read_list(argument)) {
    Argument part = argument;
    part.value = word;
    const double value = read_real(part);
    if (value < 0 || value > 100)
      throw Error(fmt::format("Percentile {:g} is not in [0,100]", value), "for example --percentile=90,95,99");
    result.push_back(static_cast<float>(value));
  }
  return result;
}

std::string read_word(const Argument& argument, const std::string& what, const std::vector<std::string>& words) {
  if (std::ranges::find(words, argument.value) != words.end()) return argument.value;
  throw Error(fmt::format("Unknown {}: {}", what, argument.value),
              fmt::format("valid for {}: {}", argument.flag, join(words, ", ")));
}

}  // namespace hone
