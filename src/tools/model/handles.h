// SPDX-License-Identifier: Apache-2.0
//
// A model's graph behind its handle: what tools about models look into. Those about engines do not (docs/adr/0017).
#pragma once

#include <vector>

#include "capi/build_handles.h"
#include "capi/handles.h"
#include "tools/common/plan_view.h"

namespace hone {

/// The inputs and outputs of a graph, as the C interface tells of those of a model.
inline std::vector<NetworkTensor> tensors_of(const Graph& graph) {
  const hone_model model(graph.clone());
  return tensors_of(&model);
}

}  // namespace hone
