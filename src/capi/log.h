// SPDX-License-Identifier: Apache-2.0
//
// The caller's log as a Logger.
#pragma once

#include <string>

#include "base/log.h"
#include "hone/hone.h"

namespace hone::capi {

/// Drops everything when there is no log.
inline Logger logger_for(const hone_log* log) {
  if (log == nullptr || log->write == nullptr) return Logger([](Severity, std::string_view) {});
  Logger logger([sink = *log](Severity severity, std::string_view text) {
    sink.write(sink.user, static_cast<hone_severity>(severity), std::string(text).c_str());
  });
  logger.set_threshold(static_cast<Severity>(log->threshold));
  return logger;
}

}  // namespace hone::capi
