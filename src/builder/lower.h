// SPDX-License-Identifier: Apache-2.0
//
// From chosen layers to the steps and buffers of one profile.
#pragma once

#include "builder/tune.h"

namespace hone {

/// Collects constants and code of all profiles, each stored once.
class PlanAssets {
 public:
  explicit PlanAssets(Plan& plan) : plan_(plan) {}
  int32_t constant(const Tensor& tensor);
  int32_t blob(const Blob& blob);

 private:
  Plan& plan_;
  std::map<std::string, int32_t> constants_, blobs_;
};

Profile lower(const Choice& choice, const TuneContext& context, PlanAssets& assets);

}  // namespace hone
