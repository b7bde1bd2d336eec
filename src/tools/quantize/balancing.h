// SPDX-License-Identifier: Apache-2.0
//
// The passes over samples that balancing a network, and correcting its biases, take.
#pragma once

#include "quantize/balance.h"
#include "tools/quantize/quantized_model.h"

namespace hone {

/// Does what the request asks for to the network that is not quantised yet; adds edits and a line for each.
void balance(const QuantizeRequest& request, const TakesPart& takes_part, const hone_device& device,
             QuantizedModel& result);

/// Adds edits of biases, which are for the file alone: they belong to the rounded weights. `place` says again what the result's placement
/// says, of a copy of its graph.
void correct_biases(const QuantizeRequest& request, const hone_device& device,
                    const std::function<Placement(const Graph&)>& place, QuantizedModel& result);

}  // namespace hone
