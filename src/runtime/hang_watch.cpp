// SPDX-License-Identifier: Apache-2.0
#include "runtime/hang_watch.h"

#include <chrono>
#include <future>

#include "base/clock.h"
#include "base/text.h"

namespace hone {
namespace {

constexpr auto kPause = std::chrono::milliseconds(20);

/// An error of the device is told to those who wait for it.
bool has_passed(const Event& end) {
  try {
    return end.passed();
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

HangWatch::HangWatch(Group& group, std::function<void()> stuck)
    : group_(group), stuck_(std::move(stuck)), thread_([this] { run(); }) {}

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

bool HangWatch::has_failed() const {
  try {
    group_.require_sound();
    return false;
  } catch (const GroupError&) {
    return true;
  }
}

/// The device is asked by a thread of its own: whoever frees memory meanwhile may hold the device until kernels end that never do.
void HangWatch::settle(std::unique_lock<std::mutex>& lock) {
  constexpr auto kGrace = std::chrono::seconds(2);  // for what ends when its communicator is given up
  const auto over = [this] { return stopped_ || !under_way_; };
  changed_.wait_for(lock, kGrace, over);
  if (over()) return;
  std::packaged_task<bool(const Event*)> ask([](const Event* end) { return end != nullptr && has_passed(*end); });
  std::future<bool> answer = ask.get_future();
  std::thread asker(std::move(ask), end_);
  if (answer.wait_for(kGrace) != std::future_status::ready || !answer.get()) stuck_();
  under_way_ = false;
  asker.join();
}

void HangWatch::look(std::unique_lock<std::mutex>& lock) {
  if (has_failed()) {
    settle(lock);
  } else if (end_ != nullptr && has_passed(*end_)) {
    under_way_ = false;
  } else if (now_ms() - begun_ms_ > group_.timeout_ms()) {
    group_.fail(GroupError(
        fmt::format(
            "rank {} of {} has waited {:g} s for an inference to end: another rank has ended, or does something else",
            group_.rank(), group_.size(), group_.timeout_ms() / 1000.0),
        "its own message may say more; HONE_RANK_TIMEOUT=SECONDS says how long to wait"));
  }
}

void HangWatch::run() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (!under_way_) changed_.wait(lock, [this] { return stopped_ || under_way_; });
    else changed_.wait_for(lock, kPause, [this] { return stopped_; });
    if (!stopped_ && under_way_) look(lock);
  }
}

}  // namespace hone
