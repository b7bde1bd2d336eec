// SPDX-License-Identifier: Apache-2.0
#include "runtime/hang_watch.h"

#include <chrono>

#include "base/clock.h"
#include "base/text.h"

namespace hone {

HangWatch::HangWatch(Group& group, std::function<void()> break_off)
    : group_(group), break_off_(std::move(break_off)), thread_([this] { run(); }) {}

HangWatch::~HangWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HangWatch::begin() {
  {
    const std::lock_guard lock(mutex_);
    under_way_ = true;
    end_ = nullptr;
    begun_ms_ = now_ms();
  }
  changed_.notify_all();
}

void HangWatch::end(const Event& end) {
  const std::lock_guard lock(mutex_);
  end_ = &end;
}

/// An error of the device is told to those who wait for it.
bool HangWatch::has_ended() const {
  try {
    return end_ != nullptr && end_->passed();
  } catch (const Error&) {
    return true;
  }
}

bool HangWatch::has_failed() const {
  try {
    group_.require_sound();
    return false;
  } catch (const GroupError&) {
    return true;
  }
}

void HangWatch::look() {
  constexpr double kGraceMs = 1000;  // for what ends when its communicator is given up
  if (has_ended()) {
    under_way_ = false;
  } else if (has_failed()) {
    if (failed_ms_ == 0) failed_ms_ = now_ms();
    if (now_ms() - failed_ms_ < kGraceMs) return;
    under_way_ = false;
    break_off_();
  } else if (now_ms() - begun_ms_ > group_.timeout_ms()) {
    group_.fail(GroupError(
        fmt::format(
            "rank {} of {} has waited {:g} s for an inference to end: another rank has ended, or does something else",
            group_.rank(), group_.size(), group_.timeout_ms() / 1000.0),
        "its own message may say more; HONE_RANK_TIMEOUT=SECONDS says how long to wait"));
  }
}

void HangWatch::run() {
  constexpr auto kPause = std::chrono::milliseconds(20);
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (!under_way_) changed_.wait(lock, [this] { return stopped_ || under_way_; });
    else changed_.wait_for(lock, kPause, [this] { return stopped_; });
    if (!stopped_ && under_way_) look();
  }
}

}  // namespace hone
