// SPDX-License-Identifier: Apache-2.0
#include "tools/common/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/clock.h"
#include "tools/common/terminal.h"
#include "tools/common/watcher.h"

namespace hone {
namespace {

constexpr std::string_view kTuning = "tune";  // the phase of a build that takes the time
constexpr size_t kBar = 24;
constexpr double kRedrawMs = 100;   // more often only flickers
constexpr double kLineMs = 10'000;  // between lines in a log

std::string duration_text(double seconds) {
  const long whole = std::lround(std::max(seconds, 0.0));
  return whole < 90 ? fmt::format("{} s", whole) : fmt::format("{} min {} s", whole / 60, whole % 60);
}

}  // namespace

std::string progress_text(size_t done, size_t total, std::string_view what, double elapsed_seconds) {
  const double share = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  const auto filled = static_cast<size_t>(share * kBar);
  std::string text = fmt::format("[{:#<{}}{:.<{}}] {} of {} {}", "", filled, "", kBar - filled, done, total, what);
  if (done > 0 && done < total) text += ", about " + duration_text(elapsed_seconds * (1 / share - 1)) + " left";
  return text;
}

Progress::Progress(std::FILE* terminal)
    : file_(terminal), terminal_(wants_screen(terminal) ? terminal : nullptr), start_ms_(now_ms()) {}

hone_progress Progress::of_build(int (*stop)(void*)) {
  hone_progress told{.size = sizeof(hone_progress), .user = this, .stop = stop};
  told.begin = [](void* user, const char* phase, const char* parent, int steps) {
    static_cast<Progress*>(user)->begin(phase, parent, steps);
    if (Watcher* watcher = Watcher::of_process()) watcher->begin(phase, parent, steps);
  };
  told.step = [](void* user, const char* phase, int done) {
    auto& progress = *static_cast<Progress*>(user);
    if (Watcher* watcher = Watcher::of_process()) watcher->step(phase, done);
    if (std::string_view(phase) == kTuning)
      progress.draw(static_cast<size_t>(done), static_cast<size_t>(progress.layers_), progress.tuned_);
    return 0;
  };
  told.end = [](void*, const char* phase) {
    if (Watcher* watcher = Watcher::of_process()) watcher->end(phase);
  };
  return told;
}

void Progress::begin(std::string_view phase, const char* parent, int steps) {
  if (phase == kTuning) layers_ = steps;
  // One network of several, in the types that its phase is called after, begins by being prepared.
  if (phase != "prepare" || parent == nullptr || std::string_view(parent) == "build") return;
  start_ms_ = now_ms();
  tuned_ = fmt::format("layers tuned with {}", parent);
}

void Progress::advanced(size_t done, size_t total, std::string_view what) {
  if (terminal_ != nullptr) return draw(done, total, what);
  if (now_ms() - std::max(drawn_ms_, start_ms_) < kLineMs) return;
  drawn_ms_ = now_ms();
  fmt::print(file_, "{}\n", progress_text(done, total, what, seconds_since(start_ms_)));
  std::fflush(file_);
}

void Progress::draw(size_t done, size_t total, std::string_view what) {
  if (terminal_ == nullptr || now_ms() - drawn_ms_ < kRedrawMs) return;
  drawn_ms_ = now_ms();
  fmt::print(terminal_, "\r\033[K{}", progress_text(done, total, what, seconds_since(start_ms_)));
  std::fflush(terminal_);
  visible_ = true;
}

void Progress::clear() {
  if (!visible_) return;
  fmt::print(terminal_, "\r\033[K");
  std::fflush(terminal_);
  visible_ = false;
}

}  // namespace hone
