// SPDX-License-Identifier: Apache-2.0
//
// The programs that --gen-script writes, with marks (@MODEL@) where the command line's values go.
#pragma once

namespace hone {

extern const char* const kPythonScript;
extern const char* const kCppScript;

}  // namespace hone
