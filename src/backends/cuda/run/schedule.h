// SPDX-License-Identifier: Apache-2.0
//
// Which launches of a recording may run beside each other. They are written down in an order in which each finds its operands;
// of that order only what memory demands is kept: a launch waits for those before it that write what it touches or read what it
// writes. What is left is spread over a few streams, which become the branches of a graph.
#pragma once

#include <span>
#include <vector>

#include "device/device.h"

namespace hone::cuda {

struct Slot {
  int stream = 0;
  std::vector<size_t> waits;  // earlier launches in other streams that must have finished
};

/// One slot per launch. Launches whose operands' sizes are not known wait for everything before them.
std::vector<Slot> schedule(std::span<const Launch> launches, int streams);

}  // namespace hone::cuda
