// SPDX-License-Identifier: Apache-2.0
#include "explore/page_text.h"

#include <map>

#include "base/text.h"

namespace hone {
namespace {

/// "<" is written as an escape, so that nothing in the data ends the script element that holds them.
std::string for_script(const nlohmann::ordered_json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace))
    if (c == '<') text += "\\u003c";
    else text += c;
  return text;
}

}  // namespace

std::string page_text(std::string_view html, const nlohmann::ordered_json& data,
                      const std::vector<std::string_view>& scripts) {
  const std::string json = for_script(data), script = join(scripts, "\n");
  const std::map<std::string_view, std::string_view> parts{
      {"STYLE", page::page_css}, {"DATA", json}, {"LIBRARY", page::d3}, {"SCRIPT", script}};
  std::string text;
  const std::vector<std::string_view> pieces = split(html, '@');  // every other one is the name of a part
  for (size_t i = 0; i < pieces.size(); ++i) text += i % 2 == 0 ? pieces[i] : parts.at(pieces[i]);
  return text;
}

}  // namespace hone
