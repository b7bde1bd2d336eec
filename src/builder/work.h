// SPDX-License-Identifier: Apache-2.0
//
// How much a layer has to do at the least: what reports hold a measured time against.
#pragma once

#include "builder/regions.h"

namespace hone {

/// Additions and multiplications of the products, convolutions and attentions inside; other arithmetic counts nothing.
int64_t flops_of(const Region& region, const SymbolValues& sizes);

}  // namespace hone
