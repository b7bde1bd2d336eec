// SPDX-License-Identifier: Apache-2.0
//
// Where a device computes behind the back of its caller, an inference that waits for a rank that has gone would never end. A thread looks
// whether the last one has ended in the group's time, and otherwise ends the group: what is under way on the device is given up then,
// and everybody who waits for it goes on and is told why.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "device/device.h"
#include "device/group.h"

namespace hone {

class HangWatch {
 public:
  explicit HangWatch(Group& group);
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  /// `end` has been recorded behind an inference. It lives as long as the watch.
  void inference(const Event& end);

 private:
  void run();

  Group& group_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const Event* end_ = nullptr;  // of the last one; null where it has ended
  double begun_ms_ = 0;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace hone
