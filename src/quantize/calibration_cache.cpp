// SPDX-License-Identifier: Apache-2.0
#include "quantize/calibration_cache.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace hone {
namespace {

constexpr size_t kDigits = 8, kLinesNamed = 5, kMaxBytes = size_t{64} << 20;
constexpr std::string_view kForm =
    "a line is <tensor>: <scale>, the scale as eight hexadecimal digits: conv1: 3c010a14";

bool is_header(std::string_view line) {
  return line.starts_with("TRT-") && line.find("Calibration") != std::string_view::npos;
}

/// Not negative and finite, or nothing.
std::optional<float> read_scale(std::string_view digits) {
  uint32_t bits = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  if (digits.size() != kDigits || status != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  const auto scale = std::bit_cast<float>(bits);
  return std::isfinite(scale) && scale >= 0 ? std::optional(scale) : std::nullopt;
}

std::string line_text(size_t number, std::string_view tensor) {
  return tensor.empty() ? std::to_string(number) : fmt::format("{} (tensor {})", number, tensor);
}

}  // namespace

CalibrationCache parse_calibration_cache(std::string_view text) {
  const std::vector<std::string_view> lines = split(text, '\n');
  CalibrationCache cache{std::string(trim(lines.front())), {}};
  if (!is_header(cache.calibrator))
    throw Error("it is no calibration cache: line 1 does not name a calibrator",
                "it begins with a line like TRT-8601-EntropyCalibration2");
  std::vector<std::string> bad;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::string_view line = trim(lines[i]);
    if (line.empty()) continue;
    const size_t colon = line.rfind(':');
    const std::optional<float> scale =
        colon == std::string_view::npos || colon == 0 ? std::nullopt : read_scale(trim(line.substr(colon + 1)));
    if (scale) cache.scales[std::string(trim(line.substr(0, colon)))] = *scale;
    else bad.push_back(line_text(i + 1, colon == std::string_view::npos ? "" : trim(line.substr(0, colon))));
  }
  if (bad.empty()) return cache;
  const size_t count = bad.size();
  bad.resize(std::min(count, kLinesNamed));
  throw Error(fmt::format("{} of its lines cannot be read: line {}{}", count, join(bad, ", "),
                          count > kLinesNamed ? " and more" : ""),
              std::string(kForm));
}

CalibrationCache read_calibration_cache(const std::string& path) {
  return with_note([&] { return "reading the calibration cache " + path; },
                   [&] {
                     const auto file = MappedFile::open(path);
                     const std::span<const std::byte> bytes = file->bytes();
                     HONE_CHECK(bytes.size() <= kMaxBytes, "it is too large for a calibration cache: {} bytes",
                                bytes.size());
                     return parse_calibration_cache({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
                   });
}

std::string format_calibration_cache(const CalibrationCache& cache) {
  std::string text = cache.calibrator + "\n";
  for (const auto& [tensor, scale] : cache.scales)
    text += fmt::format("{}: {:08x}\n", tensor, std::bit_cast<uint32_t>(scale));
  return text;
}

}  // namespace hone
