// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace hone {

/// trtexec. `arguments` are those behind the program's name; `command` is the whole command line as typed, for the banner.
int run_trtexec(const std::vector<std::string>& arguments, const std::string& command);

}  // namespace hone
