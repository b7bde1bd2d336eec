// SPDX-License-Identifier: Apache-2.0
//
// Errors that say what a program should do at another time.
#pragma once

#include "base/error.h"

namespace hone {

/// What a program asked for is right, but not now: something else has to be done first.
class StateError : public Error {
 public:
  using Error::Error;
};

/// The host or a device has too little memory.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// Somebody asked for the end of what was going on.
class Cancelled : public Error {
 public:
  using Error::Error;
};

}  // namespace hone
