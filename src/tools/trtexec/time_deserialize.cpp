// SPDX-License-Identifier: Apache-2.0
//
// Two runs to warm up, one first run, twenty timed.
#include "tools/trtexec/time_deserialize.h"

#include <unistd.h>

#include "tools/trtexec/memory_usage.h"

namespace hone {
namespace {

constexpr int kWarmUp = 2, kTimed = 20;
constexpr double kTolerance = 2.0, kGiB = 1 << 30;

double gib(int name) { return static_cast<double>(sysconf(name)) * static_cast<double>(sysconf(_SC_PAGESIZE)) / kGiB; }

}  // namespace

bool time_deserialize(const Session& session, const Logger& log) {
  log.info("Begin deserialization warmup...");
  for (int i = 0; i < kWarmUp; ++i) session.time_load();
  log.info("Begin deserialization engine timing...");
  const double first = session.time_load();
  log.info("First deserialization time = {:g} milliseconds", first);
  log.info("Free GPU memory = {:g} GiB, total GPU memory = {:g} GiB", gib(_SC_AVPHYS_PAGES), gib(_SC_PHYS_PAGES));
  double total = 0;
  for (int i = 0; i < kTimed; ++i) total += session.time_load();
  const double bytes = static_cast<double>(session.plan_bytes()), average = total / kTimed;
  log.info("Free GPU memory = {:g} GiB, newly allocated GPU memory = {:g} GiB, total GPU memory = {:g} GiB",
           gib(_SC_AVPHYS_PAGES), bytes / kGiB, gib(_SC_PHYS_PAGES));
  log.info(
      "Total deserialization time = {:g} milliseconds in {} iterations, average time = {:g} milliseconds, first time = "
      "{:g} milliseconds.",
      total, kTimed, average, first);
  log.info("Deserialization Bandwidth = {:g} GB/s", 1e-6 * bytes * kTimed / total);
  if (first <= kTolerance * average) return true;
  log.error("First deserialization time divided by average time is {:g}. Exceeds tolerance of {:g}x.", first / average,
            kTolerance);
  return false;
}

}  // namespace hone
