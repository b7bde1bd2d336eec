// SPDX-License-Identifier: Apache-2.0

#include "tuner/estimate.h"

#include <algorithm>

namespace hone {

double estimate_ms(const Work& work, const Cost& cost, const NominalRates& rates) {
  const double arithmetic = work.flops * cost.arithmetic / rates.f32_flops;
  const double traffic =
      work.operands * cost.operands / rates.cache_bytes + work.weights * cost.weights / rates.memory_bytes;
  return rates.launch_ms + 1e3 * std::max(arithmetic, traffic);
}

}  // namespace hone
