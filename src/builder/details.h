// SPDX-License-Identifier: Apache-2.0
//
// What a layer is, for reports: its kind and the parameters that layer information shows.
#pragma once

#include "builder/regions.h"
#include "tensor/attrs.h"

namespace hone {

/// "Convolution", "MatrixMultiply", "PointWise", …
std::string layer_kind(const Region& region);
/// Named as in the layer information of the reference: Kernel, Stride, PrePadding, OutMaps, Groups, Activation, …
Attrs layer_details(const Region& region);

}  // namespace hone
