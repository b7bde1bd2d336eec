// SPDX-License-Identifier: Apache-2.0
//
// Networks by hand as ONNX files.
#pragma once

#include <string>

#include "capi/build_handles.h"

namespace hone::capi {

std::string file_of(const hone_network& network);

}  // namespace hone::capi
