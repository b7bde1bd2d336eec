// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/timed_here.h"

#include <cstdio>
#include <filesystem>
#include <istream>

#include "base/text.h"
#include "builder/problem.h"
#include "builder/problems/listed_problems.h"
#include "builder/problems/offers.h"
#include "tools/tune/described_device.h"
#include "tuner/timing_cache.h"

namespace hone {
namespace {

/// What tells a node that is slower than others of its kind: long enough for a clock, half of it in each of arithmetic and memory.
constexpr std::string_view kProbe = "(%0:f32[64,1024] ); %1 = Linear(%0, const f32[1024,1024], _, ) -> %1";

void tell(const Json& json) {
  fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
  std::fflush(stdout);
}

/// The best tactic's time, the shortest of some: what else happens on a machine only ever adds to it.
double probe_ms(const OpenDevice& device) {
  constexpr int kTimes = 5;
  const Problem problem = parse_problem(kProbe, device.device->info());
  BuildOptions options;
  options.timing_repeats = 16;
  double best = -1;
  for (int i = 0; i < kTimes; ++i) {
    TimingCache cache;
    time_problem(problem, options, *device.backend, *device.device, cache);
    for (const auto& [key, timing] : cache.all())
      if (timing.ms > 0 && (best < 0 || timing.ms < best)) best = timing.ms;
  }
  if (best < 0) throw Error("no tactic for the probe has a time on this device", "see hone bench kernels");
  return best;
}

/// The entries that came in since.
TimingCache added(const TimingCache& now, const TimingCache& before) {
  TimingCache result;
  for (const auto& [key, timing] : now.all())
    if (!before.all().contains(key)) result.put(key, timing);
  return result;
}

class TunerHere {
 public:
  TunerHere(const FriendlyLine& line, const TimedHere& how)
      : options_(line.options.build), how_(how), device_(open_device(line.options.tool.device)) {
    if (const std::string& file = options_.timing_cache_file; std::filesystem::exists(file))
      cache_ = load_timing_cache(file);
    Json hello{{"device", timing_key(device_)}, {"kind", kind_of(device_)}};
    if (how.probe) hello["probeMs"] = probe_ms(device_);
    tell(hello);
  }

  void time(const std::string& key) {
    const TimingCache before = cache_;
    std::function<void(const std::string&)> begin;
    if (how_.singly) begin = [](const std::string& tactic) { tell({{"begun", tactic}}); };
    try {
      const Problem problem = parse_problem(key, device_.device->info());
      const ProblemTimes times = time_problem(problem, options_, *device_.backend, *device_.device, cache_, begin);
      tell({{"done", problem.key()},
            {"known", times.known},
            {"timed", times.timed},
            {"rejected", times.rejected},
            {"entries", added(cache_, before).text()}});
    } catch (const Error& error) {
      tell({{"refused", key}, {"why", error.message()}});
    }
  }

  void save() const {
    if (!options_.timing_cache_file.empty()) save_timing_cache(cache_, options_.timing_cache_file);
  }

 private:
  const BuildOptions& options_;
  const TimedHere how_;
  const OpenDevice device_;
  TimingCache cache_;
};

}  // namespace

void time_here(const FriendlyLine& line, const TimedHere& how, std::istream& keys) {
  TunerHere tuner(line, how);
  for (std::string key; std::getline(keys, key);)
    if (!trim(key).empty()) tuner.time(std::string(trim(key)));
  tuner.save();
}

}  // namespace hone
