// SPDX-License-Identifier: Apache-2.0
//
// What the companions' exit status says, so that a script can tell a failed comparison from one that never happened.
#pragma once

#include <string>

#include "base/error.h"

namespace hone {

enum class ExitStatus {
  passed = 0,      // done, and all that was compared agrees
  failed = 1,      // compared or checked, and it does not
  usage = 2,       // the command line is wrong, or asks for nothing
  no_file = 3,     // a file is missing or cannot be read
  no_backend = 4,  // what shall run is not there: a library, a device
  internal = 5,    // a defect of Hone
};

/// An error that knows the exit status it leads to; any other Error leads to `failed`.
class StatusError : public Error {
 public:
  StatusError(ExitStatus status, std::string message, std::string hint = {})
      : Error(std::move(message), std::move(hint)), status_(status) {}
  ExitStatus status() const { return status_; }

 private:
  ExitStatus status_;
};

class UsageError : public StatusError {
 public:
  explicit UsageError(std::string message, std::string hint = {})
      : StatusError(ExitStatus::usage, std::move(message), std::move(hint)) {}
};

/// Throws a StatusError (no_file) where there is no regular file or folder that can be read.
void need_file(const std::string& path);

}  // namespace hone
