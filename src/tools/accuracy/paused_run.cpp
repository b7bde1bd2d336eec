// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/paused_run.h"

namespace hone {

PausedRun::PausedRun(RunningPlan& plan, const Sample& sample) : plan_(plan), thread_([this, sample] { run(sample); }) {}

PausedRun::~PausedRun() {
  abandoned_ = true;
  if (!ended_) go_.release();
  thread_.join();
}

const Step* PausedRun::next() {
  if (ended_) return nullptr;
  go_.release();
  stopped_.acquire();
  if (failure_) std::rethrow_exception(failure_);
  return ended_ ? nullptr : step_;
}

void PausedRun::layer(const Step& step, double /*milliseconds*/) {
  if (abandoned_) return;
  step_ = &step;
  stopped_.release();
  go_.acquire();
}

void PausedRun::run(const Sample& sample) {
  go_.acquire();
  if (!abandoned_) {
    plan_.context().set_profiler(this);
    try {
      plan_.run(sample);
    } catch (const Error&) {
      failure_ = std::current_exception();
    }
    plan_.context().set_profiler(nullptr);
  }
  ended_ = true;
  stopped_.release();
}

}  // namespace hone
