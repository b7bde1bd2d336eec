// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/common/terminal.h"
#include "tools/common/watcher.h"

namespace hone {
namespace {

constexpr size_t kBar = 24, kTree = 8, kEngines = 4, kLevels = 5;
constexpr double kLineSeconds = 10;

/// At most so many letters; what terminals draw two wide is not left in texts (terminal_text).
std::string clipped(std::string_view text, size_t columns) {
  size_t letters = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80 && ++letters > columns)
      return std::string(text.substr(0, i));
  return std::string(text);
}

std::string bar(double share, bool unicode) {
  const auto filled = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * kBar);
  std::string text = "[";
  for (size_t i = 0; i < kBar; ++i) text += i < filled ? (unicode ? "█" : "#") : (unicode ? "░" : ".");
  return text + "]";
}

std::string phase_line(const WatchedPhase& phase, double now, bool unicode) {
  const std::string name = fmt::format("{:{}}{}", "", 2 * phase.depth, terminal_text(phase.name));
  std::string text = fmt::format("  {:<22}", name);
  if (!phase.open()) return text + fmt::format("done in {}", seconds_text(phase.ended - phase.begun));
  if (phase.steps > 3)
    return text + fmt::format("{} {} of {}", bar(static_cast<double>(phase.done) / phase.steps, unicode), phase.done,
                              phase.steps);
  return text + seconds_text(now - phase.begun);
}

/// All that is open, and of what is done the last.
std::vector<const WatchedPhase*> shown_phases(const std::vector<WatchedPhase>& phases) {
  std::vector<const WatchedPhase*> shown;
  for (const WatchedPhase& phase : phases) shown.push_back(&phase);
  for (auto each = shown.begin(); shown.size() > kTree && each != shown.end();)
    each = (*each)->open() ? each + 1 : shown.erase(each);
  if (shown.size() > kTree) shown.erase(shown.begin(), shown.end() - kTree);
  return shown;
}

std::string latency_line(const WatchedLatency& latency) {
  return fmt::format("  {:.4g} ms median, {:.4g} best, {:.4g} at 90 %, {:.4g} at 99 %, {} queries: {}",
                     latency.percentile(50), latency.best_ms, latency.percentile(90), latency.percentile(99),
                     latency.count, terminal_text(latency.engine));
}

std::vector<std::string> histogram(const WatchedLatency& latency, size_t columns, bool unicode) {
  if (latency.count == 0) return {};
  const int first = latency.buckets.begin()->first,
            last = std::max(latency_bucket(latency.percentile(99)), first + 1) + 1;
  const int wide = std::max(1, (last - first + static_cast<int>(columns) - 1) / static_cast<int>(columns));
  std::vector<int64_t> bars(static_cast<size_t>((last - first) / wide + 1));
  for (const auto& [bucket, count] : latency.buckets)
    if (bucket <= last) bars[static_cast<size_t>((bucket - first) / wide)] += count;
  const auto most = static_cast<double>(*std::ranges::max_element(bars));
  constexpr std::string_view kEighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<std::string> lines;
  for (size_t level = kLevels; level-- > 0;) {
    std::string line = "  ";
    for (const int64_t count : bars) {
      const double height = static_cast<double>(count) / most * kLevels - static_cast<double>(level);
      const auto eighth = static_cast<size_t>(std::ceil(std::clamp(height, 0.0, 1.0) * 8));
      line += unicode ? kEighths[eighth] : eighth >= 4 || (level == 0 && count > 0) ? "#" : " ";
    }
    lines.push_back(line);
  }
  const std::string from = fmt::format("{:.4g} ms", bucket_start(first)),
                    to = fmt::format("{:.4g}", bucket_start(last));
  lines.push_back(
      fmt::format("  {}{:>{}}", from, to, std::max(bars.size(), from.size() + to.size() + 1) - from.size()));
  return lines;
}

std::string best_line(const WatchState& state) {
  if (!state.networks().empty()) {
    const auto fastest = std::ranges::min_element(state.networks(), {}, [](const auto& each) { return each.second; });
    return fmt::format("best so far  {:.4g} ms an inference in {}", fastest->second, terminal_text(fastest->first));
  }
  return fmt::format("best so far  {:.4g} ms in {} layer{}", state.layers_ms(), state.layers(),
                     state.layers() == 1 ? "" : "s");
}

}  // namespace

std::string seconds_text(double seconds) {
  const long whole = std::lround(std::max(seconds, 0.0));
  if (seconds < 10) return fmt::format("{:.1f} s", std::max(seconds, 0.0));
  return whole < 90 ? fmt::format("{} s", whole) : fmt::format("{} min {} s", whole / 60, whole % 60);
}

std::vector<std::string> screen_lines(const WatchState& state, std::string_view command, double begun, double now,
                                      const ScreenSize& size, bool unicode) {
  std::string head = fmt::format("{}   {}", terminal_text(command), seconds_text(now - begun));
  if (const auto left = state.left(now)) head += fmt::format(", about {} left", seconds_text(*left));
  std::vector<std::string> lines{head};
  for (const WatchedPhase* phase : shown_phases(state.phases())) lines.push_back(phase_line(*phase, now, unicode));
  if (state.layers() > 0 || !state.networks().empty()) {
    lines.push_back(best_line(state));
    lines.push_back("  " + terminal_text(state.last_best()));
  }
  const std::vector<WatchedLatency>& latencies = state.latencies();
  if (!latencies.empty()) lines.emplace_back("latency");
  for (size_t i = latencies.size() - std::min(latencies.size(), kEngines); i < latencies.size(); ++i)
    lines.push_back(latency_line(latencies[i]));
  if (!latencies.empty())
    for (std::string& line : histogram(latencies.back(), std::max<size_t>(size.columns, 12) - 10, unicode))
      lines.push_back(std::move(line));
  if (lines.size() >= size.rows) lines.resize(std::max<size_t>(size.rows, 2) - 1);
  for (std::string& line : lines) line = clipped(line, size.columns);
  return lines;
}

std::vector<std::string> PlainLines::news(const WatchState& state, double now) {
  std::vector<std::string> lines;
  size_t ended = 0;
  const WatchedPhase* open = nullptr;
  for (const WatchedPhase& phase : state.phases()) {
    if (phase.open()) open = &phase;
    else if (++ended > told_)
      lines.push_back(
          fmt::format("{}: done in {}", terminal_text(phase.name), seconds_text(phase.ended - phase.begun)));
  }
  told_ = ended;
  const size_t measured = static_cast<size_t>(
      std::ranges::count_if(state.latencies(), [](const auto& each) { return !each.running && each.count > 0; }));
  if (measured > measurements_ && (open == nullptr || open->name != "rounds"))
    lines.push_back("latency:" + latency_line(state.latencies().back()).substr(1));
  measurements_ = std::max(measurements_, measured);
  if (lines.empty() && now - last_ >= kLineSeconds && open != nullptr) {
    std::string line = fmt::format("{}: {} of {}", terminal_text(open->name), open->done, open->steps);
    if (const auto left = state.left(now)) line += fmt::format(", about {} left", seconds_text(*left));
    if (state.layers() > 0) line += ", " + best_line(state);
    lines.push_back(line);
  }
  if (!lines.empty()) last_ = now;
  return lines;
}

}  // namespace hone
