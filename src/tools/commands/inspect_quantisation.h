// SPDX-License-Identifier: Apache-2.0
//
// `hone inspect MODEL.onnx --quantisation`: which conversions between floats and integers stay layers of their own, and why.
#pragma once

#include "tools/common/friendly.h"

namespace hone {

int inspect_quantisation(const FriendlyLine& line);

}  // namespace hone
