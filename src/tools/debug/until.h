// SPDX-License-Identifier: Apache-2.0
//
// --until of `hone debug build` and `hone debug repeat`: how long they go on, and what their exit status says of it.
#pragma once

#include "tools/debug/checker.h"

namespace hone {

CompanionFlag until_flag();

class Until {
 public:
  /// Throws UsageError where the flag is missing or says something else than good, bad or a number.
  explicit Until(const Arguments& arguments);

  /// Whether another iteration is wanted behind one that passed or not.
  bool goes_on(bool passed);
  int64_t remaining() const { return count_ < 0 ? -1 : count_ - done_; }
  /// 0 where what was looked for came: a good iteration, or nothing but good ones.
  ExitStatus status() const { return good_ ? ExitStatus::passed : ExitStatus::failed; }

 private:
  std::string word_;
  int64_t count_ = -1, done_ = 0;
  bool good_ = true;
};

}  // namespace hone
