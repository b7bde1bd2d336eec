// SPDX-License-Identifier: Apache-2.0
//
// The time of a tactic that nobody has measured: a roofline. What the problem needs at the least, times what the tactic makes of
// it, at the rates that the device has by its kind; arithmetic or traffic decides, whichever takes longer. Inputs and outputs were
// written or will be read by a neighbour, and lie in a cache; the rest of the network has pushed the weights out of it.
#pragma once

#include "device/tactic.h"

namespace hone {

/// What a problem needs at the least.
struct Work {
  double flops = 0;     // of products, convolutions and attentions; other arithmetic counts nothing
  double operands = 0;  // bytes of inputs and outputs, each once
  double weights = 0;   // bytes of constants
  double bytes() const { return operands + weights; }
};

/// Pure: no clock, the same on every day.
double estimate_ms(const Work& work, const Cost& cost, const NominalRates& rates);

}  // namespace hone
