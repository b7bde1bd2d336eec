// SPDX-License-Identifier: Apache-2.0
//
// `--best`: the fastest of the types that are allowed.
#pragma once

#include <memory>

#include "builder/build.h"
#include "precision/running_plan.h"

namespace hone {

/// Builds the network in FP32, in each type that the options allow, in all together, and mixed part by part, runs the engines
/// in turns on `sample`, and returns the plan of the fastest. One that computes in fewer bits has to be clearly faster, and its
/// results as near to those in FP32 as `options.accuracy_budget` says. Where the network does not run on the sample, and
/// where nothing may be timed, the plan of a build with all types. Throws what build() throws.
Plan choose_precision(const Graph& given, const BuildOptions& options, const Backend& backend,
                      const std::shared_ptr<Device>& device, TimingCache& cache, const Listeners& listeners,
                      const Sample& sample);

}  // namespace hone
