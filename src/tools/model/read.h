// SPDX-License-Identifier: Apache-2.0
//
// A model's file, for tools that look into its graph: with the operators of the libraries that the command line named.
#pragma once

#include <string>

#include "onnx/importer.h"

namespace hone {

ImportedModel read_model(const std::string& path, const Logger& log);

}  // namespace hone
