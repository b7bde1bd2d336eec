// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/log.h"
#include "tools/common/session.h"

namespace hone {

/// --timeDeserialize: measures turning the plan's bytes into an engine. False when the first time is more than twice the mean.
bool time_deserialize(const Session& session, const Logger& log);

}  // namespace hone
