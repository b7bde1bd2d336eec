// SPDX-License-Identifier: Apache-2.0
#include "tools/trex/log_metadata.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

/// What stands behind "[mm/dd/yyyy-hh:mm:ss] [I] "; nothing for other lines.
std::optional<std::string_view> information(std::string_view line) {
  constexpr std::string_view kMark = "] [I] ";
  const size_t at = line.find(kMark);
  if (!line.starts_with('[') || at == std::string_view::npos) return std::nullopt;
  const bool stamp = std::ranges::all_of(line.substr(1, at - 1), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '/' || c == ':' || c == '-';
  });
  if (!stamp) return std::nullopt;
  return line.substr(at + kMark.size());
}

/// The pairs below a heading, up to the first line that is none.
Json section(std::string_view log, const std::string& heading) {
  Json pairs = Json::object();
  bool inside = false;
  for (std::string_view line : split(log, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::optional<std::string_view> text = information(line);
    if (!inside) {
      inside = text && trim(*text) == heading;
      continue;
    }
    const size_t colon = text ? text->find(':') : std::string_view::npos;
    if (colon == std::string_view::npos) break;
    pairs[std::string(trim(text->substr(0, colon)))] = trim(text->substr(colon + 1));
  }
  return pairs;
}

/// The number that a text begins with: "1995.29 qps".
std::optional<double> leading_number(std::string_view text) {
  text = trim(text);
  const size_t end = text.find_first_not_of("0123456789+-.eE");
  return parse_real(text.substr(0, end));
}

/// "min = 0.49 ms, max = 0.5 ms" as its numbers, in their order.
Json numbers_in(std::string_view text) {
  Json numbers = Json::array();
  for (const std::string_view part : split(text, ',')) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    const std::optional<double> number = leading_number(part.substr(equals + 1));
    numbers.push_back(number ? Json(*number) : Json(nullptr));
  }
  return numbers;
}

void as_numbers(Json& pairs, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const auto found = pairs.find(key); found != pairs.end())
      if (const auto number = leading_number(found->get<std::string>())) *found = *number;
}

std::string text_of(const Json& json) { return json.dump(4, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string build_metadata(std::string_view log) {
  return text_of({{"model_options", section(log, "=== Model Options ===")},
                  {"build_options", section(log, "=== Build Options ===")},
                  {"device_information", section(log, "=== Device Information ===")}});
}

std::string profile_metadata(std::string_view log) {
  Json summary = section(log, "=== Performance summary ==="), device = section(log, "=== Device Information ===");
  as_numbers(summary, {"Throughput", "Total Host Walltime", "Total GPU Compute Time"});
  for (const char* key : {"Latency", "Enqueue Time", "H2D Latency", "GPU Compute Time", "D2H Latency"})
    if (const auto found = summary.find(key); found != summary.end()) *found = numbers_in(found->get<std::string>());
  as_numbers(device, {"Application Compute Clock Rate", "Application Memory Clock Rate", "Compute Clock Rate",
                      "Memory Clock Rate", "Memory Bus Width", "Compute Capability", "SMs"});
  return text_of({{"performance_summary", summary},
                  {"inference_options", section(log, "=== Inference Options ===")},
                  {"device_information", device}});
}

}  // namespace hone
