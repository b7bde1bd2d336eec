// SPDX-License-Identifier: Apache-2.0
//
// What became of the pairs of QuantizeLinear and DequantizeLinear of a network.
#pragma once

#include <string>
#include <vector>

#include "builder/build.h"

namespace hone {

/// One that is a layer of its own: a tensor goes through memory in both types.
struct LoneConversion {
  std::string node, tensor;  // the model's node; what it reads
  bool quantises = true;     // floats to integers; else back
  std::string reason;
};

struct ConversionSurvey {
  size_t conversions = 0;  // of activations, in the model
  std::vector<LoneConversion> alone;
};

/// As build() would treat them; nothing is timed.
ConversionSurvey survey_conversions(Graph given, const BuildOptions& options, const Backend& backend, Device& device,
                                    const Listeners& listeners = {});

}  // namespace hone
