// SPDX-License-Identifier: Apache-2.0
//
// Logs of trtexec, Hone's or NVIDIA's, read back: the options of a build, the figures of a run, as JSON with the keys of TREx's
// parse_trtexec_log.
#pragma once

#include <string>
#include <string_view>

namespace hone {

std::string build_metadata(std::string_view log);
std::string profile_metadata(std::string_view log);

}  // namespace hone
