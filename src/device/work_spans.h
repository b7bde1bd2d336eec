// SPDX-License-Identifier: Apache-2.0
//
// Where workers were busy while a recording ran as it always does: what a time line is drawn of. Beside Recording, since a device
// whose workers cannot be told apart has nothing to tell.
#pragma once

#include <chrono>
#include <vector>

#include "device/device.h"

namespace hone {

using SpanClock = std::chrono::steady_clock;

/// One worker at one launch.
struct WorkSpan {
  size_t launch = 0;
  int worker = 0;
  SpanClock::time_point begin, end;
};

/// A recording that keeps such spans.
class TellsSpans {
 public:
  virtual ~TellsSpans() = default;
  /// As Recording::replay(); `spans` is emptied and filled, those of each worker in order.
  virtual void replay(Stream& stream, std::vector<WorkSpan>& spans) = 0;
};

}  // namespace hone
