// SPDX-License-Identifier: Apache-2.0
#include "tools/files/yaml.h"

#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>

#include "base/error.h"
#include "base/text.h"

namespace hone {
namespace {

constexpr int kDeepest = 64;
constexpr size_t kMostValues = 1 << 20;  // with those that aliases repeat

size_t values_in(const Json& json) {
  size_t count = 1;
  if (json.is_structured())
    for (const Json& each : json) count += values_in(each);
  return count;
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

/// YAML 1.1: digits alone, 0x... and 0o...; signs and underscores between digits.
std::optional<Json> number_of(std::string text) {
  std::erase(text, '_');
  if (const std::optional<int64_t> whole = parse_integer(text)) return Json(*whole);
  const std::string_view body =
      text.starts_with('-') || text.starts_with('+') ? std::string_view(text).substr(1) : text;
  const double sign = text.starts_with('-') ? -1 : 1;
  if (is_one_of(body, {".inf", ".Inf", ".INF"})) return Json(sign * INFINITY);
  if (is_one_of(text, {".nan", ".NaN", ".NAN"})) return Json(NAN);
  if (body.starts_with("0x") && body.size() > 2 && body.size() < 18 &&
      body.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos)
    return Json(static_cast<int64_t>(sign) * std::strtoll(std::string(body.substr(2)).c_str(), nullptr, 16));
  if (body.empty() || body.find_first_not_of("0123456789.eE+-") != std::string_view::npos ||
      body.find_first_of("0123456789") == std::string_view::npos || body.find('.') == std::string_view::npos)
    return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == '\0' ? std::optional<Json>(value) : std::nullopt;
}

/// A word without quotation marks.
Json plain(const std::string& text) {
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (is_one_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) return true;
  if (is_one_of(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) return false;
  return number_of(text).value_or(Json(text));
}

class YamlReader {
 public:
  explicit YamlReader(std::string_view text) {
    if (text.empty()) text = "";  // libyaml takes no null
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~YamlReader() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  YamlReader(const YamlReader&) = delete;
  YamlReader& operator=(const YamlReader&) = delete;

  std::vector<Json> documents() {
    std::vector<Json> all;
    for (next(); event_.type != YAML_STREAM_END_EVENT; next()) {
      if (event_.type != YAML_DOCUMENT_START_EVENT) continue;
      anchors_.clear();
      next();
      Json document = value(0);
      if (!document.is_null()) all.push_back(std::move(document));
    }
    return all;
  }

 private:
  void next() {
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_) != 0) return;
    event_ = {};
    throw Error(fmt::format("line {}: {}", parser_.problem_mark.line + 1,
                            parser_.problem == nullptr ? "it is no YAML" : parser_.problem));
  }
  [[noreturn]] void refuse(std::string_view why) const {
    throw Error(fmt::format("line {}: {}", event_.start_mark.line + 1, why));
  }
  static std::string text_of(const unsigned char* text) {
    return text == nullptr ? std::string() : reinterpret_cast<const char*>(text);
  }

  /// Of the event at hand.
  Json value(int depth) {
    if (depth > kDeepest) refuse(fmt::format("it is nested deeper than {}", kDeepest));
    count(1);
    switch (event_.type) {
      case YAML_ALIAS_EVENT: {
        const auto found = anchors_.find(text_of(event_.data.alias.anchor));
        if (found == anchors_.end()) refuse("an alias has no anchor");
        count(values_in(found->second));
        return found->second;
      }
      case YAML_SCALAR_EVENT: {
        const auto& scalar = event_.data.scalar;
        const std::string text(reinterpret_cast<const char*>(scalar.value), scalar.length);
        return kept(text_of(scalar.anchor), scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain(text) : Json(text));
      }
      case YAML_SEQUENCE_START_EVENT: {
        const std::string anchor = text_of(event_.data.sequence_start.anchor);
        Json list = Json::array();
        for (next(); event_.type != YAML_SEQUENCE_END_EVENT; next()) list.push_back(value(depth + 1));
        return kept(anchor, std::move(list));
      }
      case YAML_MAPPING_START_EVENT: return kept(text_of(event_.data.mapping_start.anchor), mapping(depth));
      default: refuse("a value is missing");
    }
  }
  Json mapping(int depth) {
    Json object = Json::object();
    for (next(); event_.type != YAML_MAPPING_END_EVENT; next()) {
      if (event_.type != YAML_SCALAR_EVENT) refuse("a key is no text");
      const std::string key(reinterpret_cast<const char*>(event_.data.scalar.value), event_.data.scalar.length);
      next();
      object[key] = value(depth + 1);
    }
    return object;
  }
  Json kept(const std::string& anchor, Json json) {
    if (!anchor.empty()) anchors_[anchor] = json;
    return json;
  }
  void count(size_t values) {
    values_ += values;
    if (values_ > kMostValues) refuse(fmt::format("it holds more than {} values", kMostValues));
  }

  yaml_parser_t parser_{};
  yaml_event_t event_{};
  std::map<std::string, Json> anchors_;
  size_t values_ = 0;
};

class YamlWriter {
 public:
  YamlWriter() {
    if (yaml_emitter_initialize(&emitter_) == 0) throw std::bad_alloc();
    yaml_emitter_set_output(&emitter_, add, &text_);
    yaml_emitter_set_unicode(&emitter_, 1);
    yaml_emitter_set_width(&emitter_, -1);
    yaml_event_t event;
    put(yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING), event);
  }
  ~YamlWriter() { yaml_emitter_delete(&emitter_); }
  YamlWriter(const YamlWriter&) = delete;
  YamlWriter& operator=(const YamlWriter&) = delete;

  void document(const Json& json) {
    yaml_event_t event;
    put(yaml_document_start_event_initialize(&event, nullptr, nullptr, nullptr, 0), event);
    value(json);
    put(yaml_document_end_event_initialize(&event, 1), event);
  }
  std::string finish() {
    yaml_event_t event;
    put(yaml_stream_end_event_initialize(&event), event);
    return std::move(text_);
  }

 private:
  static int add(void* text, unsigned char* bytes, size_t size) {
    static_cast<std::string*>(text)->append(reinterpret_cast<const char*>(bytes), size);
    return 1;
  }
  void put(int made, yaml_event_t& event) {
    if (made == 0 || yaml_emitter_emit(&emitter_, &event) == 0)
      throw Error(fmt::format("it cannot be written as YAML: {}",
                              emitter_.problem == nullptr ? "a text is no UTF-8" : emitter_.problem));
  }

  void value(const Json& json) {
    yaml_event_t event;
    if (json.is_object()) {
      put(yaml_mapping_start_event_initialize(&event, nullptr, nullptr, 1, YAML_BLOCK_MAPPING_STYLE), event);
      for (const auto& [key, each] : json.items()) {
        scalar(key, true);
        value(each);
      }
      put(yaml_mapping_end_event_initialize(&event), event);
    } else if (json.is_array()) {
      put(yaml_sequence_start_event_initialize(&event, nullptr, nullptr, 1, YAML_BLOCK_SEQUENCE_STYLE), event);
      for (const Json& each : json) value(each);
      put(yaml_sequence_end_event_initialize(&event), event);
    } else if (json.is_string()) {
      scalar(json.get<std::string>(), true);
    } else {
      scalar(json.is_number_float() ? float_text(json.get<double>()) : json.dump(), false);
    }
  }
  /// With the point that YAML 1.1 asks of a number that is no integer.
  static std::string float_text(double number) {
    if (std::isnan(number)) return ".nan";
    if (std::isinf(number)) return number < 0 ? "-.inf" : ".inf";
    std::string text = fmt::format("{}", number);
    if (text.find('.') != std::string::npos) return text;
    const size_t exponent = std::min(text.find('e'), text.size());
    return text.insert(exponent, ".0");
  }
  /// Texts that would be read as something else stand in quotation marks.
  void scalar(const std::string& text, bool is_text) {
    const bool quoted = is_text && !plain(text).is_string();
    yaml_event_t event;
    put(yaml_scalar_event_initialize(&event, nullptr, nullptr, reinterpret_cast<const unsigned char*>(text.data()),
                                     static_cast<int>(text.size()), quoted ? 0 : 1, 1,
                                     quoted ? YAML_SINGLE_QUOTED_SCALAR_STYLE : YAML_ANY_SCALAR_STYLE),
        event);
  }

  yaml_emitter_t emitter_{};
  std::string text_;
};

}  // namespace

std::vector<Json> parse_yaml(std::string_view text) { return YamlReader(text).documents(); }

std::string yaml_text(const std::vector<Json>& documents) {
  YamlWriter writer;
  for (const Json& each : documents) writer.document(each);
  return writer.finish();
}

}  // namespace hone
