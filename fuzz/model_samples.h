// SPDX-License-Identifier: Apache-2.0
//
// Small ONNX models that targets begin with: constants, open sizes, bodies, functions.
#pragma once

#include <string>
#include <vector>

namespace hone::fuzz {

std::vector<std::string> model_samples();

}  // namespace hone::fuzz
