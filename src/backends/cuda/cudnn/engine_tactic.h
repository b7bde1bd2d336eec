// SPDX-License-Identifier: Apache-2.0
//
// An engine of cuDNN as the parameters of a tactic and as part of a kernel's code.
#pragma once

#include <limits>
#include <vector>

#include "backends/cuda/cudnn/cudnn_graph.h"

namespace hone::cuda {

struct EngineTactic {
  int64_t engine = 0;
  std::vector<int64_t> knobs = {};  // type, value, type, value, ...
  static void fields(auto& self, auto& visit) {
    visit("engine", self.engine, 0, std::numeric_limits<int32_t>::max());
    visit("knobs", self.knobs, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(),
          size_t{2 * CUDNN_KNOB_TYPE_COUNTS});
  }
  EngineChoice choice() const { return {.engine = engine, .knobs = knobs}; }
};

inline constexpr int64_t kMaxWorkspace = int64_t{1} << 30;

}  // namespace hone::cuda
