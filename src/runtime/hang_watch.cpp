// SPDX-License-Identifier: Apache-2.0
#include "runtime/hang_watch.h"

#include <chrono>

#include "base/clock.h"
#include "base/text.h"

namespace hone {

HangWatch::HangWatch(Group& group) : group_(group), thread_([this] { run(); }) {}

HangWatch::~HangWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HangWatch::inference(const Event& end) {
  {
    const std::lock_guard lock(mutex_);
    end_ = &end;
    begun_ms_ = now_ms();
  }
  changed_.notify_all();
}

void HangWatch::run() {
  constexpr auto kPause = std::chrono::milliseconds(20);
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (end_ == nullptr) changed_.wait(lock, [this] { return stopped_ || end_ != nullptr; });
    else changed_.wait_for(lock, kPause, [this] { return stopped_; });
    if (stopped_ || end_ == nullptr) continue;
    if (end_->passed()) {
      end_ = nullptr;
    } else if (now_ms() - begun_ms_ > group_.timeout_ms()) {
      end_ = nullptr;
      group_.fail(GroupError(
          fmt::format(
              "rank {} of {} has waited {:g} s for an inference to end: another rank has ended, or does something else",
              group_.rank(), group_.size(), group_.timeout_ms() / 1000.0),
          "its own message may say more; HONE_RANK_TIMEOUT=SECONDS says how long to wait"));
    }
  }
}

}  // namespace hone
