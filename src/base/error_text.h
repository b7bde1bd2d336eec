// SPDX-License-Identifier: Apache-2.0
//
// Errors that come through an interface of texts.
#pragma once

#include "base/error.h"

namespace hone {

/// The error whose what() this text is.
Error parse_error(std::string_view text);

}  // namespace hone
