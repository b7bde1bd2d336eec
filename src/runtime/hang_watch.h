// SPDX-License-Identifier: Apache-2.0
//
// Where a device computes behind the back of its caller, an inference that waits for a rank that has gone would never end. A thread looks
// whether the last one has ended in the group's time, and otherwise ends the group: what is under way on the device is given up then,
// and everybody who waits for it goes on and is told why. What does not end even then ends with the process.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "device/device.h"
#include "device/group.h"

namespace hone {

class HangWatch {
 public:
  /// `stuck` is called behind a group that has failed, where the inference has not ended a moment later, or the device does not answer.
  HangWatch(Group& group, std::function<void()> stuck);
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  /// An inference begins: from here on it has the group's time.
  void begin();
  /// `end` has been recorded behind it. It lives as long as the watch.
  void end(const Event& end);

 private:
  void run();
  void look(std::unique_lock<std::mutex>& lock);
  void settle(std::unique_lock<std::mutex>& lock);
  bool has_failed() const;

  Group& group_;
  std::function<void()> stuck_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool under_way_ = false;
  const Event* end_ = nullptr;  // of what is under way; null while it is being enqueued
  double begun_ms_ = 0;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace hone
