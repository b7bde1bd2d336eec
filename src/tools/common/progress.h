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

#include "builder/events/listener.h"

namespace hone {

/// "[#####.....] 12 of 24 layers tuned, about 8 s left"; `what` is "layers tuned".
std::string progress_text(size_t done, size_t total, std::string_view what, double elapsed_seconds);

class Progress : public BuildListener {
 public:
  explicit Progress(std::FILE* terminal = stderr);
  ~Progress() override { clear(); }

  void precision_begun(std::string_view types) override;
  void tuning_advanced(size_t done, size_t total) override { draw(done, total, tuned_); }
  void advanced(size_t done, size_t total, std::string_view what);
  void clear();

 private:
  void draw(size_t done, size_t total, std::string_view what);

  std::FILE* file_;
  std::FILE* terminal_;  // null: no terminal
  std::string tuned_ = "layers tuned";
  double start_ms_, drawn_ms_ = 0;
  bool visible_ = false;
};

}  // namespace hone
