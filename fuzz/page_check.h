// SPDX-License-Identifier: Apache-2.0
//
// What a page of hone report or hone view promises, whatever it shows: data that are JSON, and nothing in them that ends their element.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness.h"

namespace hone::fuzz {

inline void check_page(const std::string& page) {
  constexpr std::string_view kData = R"(<script type="application/json" id="data">)";
  const size_t begin = page.find(kData) + kData.size(), end = page.find("</script>", begin);
  const std::string_view data = std::string_view(page).substr(begin, end - begin);
  HONE_ASSERT(data.find('<') == std::string_view::npos, "the data of a page holds markup");
  HONE_ASSERT(nlohmann::json::accept(data), "the data of a page is no JSON");
}

}  // namespace hone::fuzz
