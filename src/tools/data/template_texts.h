// SPDX-License-Identifier: Apache-2.0
//
// The programs that `hone template` writes; @WORDS@ are filled in.
#pragma once

namespace hone {

extern const char* const kNetworkTemplate;
extern const char* const kConfigTemplate;
extern const char* const kSurgeonTemplate;

}  // namespace hone
