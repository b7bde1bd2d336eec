// SPDX-License-Identifier: Apache-2.0
//
// Names of generated code for profilers.
#include "base/code_names.h"

#include "capi/guard.h"
#include "hone/tools.h"

using hone::capi::guarded;
using hone::capi::require;

hone_status hone_write_perf_map(const char** written) {
  return guarded([&] {
    require(written, "written");
    static const std::string path = hone::write_perf_map();
    *written = path.c_str();
  });
}

hone_status hone_write_jit_dump(const char* folder, const char** written) {
  return guarded([&] {
    require(folder, "folder");
    require(written, "written");
    static const std::string path = hone::write_jit_dump(folder);
    *written = path.c_str();
  });
}
