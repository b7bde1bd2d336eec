// SPDX-License-Identifier: Apache-2.0
//
// Loading in a build without importer, passes, tuner and builder: a plan fits or it does not.
#include "capi/load.h"

#include "capi/operators/operators.h"

namespace hone::capi {

std::shared_ptr<const Engine> load_engine(const Plan& plan, const OpenDevice& device, const Logger&,
                                          const OperatorList& operators) {
  require_operators(plan, operators);
  join_group(plan, *device.device);
  return Engine::load(plan, *device.backend, device.device, operators);
}

}  // namespace hone::capi
