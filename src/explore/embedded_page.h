// SPDX-License-Identifier: Apache-2.0
//
// The files of page/ and the library that they draw with, as texts; made when configuring (embed.cmake).
#pragma once

#include <string_view>

namespace hone::page {

extern const std::string_view page_css, graph_js, report_html, report_js, view_html, view_js, d3;

}  // namespace hone::page
