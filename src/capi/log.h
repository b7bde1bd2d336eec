// SPDX-License-Identifier: Apache-2.0
//
// The caller's log as a Logger.
#pragma once

#include <string>

#include "base/log.h"
#include "capi/guard.h"
#include "hone/hone.h"

namespace hone::capi {

/// Drops everything when there is no log.
inline Logger logger_for(const hone_log* log) {
  const hone_log sink = log == nullptr ? hone_log{.size = sizeof(hone_log)} : taken(log, "log");
  if (sink.write == nullptr) return Logger([](Severity, std::string_view) {});
  Logger logger([sink](Severity severity, std::string_view text) {
    sink.write(sink.user, static_cast<hone_severity>(severity), std::string(text).c_str());
  });
  logger.set_threshold(static_cast<Severity>(sink.threshold));
  return logger;
}

}  // namespace hone::capi
