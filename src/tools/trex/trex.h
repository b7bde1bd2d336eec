// SPDX-License-Identifier: Apache-2.0
//
// The program trex: process, draw and summary with the flags of NVIDIA's engine explorer.
#pragma once

#include <string>
#include <vector>

namespace hone {

/// `command` is the first word.
int run_trex(const std::string& command, const std::vector<std::string>& words);

}  // namespace hone
