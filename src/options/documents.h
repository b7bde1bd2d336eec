// SPDX-License-Identifier: Apache-2.0
//
// What documents are made of besides --help: the page docs/flags.md, and what manual pages and completion (tools/documents) ask
// about flags.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "options/flag.h"

namespace hone {

/// docs/flags.md.
std::string flags_page();

/// In the order of documents.
struct FlagSection {
  std::string_view title;
  FlagGroup group;
};
std::span<const FlagSection> flag_sections();
/// Words that a flag's value may be, as completion offers them; empty where it is a file or free text.
std::string_view words_for(std::string_view flag);

}  // namespace hone
