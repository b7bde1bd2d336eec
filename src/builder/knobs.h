// SPDX-License-Identifier: Apache-2.0
//
// What of a build can be turned one by one: its effort, its kernel libraries, its passes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "builder/options.h"

namespace hone {

struct Knob {
  std::string name;
  std::vector<std::string> values;
  std::string standard;  // what a build has
  std::string help;
};

const std::vector<Knob>& build_knobs();
/// Throws Error for an unknown knob and for what is no value of it.
void turn_knob(BuildOptions& options, std::string_view knob, std::string_view value);

}  // namespace hone
