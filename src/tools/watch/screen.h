// SPDX-License-Identifier: Apache-2.0
//
// A watched command as lines of text: for a terminal all of it, again and again; elsewhere a line for what is new.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/watch/watch_state.h"

namespace hone {

struct ScreenSize {
  size_t columns = 80, rows = 24;
};

/// No line is wider than the screen, and there are fewer than it has rows. `unicode`: bars of blocks, not of #.
std::vector<std::string> screen_lines(const WatchState& state, std::string_view command, double begun, double now,
                                      const ScreenSize& size, bool unicode);

/// For where there is no terminal. Remembers what it has told.
class PlainLines {
 public:
  std::vector<std::string> news(const WatchState& state, double now);

 private:
  size_t told_ = 0, measurements_ = 0;  // phases that have ended; measurements
  double last_ = 0;
};

/// "12 s", "2 min 5 s".
std::string seconds_text(double seconds);

}  // namespace hone
