// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/accuracy_plot.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/markup.h"

namespace hone {
namespace {

constexpr double kWidth = 900, kHeight = 300, kLeft = 80, kTop = 46, kGap = 90;
constexpr double kLeast = 1e-9;  // where an error of 0 is drawn
constexpr std::string_view kAdded = "#c2410c", kEntering = "#2563eb", kGrey = "#6b7280";

double drawable(double error) { return std::isfinite(error) ? std::max(error, kLeast) : 1; }

/// Whole powers of ten around some errors.
struct Decades {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();

  void include(double error) {
    low = std::min(low, std::floor(std::log10(drawable(error))));
    high = std::max(high, std::ceil(std::log10(drawable(error))));
  }
  /// 0 at the bottom, 1 at the top.
  double place(double error) const { return (std::log10(drawable(error)) - low) / std::max(high - low, 1.0); }
};

/// One diagram with an axis of errors, which are drawn by their powers of ten.
class Panel {
 public:
  Panel(double top, std::string_view title, std::string_view below, const Decades& decades)
      : top_(top), decades_(decades) {
    text_ += fmt::format(R"(<text x="{}" y="{}" class="title">{}</text>)", kLeft, top_ - 14, markup_text(title));
    text_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="none" stroke="{}"/>)", kLeft, top_, kWidth,
                         kHeight, kGrey);
    text_ += fmt::format(R"(<text x="{}" y="{}" text-anchor="end">{}</text>)", kLeft + kWidth, top_ + kHeight + 34,
                         markup_text(below));
    for (double decade = decades.low; decade <= decades.high; ++decade) {
      const double at = y(std::pow(10, decade));
      text_ +=
          fmt::format(R"(<line x1="{0}" x2="{1}" y1="{2}" y2="{2}" stroke="#e5e7eb"/>)", kLeft, kLeft + kWidth, at);
      text_ += fmt::format(R"(<text x="{}" y="{}" text-anchor="end">{}</text>)", kLeft - 8, at + 4,
                           decade <= std::log10(kLeast) ? "0" : fmt::format("1e{:+03}", static_cast<int>(decade)));
    }
    text_ += '\n';
  }
  double y(double error) const { return top_ + kHeight * (1 - decades_.place(error)); }
  double bottom() const { return top_ + kHeight; }
  void mark_below(double x, std::string_view label) {
    text_ += fmt::format(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", x, bottom() + 16, label);
  }
  void dot(double x, double error, std::string_view colour, std::string_view says) {
    text_ += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5" fill="{}"><title>{}</title></circle>)"
                         "\n",
                         x, y(error), colour, markup_text(says));
  }
  void bar(double x, double width, double error, std::string_view colour, std::string_view says) {
    text_ += fmt::format(
        R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}" fill-opacity="0.55"><title>{}</title></rect>)"
        "\n",
        x - width / 2, y(error), width, bottom() - y(error), colour, markup_text(says));
  }
  void legend(double x, std::string_view colour, std::string_view says) {
    text_ += fmt::format(R"(<rect x="{}" y="{}" width="10" height="10" fill="{}"/><text x="{}" y="{}">{}</text>)", x,
                         top_ - 23, colour, x + 16, top_ - 14, markup_text(says));
  }
  void line(std::span<const std::pair<double, double>> points, std::string_view colour) {
    text_ += fmt::format(R"(<polyline fill="none" stroke="{}" stroke-width="1.5" points=")", colour);
    for (const auto& [x, error] : points) text_ += fmt::format("{:.1f},{:.1f} ", x, y(error));
    text_ += "\"/>\n";
  }
  const std::string& text() const { return text_; }

 private:
  double top_;
  const Decades& decades_;
  std::string text_;
};

std::string depth_panel(std::span<const LayerError> layers) {
  Decades decades;
  for (const LayerError& layer : layers) {
    decades.include(layer.alone);
    decades.include(layer.error.relative);
  }
  Panel panel(kTop, "Error along the depth", "layers, in the order in which they run", decades);
  panel.legend(kLeft + 300, kEntering, "enters in this layer");
  panel.legend(kLeft + 500, kAdded, "of what this layer gives");
  const double step = kWidth / static_cast<double>(layers.size() + 1);
  std::vector<std::pair<double, double>> line;
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerError& layer = layers[i];
    const double x = kLeft + step * static_cast<double>(i + 1);
    panel.bar(x, std::max(step * 0.7, 1.0), layer.alone, kEntering,
              fmt::format("{}: {:.3g} enters", layer.step->name, layer.alone));
    line.emplace_back(x, layer.error.relative);
  }
  panel.line(line, kAdded);
  for (size_t i = 0; i < layers.size(); ++i)
    panel.dot(line[i].first, line[i].second, kAdded,
              fmt::format("{}: {:.3g}", layers[i].step->name, layers[i].error.relative));
  return panel.text();
}

std::string speed_panel(std::span<const Trial> trials, double exact_ms) {
  Decades decades;
  decades.include(kLeast);
  double slowest = exact_ms;
  for (const Trial& trial : trials) {
    decades.include(trial.error);
    slowest = std::max(slowest, trial.ms);
  }
  Panel panel(kTop + kHeight + kGap, "Accuracy against speed",
              "milliseconds of an inference; relative error of the outputs", decades);
  const double scale = kWidth / (1.05 * slowest);
  for (int tick = 0; tick <= 4; ++tick)
    panel.mark_below(kLeft + kWidth * tick / 4.2, fmt::format("{:.3g}", slowest * 1.05 * tick / 4.2));
  panel.dot(kLeft + exact_ms * scale, 0, kEntering, fmt::format("FP32: {:.3f} ms", exact_ms));
  for (const Trial& trial : trials)
    panel.dot(kLeft + trial.ms * scale, trial.error, kAdded,
              fmt::format("{} nodes in FP32: {:.3f} ms, error {:.3g}", trial.kept.size(), trial.ms, trial.error));
  return panel.text();
}

}  // namespace

std::string accuracy_plot(const std::string& title, std::span<const LayerError> layers, std::span<const Trial> trials,
                          double exact_ms) {
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}" font-family="sans-serif" font-size="12">)"
      "\n<title>{}</title><style>.title{{font-weight:bold;font-size:14px}}</style>\n"
      R"(<rect width="100%" height="100%" fill="white"/>)"
      "\n",
      kLeft + kWidth + 40, kTop + 2 * kHeight + kGap + 60, markup_text(title));
  if (!layers.empty()) svg += depth_panel(layers);
  return svg + speed_panel(trials, exact_ms) + "</svg>\n";
}

}  // namespace hone
