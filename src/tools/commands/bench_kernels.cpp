// SPDX-License-Identifier: Apache-2.0
//
// `hone bench kernels`: every way to solve one problem, the reference first, the machine's ceiling last. A problem is given by
// its key, as timing caches hold it: what a layer of some model looked like, without its weights.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "backends/all.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "builder/details.h"
#include "builder/problem.h"
#include "tools/commands/commands.h"
#include "tools/common/terminal.h"
#include "tuner/measure.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{"bench kernels",
                                        "KEY | FILE | -",
                                        "Times every way to solve a problem. KEY is that of a problem, or a line of a "
                                        "timing cache (hone cache list --keys "
                                        "FILE); a file or standard input may hold several, one a line.",
                                        {{"--device", "<name>", "", "cpu (default) or cuda:0"},
                                         {"--repeats", "<count>", "", "how often each is timed (default 16)"}},
                                        false};
  return kCommand;
}

constexpr int64_t kRepeats = 16;

std::vector<Candidate> candidates_for(const Problem& problem, const Backend& backend, Json& refused) {
  std::vector<Candidate> candidates;
  for (const TacticSource* source : backend.sources) {
    if (source->name() == "reference") continue;  // timed by itself: it takes too long for the rotation
    Candidates offers;
    source->propose(problem, offers);
    for (const Tactic& tactic : offers.offers())
      candidates.push_back(
          {.tactic = tactic, .source = source, .key = tactic.text(), .timing = {}, .timed_now = false});
    for (const Candidates::Refusal& refusal : offers.refusals())
      refused.push_back({{"tactic", fmt::format("{}.{}", source->name(), refusal.tactic)}, {"why", refusal.reason}});
  }
  return candidates;
}

double reference_ms(const Problem& problem) {
  const std::vector<Tensor> inputs = random_inputs(problem.region, 1);
  const double start = now_ms();
  const std::vector<Tensor> outputs = evaluate(problem.region, inputs);
  return now_ms() - start;
}

double floor_ms(const Problem& problem, const Work& work, const Ceilings& ceilings) {
  const auto& inputs = problem.region.inputs();
  const double rate = ceilings.flops_of(inputs.empty() ? DType::f32 : inputs[0]->type.dtype);
  const double flops = rate > 0 ? work.flops / rate : 0;
  const double bytes = ceilings.bytes_per_second > 0 ? work.bytes() / ceilings.bytes_per_second : 0;
  return 1e3 * std::max(flops, bytes);
}

Json rung(std::string_view name, double ms, const Work& work, double floor) {
  Json row{{"tactic", name}, {"ms", ms}};
  if (ms <= 0) return row;
  row["gflopPerSecond"] = work.flops / ms / 1e6;
  row["gigabytesPerSecond"] = work.bytes() / ms / 1e6;
  row["shareOfCeiling"] = floor / ms;
  return row;
}

/// Slowest first; rejected tactics among the refusals.
Json ladder(const std::string& key, OpenDevice& device, int repeats) {
  const Problem problem = parse_problem(key, device.device->info());
  Json result{{"problem", problem.key()}, {"device", device.device->info().name}};
  const Work work = work_of(problem);
  const double floor = floor_ms(problem, work, device.device->ceilings());
  result["flops"] = static_cast<int64_t>(work.flops);
  result["bytes"] = static_cast<int64_t>(work.bytes());
  Json refused = Json::array();
  std::vector<Candidate> candidates = candidates_for(problem, *device.backend, refused);
  TimingCache none;
  LoadAhead ahead(*device.backend, *device.device);
  measure(problem, candidates, ahead, *device.device, {.repeats = repeats}, none);
  std::ranges::stable_sort(candidates, std::ranges::greater{}, [](const Candidate& c) { return c.timing.ms; });
  result["ladder"] = Json::array({rung("reference", reference_ms(problem), work, floor)});
  for (const Candidate& candidate : candidates) {
    if (candidate.timing.ms < 0) {
      refused.push_back({{"tactic", candidate.tactic.text()}, {"why", candidate.timing.note}});
      continue;
    }
    Json row = rung(candidate.tactic.text(), candidate.timing.ms, work, floor);
    row["spread"] = candidate.timing.spread;
    result["ladder"].push_back(std::move(row));
  }
  result["ladder"].push_back(rung("ceiling", floor, work, floor));
  result["refused"] = std::move(refused);
  return result;
}

void print(const Json& result) {
  const Page page;
  page.title(result["problem"].get<std::string>());
  page.line(fmt::format("  on {}: {:.2f} MFLOP, {:.3f} MB", result["device"].get<std::string>(),
                        result["flops"].get<double>() / 1e6, result["bytes"].get<double>() / 1e6));
  page.line("          ms   spread   GFLOP/s      GB/s   share   tactic");
  for (const Json& row : result["ladder"]) {
    const auto number = [&](const char* name) { return row.value(name, 0.0); };
    const std::string spread =
        row.contains("spread") ? fmt::format("{:6.1f} %", 100 * number("spread")) : std::string(8, ' ');
    page.line(fmt::format("{:12.5f} {} {:9.1f} {:9.1f} {:5.0f} %   {}", number("ms"), spread, number("gflopPerSecond"),
                          number("gigabytesPerSecond"), 100 * number("shareOfCeiling"),
                          row["tactic"].get<std::string>()));
  }
  for (const Json& row : result["refused"])
    page.line(fmt::format("  no {}: {}", row["tactic"].get<std::string>(), row["why"].get<std::string>()));
}

std::vector<std::string> keys_of(const std::string& given) {
  std::string text = given;
  if (given == "-") text.assign(std::istreambuf_iterator<char>(std::cin), {});
  else if (std::filesystem::is_regular_file(given)) text = read_file(given);
  std::vector<std::string> keys;
  for (const std::string_view line : split(text, '\n'))
    if (std::string key = problem_part(trim(line)); !key.empty() && std::ranges::find(keys, key) == keys.end())
      keys.push_back(std::move(key));
  if (keys.empty()) throw Error("no problem is given: " + given, "hone bench kernels --help says how one looks");
  return keys;
}

/// The word behind a flag, both taken out of the line; empty where the flag is absent.
std::string take_value(std::vector<std::string>& words, std::string_view flag) {
  const auto at = std::ranges::find(words, flag);
  if (at == words.end()) return {};
  if (at + 1 == words.end()) throw Error(fmt::format("{} wants a value", flag));
  std::string value = *(at + 1);
  words.erase(at, at + 2);
  return value;
}

int bench_kernels(std::vector<std::string> words) {
  const bool json = std::erase(words, "--json") > 0;
  const std::string device_name = take_value(words, "--device"), count = take_value(words, "--repeats");
  const int64_t repeats = count.empty() ? kRepeats : parse_integer(count).value_or(0);
  if (repeats < 1 || repeats > 10000) throw Error(fmt::format("--repeats is {}, not 1 to 10000", count));
  if (words.size() != 1 || words[0] == "--help" || words[0] == "-h") {
    const bool asked = words.size() == 1;
    fmt::print(asked ? stdout : stderr, "{}", friendly_help(command()));
    return asked ? 0 : 1;
  }
  OpenDevice device = open_device(device_name.empty() ? "cpu" : device_name);
  Json all = Json::array();
  for (const std::string& key : keys_of(words[0])) {
    all.push_back(ladder(key, device, static_cast<int>(repeats)));
    if (!json) print(all.back());
  }
  if (json) fmt::print("{}\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
  return 0;
}

}  // namespace

const FriendlyCommand& describe_bench_kernels() { return command(); }

int run_bench_kernels(Words words) {
  try {
    return bench_kernels({words.begin(), words.end()});
  } catch (const Error& error) {
    fmt::print(stderr, "hone bench kernels: {}\n", error.what());
    return 1;
  }
}

}  // namespace hone
