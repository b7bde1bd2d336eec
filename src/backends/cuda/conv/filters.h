// SPDX-License-Identifier: Apache-2.0
//
// What the families of products and convolutions share: weights as rows of filters, and the epilogue as switches of the code.
#pragma once

#include <string>

#include "regions/region_match.h"

namespace hone::cuda {

/// Weights of a Conv, ConvTranspose or Linear as [filter][tap][channel of the group], scaled, in their own type.
Tensor filter_rows(const RegionMatch& match, const Node& node);
/// ACTIVATION, ALPHA and BETA, as activation.cuh expects them.
std::string activation_text(const Activation& activation);
/// HAS_BIAS, HAS_RESIDUAL, RESIDUAL_LAST, and the activation.
std::string epilogue_text(const RegionMatch& match, bool bias);

}  // namespace hone::cuda
