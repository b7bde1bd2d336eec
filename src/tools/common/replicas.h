// SPDX-License-Identifier: Apache-2.0
//
// An engine on several devices (--device=0,1): each has a copy of the plan and contexts of its own, and is fed by itself. What is measured
// on the first runs on all of them at once and comes to one summary.
#pragma once

#include <deque>
#include <memory>

#include "tools/common/inference.h"

namespace hone {

class Replicas {
 public:
  /// Sets up the further devices of the options, if there are any, and puts them beside the first one's inference. Throws Error where one
  /// cannot run the plan.
  Replicas(const Session& first, Inference& inference, const Options& options, const Voices& voices);

 private:
  std::deque<Options> options_;  // each with one device
  std::deque<Session> sessions_;
  std::deque<Inference> inferences_;
};

}  // namespace hone
