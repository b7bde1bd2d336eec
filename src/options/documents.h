// SPDX-License-Identifier: Apache-2.0
//
// What else is generated from the flag table besides --help: the page docs/flags.md and completion for bash and zsh.
#pragma once

#include <string>

namespace hone {

/// docs/flags.md.
std::string flags_page();
/// docs/completion.bash; zsh reads it after `autoload bashcompinit && bashcompinit`.
std::string completion_script();

}  // namespace hone
