// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor.h"

#include <cstdio>

#include "backends/all.h"
#include "base/env.h"
#include "base/version.h"

namespace hone {

static void describe(const Backend& backend) {
  try {
    const DeviceInfo info = backend.open(0)->info();
    fmt::print("backend {}: {}, {}, {} workers, {} MiB, {} KiB of cache each\n", backend.name, info.name, info.architecture, info.workers,
               info.memory_bytes >> 20, info.cache_bytes >> 10);
    fmt::print("  {}\n", backend.versions());
  } catch (const Error& error) {
    fmt::print("backend {}: not usable: {}\n", backend.name, error.what());
  }
}

int run_doctor() {
  fmt::print("hone {}\n", kVersion);
  for (const Backend* backend : all_backends()) describe(*backend);
  for (const EnvVariable& variable : env_table())
    fmt::print("{}={} ({}: {})\n", variable.name, env_text(variable.name).value_or(""), variable.value_name, variable.help);
  fmt::print("{}", unknown_env_report());
  return 0;
}

}  // namespace hone
