// SPDX-License-Identifier: Apache-2.0
//
// One line at the foot of a terminal that says how far a build or a calibration is and how long it will take. Log lines go above it: whoever
// writes one clears the line first, and the next update draws it again. Where the output is no terminal, a build says nothing, which has a log;
// what goes over samples says how far it is in a line of its own now and then.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include "hone/hone.h"

namespace hone {

/// "[#####.....] 12 of 24 layers tuned, about 8 s left"; `what` is "layers tuned".
std::string progress_text(size_t done, size_t total, std::string_view what, double elapsed_seconds);

class Progress {
 public:
  explicit Progress(std::FILE* terminal = stderr);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// What shows a build; `stop` ends it.
  hone_progress of_build(int (*stop)(void*));
  void advanced(size_t done, size_t total, std::string_view what);
  void clear();

 private:
  void begin(std::string_view phase, const char* parent, int steps);
  void draw(size_t done, size_t total, std::string_view what);

  std::FILE* file_;
  std::FILE* terminal_;  // null: no terminal
  std::string tuned_ = "layers tuned";
  int layers_ = 0;  // to tune
  double start_ms_, drawn_ms_ = 0;
  bool visible_ = false;
};

}  // namespace hone
