// SPDX-License-Identifier: Apache-2.0
//
// Errors as pictures: a grid of cells for the two last axes of each image, the largest error of the elements that fall into a cell. The
// relative error is drawn by its logarithm. Plain SVG: no library draws it, every browser shows it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "base/markup.h"
#include "report/tensors.h"
#include "tools/compare/comparison.h"

namespace hone {
namespace {

constexpr size_t kCells = 48, kImages = 64, kCell = 6, kGap = 12;

struct Grid {
  size_t rows = 1, columns = 1, images = 1;
  size_t height = 1, width = 1;  // of an image, in elements
};

Grid grid_of(const Dims& dims) {
  Grid grid;
  if (!dims.empty()) grid.width = static_cast<size_t>(dims.back());
  if (dims.size() > 1) grid.height = static_cast<size_t>(dims[dims.size() - 2]);
  for (size_t i = 0; i + 2 < dims.size(); ++i) grid.images *= static_cast<size_t>(dims[i]);
  grid.rows = std::min(grid.height, kCells);
  grid.columns = std::min(grid.width, kCells);
  return grid;
}

/// Dark where nothing is off, bright where it is most; NaNs are magenta.
std::string colour(double part) {
  if (std::isnan(part)) return "#ff00ff";
  const double x = std::clamp(part, 0.0, 1.0);
  const auto level = [](double value) { return static_cast<int>(std::lround(255 * std::clamp(value, 0.0, 1.0))); };
  return fmt::format("#{:02x}{:02x}{:02x}", level(0.1 + 1.6 * x), level(1.6 * x - 0.5),
                     level(0.25 + 0.4 * x - x * x * 0.3));
}

std::string picture(const std::string& title, const std::vector<double>& errors, const Grid& grid, bool logarithm) {
  double most = 0, least = INFINITY;
  for (const double error : errors)
    if (std::isfinite(error)) {
      most = std::max(most, error);
      if (error > 0) least = std::min(least, error);
    }
  const auto part = [&](double error) {
    if (std::isnan(error)) return error;
    if (error <= 0 || most <= 0) return 0.0;
    if (!logarithm) return error / most;
    const double low = std::log10(std::max(least, most * 1e-8)), high = std::log10(most);
    return high <= low ? 1.0 : 0.1 + 0.9 * (std::log10(error) - low) / (high - low);
  };
  const size_t images = std::min(grid.images, kImages);
  const auto across = static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(images))));
  const size_t image_width = grid.columns * kCell + kGap, image_height = grid.rows * kCell + kGap;
  const size_t width = std::max<size_t>(across * image_width + kGap, 480),
               height = 40 + (images + across - 1) / std::max<size_t>(across, 1) * image_height;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{2}\" y=\"20\">{3}: 0 to "
      "{4:.5g}{5}</text>\n",
      width, height, kGap, title, most,
      images < grid.images ? fmt::format(" (the first {} of {} images)", images, grid.images) : "");
  for (size_t image = 0; image < images; ++image)
    for (size_t row = 0; row < grid.rows; ++row)
      for (size_t column = 0; column < grid.columns; ++column) {
        double worst = 0;
        for (size_t y = row * grid.height / grid.rows; y < (row + 1) * grid.height / grid.rows; ++y)
          for (size_t x = column * grid.width / grid.columns; x < (column + 1) * grid.width / grid.columns; ++x) {
            const double error = errors[(image * grid.height + y) * grid.width + x];
            if (std::isnan(error) || error > worst) worst = error;
            if (std::isnan(error)) y = grid.height, x = grid.width;
          }
        svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
                           kGap + image % across * image_width + column * kCell,
                           32 + image / across * image_height + row * kCell, kCell, kCell, colour(part(worst)));
      }
  return svg + "</svg>\n";
}

}  // namespace

void write_heat_maps(const std::string& folder, const Verdict& verdict, size_t iteration) {
  if (verdict.absolutes.empty()) return;
  std::filesystem::create_directories(folder);
  const Grid grid = grid_of(verdict.dims);
  FileNames names;
  const std::string stem =
      (std::filesystem::path(folder) / fmt::format("{}_{}", names.take(verdict.output, ""), iteration)).string();
  const std::string title = markup_text(verdict.output);
  write_file(stem + "_absolute.svg", picture(title + ", absolute error", verdict.absolutes, grid, false));
  write_file(stem + "_relative.svg", picture(title + ", relative error (logarithm)", verdict.relatives, grid, true));
}

/// Two panels: absolute and relative errors, by their logarithm, over the size of what is expected. Of many elements every n-th.
void write_error_plot(const std::string& folder, const Verdict& verdict, const Tensor& expected, size_t iteration) {
  if (verdict.absolutes.empty() || is_object(expected.dtype())) return;
  constexpr size_t kPoints = 4000;
  constexpr double kWidth = 420, kHeight = 300, kEdge = 40;
  std::filesystem::create_directories(folder);
  const std::vector<double> sizes = doubles_of(expected);
  double widest = 0;
  for (const double size : sizes)
    if (std::isfinite(size)) widest = std::max(widest, std::fabs(size));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} {1:g}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      2 * (kWidth + kEdge) + kEdge, kHeight + 2 * kEdge);
  const size_t stride = std::max<size_t>(1, sizes.size() / kPoints);
  double left = kEdge;
  for (const auto& [name, errors] :
       {std::pair("absolute", &verdict.absolutes), std::pair("relative", &verdict.relatives)}) {
    double most = 0;
    for (const double error : *errors)
      if (std::isfinite(error)) most = std::max(most, error);
    svg += fmt::format(
        "<text x=\"{:g}\" y=\"20\">{}: {} error, 1e-12 of the largest to {:.5g}; across |expected| to {:.5g}</text>\n"
        "<rect x=\"{:g}\" y=\"{:g}\" width=\"{:g}\" height=\"{:g}\" fill=\"none\" stroke=\"#888\"/>\n",
        left, markup_text(verdict.output), name, most, widest, left, kEdge, kWidth, kHeight);
    for (size_t i = 0; i < std::min(sizes.size(), errors->size()); i += stride) {
      const double error = (*errors)[i], size = std::fabs(sizes[i]);
      if (!std::isfinite(error) || !std::isfinite(size)) continue;
      const double high = most > 0 && error > 0 ? std::clamp(1 + std::log10(error / most) / 12, 0.0, 1.0) : 0;
      svg += fmt::format("<circle cx=\"{:.4g}\" cy=\"{:.4g}\" r=\"1.5\" fill=\"#1f6fb4\"/>\n",
                         left + (widest > 0 ? size / widest : 0) * kWidth, kEdge + (1 - high) * kHeight);
    }
    left += kWidth + kEdge;
  }
  FileNames names;
  write_file(
      (std::filesystem::path(folder) / fmt::format("{}_{}_errors.svg", names.take(verdict.output, ""), iteration))
          .string(),
      svg + "</svg>\n");
}

}  // namespace hone
