// SPDX-License-Identifier: Apache-2.0
//
// The network that an engine is built of, in ONNX's form: for viewers and for eyes. Its nodes are Hone's operators, which no ONNX runtime
// has; large constants are known by type and sizes alone.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/log.h"

namespace hone {

/// Of an ONNX model, whose weights in other files are in the folder.
void save_network_view(const Blob& model, const std::string& folder, const std::string& path, const Logger& log);

}  // namespace hone
