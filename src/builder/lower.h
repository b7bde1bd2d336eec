// SPDX-License-Identifier: Apache-2.0
//
// From chosen layers to the steps and buffers of one profile.
#pragma once

#include "base/spill.h"
#include "builder/tune.h"

namespace hone {

/// Collects constants and code of all profiles, each stored once. Of a large model the constants wait on disk for the plan to
/// be written, since packing makes them anew.
class PlanAssets {
 public:
  PlanAssets(Plan& plan, const Graph& model);
  int32_t constant(const Tensor& tensor);
  size_t bytes_of(int32_t constant) const { return plan_.constants[static_cast<size_t>(constant)].bytes().size(); }
  int32_t blob(const Blob& blob);

 private:
  Plan& plan_;
  std::map<std::string, int32_t> constants_, blobs_;
  bool large_;
  SpillFile spill_;
};

/// Compiles what was chosen; tells listeners what came of it.
Profile lower(const BuildSession& session, const ProfilePoints& points, const Choice& choice, PlanAssets& assets);

}  // namespace hone
