// SPDX-License-Identifier: Apache-2.0
//
// What a refusal says. For tests only.
#pragma once

#include <string>

#include "base/error.h"

namespace hone {

/// The text of the Error that `body` throws; "no error" when it throws none.
std::string error_of(auto&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace hone
