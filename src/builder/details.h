// SPDX-License-Identifier: Apache-2.0
//
// What a layer is, for reports: its kind, the parameters that layer information shows, and how much it has to do at the least.
#pragma once

#include "builder/regions.h"
#include "tensor/attrs.h"
#include "tuner/estimate.h"

namespace hone {

/// "Convolution", "MatrixMultiply", "PointWise", …
std::string layer_kind(const Region& region);
/// Named as in the layer information of the reference: Kernel, Stride, PrePadding, OutMaps, Groups, Activation, …
Attrs layer_details(const Region& region);
/// Additions and multiplications of the matmuls, convolutions and attentions inside; other arithmetic counts nothing.
int64_t flops_of(const Region& region, const SymbolValues& sizes);
/// At the problem's sizes; what has none yet counts nothing.
Work work_of(const Problem& problem);

}  // namespace hone
