// SPDX-License-Identifier: Apache-2.0
//
// What `hone bench --compare` draws: above the latency of each engine round by round, below how the others stand to the first.
#include <algorithm>

#include "base/markup.h"
#include "tools/commands/bench_compare.h"

namespace hone {
namespace {

constexpr double kWidth = 760, kTop = 40, kHeight = 240, kLeft = 90, kRow = 34;
constexpr std::string_view kColours[] = {"#2563eb", "#c2410c", "#15803d", "#7c3aed", "#b45309", "#0e7490"};

std::string_view colour(size_t engine) { return kColours[engine % std::size(kColours)]; }

/// A straight scale from values to places.
struct Scale {
  double low, high, from, to;
  double operator()(double value) const { return from + (to - from) * (value - low) / (high - low); }
};

std::string text(double x, double y, std::string_view anchor, std::string_view says) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)"
                     "\n",
                     x, y, anchor, markup_text(says));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view stroke, double width = 1) {
  return fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}" stroke-width="{}"/>)"
                     "\n",
                     x1, y1, x2, y2, stroke, width);
}

std::string latencies(const std::vector<ComparedEngine>& engines) {
  double most = 0;
  for (const ComparedEngine& engine : engines) most = std::max(most, *std::ranges::max_element(engine.rounds));
  const Scale y{0, most * 1.05, kTop + kHeight, kTop},
      x{0, static_cast<double>(std::max<size_t>(engines[0].rounds.size(), 2) - 1), kLeft, kLeft + kWidth};
  std::string svg = text(kLeft, kTop - 16, "start", "Median latency of each round, ms");
  for (int tick = 0; tick <= 4; ++tick) {
    const double value = most * 1.05 * tick / 4;
    svg += line(kLeft, y(value), kLeft + kWidth, y(value), "#e5e7eb");
    svg += text(kLeft - 8, y(value) + 4, "end", fmt::format("{:.4g}", value));
  }
  for (size_t e = 0; e < engines.size(); ++e) {
    svg += fmt::format(R"(<polyline fill="none" stroke="{}" stroke-width="1.5" points=")", colour(e));
    for (size_t i = 0; i < engines[e].rounds.size(); ++i)
      svg += fmt::format("{:.1f},{:.1f} ", x(static_cast<double>(i)), y(engines[e].rounds[i]));
    svg += "\"/>\n";
  }
  return svg + text(kLeft + kWidth, kTop + kHeight + 18, "end", "rounds, in the order in which they were run");
}

std::string ratios(const std::vector<ComparedEngine>& engines, double top) {
  double low = 1, high = 1;
  for (const ComparedEngine& engine : engines) {
    low = std::min(low, engine.to_first.low);
    high = std::max(high, engine.to_first.high);
  }
  const double margin = std::max((high - low) * 0.1, 0.001);
  const Scale x{low - margin, high + margin, kLeft, kLeft + kWidth};
  const double bottom = top + kRow * static_cast<double>(engines.size() - 1);
  std::string svg =
      text(kLeft, top - 16, "start", "Latency beside " + engines[0].file + ", with 95 % confidence: less is faster");
  svg += line(x(1), top, x(1), bottom, "#111827", 1.5) + text(x(1), bottom + 18, "middle", "1");
  for (const double end : {low, high})
    if (std::abs(x(end) - x(1)) > 60) svg += text(x(end), bottom + 18, "middle", fmt::format("{:.4f}", end));
  for (size_t e = 1; e < engines.size(); ++e) {
    const PairedRatio& to = engines[e].to_first;
    const double y = top + kRow * (static_cast<double>(e) - 0.5);
    svg += line(x(to.low), y, x(to.high), y, colour(e), 5);
    svg += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="5" fill="{}"><title>{:.4f}</title></circle>)"
                       "\n",
                       x(to.ratio), y, colour(e), to.ratio);
  }
  return svg;
}

}  // namespace

std::string comparison_plot(const std::vector<ComparedEngine>& engines) {
  const double names = kTop + kHeight + 46, below = names + kRow / 1.6 * static_cast<double>(engines.size()) + 40;
  const double height = below + kRow * static_cast<double>(engines.size() - 1) + 40;
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1:.0f}" viewBox="0 0 {0} {1:.0f}" font-family="sans-serif" font-size="12">)"
      "\n"
      R"(<rect width="100%" height="100%" fill="white"/>)"
      "\n",
      kLeft + kWidth + 40, height);
  svg += latencies(engines);
  for (size_t e = 0; e < engines.size(); ++e) {
    const double y = names + kRow / 1.6 * static_cast<double>(e);
    svg += fmt::format(R"(<rect x="{}" y="{:.1f}" width="12" height="12" fill="{}"/>)", kLeft, y - 10, colour(e));
    svg += text(
        kLeft + 20, y, "start",
        e == 0 ? engines[e].file : fmt::format("{}: {}", engines[e].file, verdict_text(engines[e].to_first.verdict())));
  }
  return svg + ratios(engines, below) + "</svg>\n";
}

}  // namespace hone
