// SPDX-License-Identifier: Apache-2.0
//
// The first word of commands that have two, typed alone or before a second word that is none: it is told which there are.
#pragma once

#include "tools/commands/commands.h"
#include "tools/companion/arguments.h"

namespace hone {

int run_group(const CompanionCommand& command, Words words);

}  // namespace hone
