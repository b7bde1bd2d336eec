// SPDX-License-Identifier: Apache-2.0
//
// The model of one rank: its shares of the weights, and what it does together with the others. Weights in other files stay ranges of
// them; only what the rank keeps is read, when the model is written.
#pragma once

#include "edit/shard/division.h"

namespace hone::edit {

/// Whose operators the ranks' collectives are: DistCollective of TensorRT, or ONNX Runtime's of com.microsoft.
enum class CollectiveForm { tensorrt, microsoft };

Model rank_model(const Model& model, const Facts& facts, const Division& division, int rank, CollectiveForm form);

}  // namespace hone::edit
