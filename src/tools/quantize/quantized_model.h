// SPDX-License-Identifier: Apache-2.0
//
// What of a network becomes integers, with which scales: all that `hone quantize` decides before it writes anything.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "quantize/model_edits.h"
#include "tools/common/keep_list.h"
#include "tools/model/calibration.h"
#include "tools/quantize/node_filter.h"
#include "tools/quantize/request.h"
#include "tools/quantize/sensitivity.h"

namespace hone {

struct QuantizedModel {
  hone_model model;  // in floating point, balanced where that is asked for
  Placement placement;
  TensorScales scales;
  Histograms seen;  // empty where a cache gave the scales
  Moments moments;
  ModelEdits edits;               // of constants, against the model's file
  std::vector<std::string> done;  // to the network before it was quantised
  std::string source;             // of the scales
  std::vector<NodeError> ranked;  // where layers were tried alone
  NodeNames kept;                 // of these, in floating point
  std::optional<double> error;    // of what is quantised, where layers were tried
};

/// Throws Error naming the model for one that is quantised already, or of which nothing can be.
QuantizedModel quantized_model(const QuantizeRequest& request, const KeepsFloats& keeps_floats, Graph graph,
                               const Logger& log);

}  // namespace hone
