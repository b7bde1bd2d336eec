// SPDX-License-Identifier: Apache-2.0
#include "tools/debug/until.h"

#include "base/text.h"

namespace hone {

CompanionFlag until_flag() {
  return {"--until", Takes::one, "<good|bad|count>",
          "the first iteration that passes, the first that fails, or so many"};
}

Until::Until(const Arguments& arguments) : word_(arguments.value("--until")) {
  if (!arguments.has("--until")) throw UsageError("--until is missing", "--until good, --until bad or --until 10");
  if (word_ == "good" || word_ == "bad") return;
  const std::optional<int64_t> count = parse_integer(word_);
  if (!count || *count < 1)
    throw UsageError(fmt::format("--until takes good, bad or a number from 1 on, not '{}'", word_));
  count_ = *count;
}

bool Until::goes_on(bool passed) {
  ++done_;
  good_ = word_ == "good" ? passed : good_ && passed;
  if (word_ == "good") return !passed;
  if (word_ == "bad") return passed;
  return done_ < count_;
}

}  // namespace hone
