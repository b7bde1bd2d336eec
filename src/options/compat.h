// SPDX-License-Identifier: Apache-2.0
//
// Which release of trtexec to follow where releases disagree. By default the command lines of all of them are understood and
// the behaviour is that of 8.6, as the tutorials show it; --compat follows one release in its defaults, units and labels.
#pragma once

#include <string_view>

namespace hone {

struct Options;

enum class Release { any, v8_6, v10, v11 };

inline bool is_at_least(Release release, Release first) { return static_cast<int>(release) >= static_cast<int>(first); }

/// "8.6", "10" or "11"; throws Error for another text.
Release read_release(std::string_view text);
/// Defaults that the release has and others do not; set before any flag is read.
void apply_release_defaults(Options& options, Release release);
/// Whether the release no longer knows a flag that earlier ones had and that would act otherwise.
bool is_removed(std::string_view flag, Release release);

}  // namespace hone
