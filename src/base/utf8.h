// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace hone {

/// The text with every byte that is not UTF-8 written as \xHH, so that reports and JSON can hold it.
std::string valid_utf8(std::string_view text);

}  // namespace hone
