// SPDX-License-Identifier: Apache-2.0
//
// How a cut of a result is a cut of what it is made of, operator by operator: from the end to the beginning of a pair.
#pragma once

#include "edit/shard/division.h"

namespace hone::edit {

class Cutter {
 public:
  Cutter(const Facts& facts, Division& division) : facts_(facts), division_(division) {}

  /// Cuts the tensor and all that it is made of, up to products with weights; false, with the reason, where it cannot be. What was done
  /// until then stays in the division: it is a trial's.
  bool want(const std::string& tensor, const Cut& cut);
  /// The operand of a node; constants are cut, too.
  bool want_operand(size_t position, size_t operand, const Cut& cut);
  const std::string& reason() const { return reason_; }
  /// What has been cut since the beginning.
  const std::set<std::string>& touched() const { return touched_; }

 private:
  bool refuse(std::string reason);
  bool divides(const std::string& tensor, const Cut& cut);
  bool through(size_t position, const std::string& result, const Cut& cut);
  bool elementwise(size_t position, const std::string& result, const Cut& cut);
  bool product(size_t position, const std::string& result, const Cut& cut);
  bool reshape(size_t position, const std::string& result, const Cut& cut);
  bool expand(size_t position, const std::string& result, const Cut& cut);
  bool split(size_t position, const Cut& cut);
  bool axes_between(size_t position, const std::string& result, const Cut& cut, bool removed);
  bool gather(size_t position, const Cut& cut);
  bool concat(size_t position, const Cut& cut);
  std::optional<std::vector<int64_t>> sizes_of_share(const Shape& from, const Shape& to, const Cut& cut) const;

  const Facts& facts_;
  Division& division_;
  std::string reason_;
  std::set<std::string> touched_;
};

}  // namespace hone::edit
