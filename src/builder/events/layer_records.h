// SPDX-License-Identifier: Apache-2.0
//
// What was tried for each layer and what was taken: the part of a plan that `--explain` shows.
#pragma once

#include "builder/events/listener.h"
#include "plan/plan.h"

namespace hone {

class LayerRecords : public BuildListener {
 public:
  void tactics_chosen(const Choice& choice, double seconds) override;
  /// Of all profiles in order.
  std::vector<LayerRecord> take() { return std::move(records_); }

 private:
  std::vector<LayerRecord> records_;
};

}  // namespace hone
