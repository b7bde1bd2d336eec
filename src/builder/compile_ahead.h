// SPDX-License-Identifier: Apache-2.0
//
// The chosen tactics, compiled. Those of sources that take long are begun side by side, before steps are written in order.
#pragma once

#include <future>
#include <semaphore>
#include <unordered_map>

#include "builder/tune.h"

namespace hone {

class CompileAhead {
 public:
  /// Begins; `choice` has to stay as it is while this lives.
  explicit CompileAhead(const Choice& choice);
  /// Waits for what was begun, compiles what was not.
  Compiled compiled(const Problem& problem, const Candidate& candidate);

 private:
  void begin(const Problem& problem, const Candidate& candidate);

  std::counting_semaphore<> free_cores_;
  std::unordered_map<const Candidate*, std::future<Compiled>> begun_;  // their ends are awaited before the cores go
};

}  // namespace hone
