// SPDX-License-Identifier: Apache-2.0
//
// Loading in a full build.
#include "capi/load.h"

#include "builder/events/log_lines.h"
#include "builder/portable.h"
#include "capi/operators/operators.h"

namespace hone::capi {
namespace {

/// Loads the kernels of every profile at its opt shapes; throws Error when one cannot be had here. Contexts find them loaded.
std::shared_ptr<const Engine> tried(std::shared_ptr<const Engine> engine) {
  const std::vector<Profile>& profiles = engine->plan().profiles;
  for (size_t i = 0; i < profiles.size(); ++i) {
    const auto context = engine->context(static_cast<int>(i));
    for (const ProfileRange& range : profiles[i].ranges) context->set_shape(range.tensor, range.opt);
    context->prepare();
  }
  return engine;
}

}  // namespace

std::shared_ptr<const Engine> load_engine(const Plan& plan, const OpenDevice& device, const Logger& log,
                                          const OperatorList& operators) {
  require_operators(plan, operators);
  join_group(plan, *device.device);
  if (!plan.portable) return Engine::load(plan, *device.backend, device.device, operators);
  try {
    return tried(Engine::load(plan, *device.backend, device.device, operators));
  } catch (const Error& error) {
    log.warning(
        "The plan does not fit this machine or version ({}): its tactics are chosen anew, untimed. Build it here for "
        "full speed.",
        error.message());
  }
  LogLines lines(log);
  return Engine::load(retarget(plan, *device.backend, *device.device, {&lines}, operators), *device.backend,
                      device.device, operators);
}

}  // namespace hone::capi
