// SPDX-License-Identifier: Apache-2.0
//
// An inference that stops behind each step, so that several of them go side by side and what they compute is compared at once: no
// tensor has to live longer than the network itself needs it. It has a thread of its own, which runs only while its owner waits.
#pragma once

#include <atomic>
#include <exception>
#include <semaphore>
#include <thread>

#include "precision/running_plan.h"

namespace hone {

class PausedRun final : private Profiler {
 public:
  /// The inference begins with the first next().
  PausedRun(RunningPlan& plan, const Sample& sample);
  /// Runs to the end of the inference.
  ~PausedRun() override;
  PausedRun(const PausedRun&) = delete;
  PausedRun& operator=(const PausedRun&) = delete;

  /// Runs on to the end of the next step, whose buffers can be read then; null at the end. Throws what the inference throws.
  const Step* next();
  ExecutionContext& context() { return plan_.context(); }

 private:
  void layer(const Step& step, double milliseconds) override;
  void run(const Sample& sample);

  RunningPlan& plan_;
  const Step* step_ = nullptr;
  bool ended_ = false;
  std::atomic<bool> abandoned_ = false;
  std::exception_ptr failure_;
  std::binary_semaphore go_{0}, stopped_{0};
  std::thread thread_;
};

}  // namespace hone
