// SPDX-License-Identifier: Apache-2.0
//
// Texts that were written by anybody, such as names of a model, inside XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace hone {

/// The text as it stands between tags and in quotes: markup is spelled out, bytes that are not UTF-8 and control characters are \xHH.
std::string markup_text(std::string_view text);

}  // namespace hone
