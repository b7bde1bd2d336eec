// SPDX-License-Identifier: Apache-2.0
//
// A drawing as SVG, placed here, and as DOT, which Graphviz places.
#include <fmt/format.h>

#include <algorithm>

#include "base/markup.h"
#include "explore/drawing.h"
#include "explore/layout.h"

namespace hone {
namespace {

constexpr double kLetter = 6.4, kRow = 16, kPadding = 8, kLeastWidth = 120;

size_t letters(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

double width_of(const DrawnBox& box) {
  size_t longest = 0;
  for (const DrawnRow& row : box.rows) longest = std::max(longest, letters(row.text) + (row.bold ? 2 : 0));
  return std::max(kLeastWidth, static_cast<double>(longest) * kLetter + 2 * kPadding);
}
double height_of(const DrawnBox& box) { return static_cast<double>(box.rows.size()) * kRow + kPadding; }

std::string svg_box(const DrawnBox& box, const PlacedNode& at) {
  const double width = width_of(box), height = height_of(box), left = at.x - width / 2, top = at.y - height / 2;
  std::string svg = fmt::format(
      R"(<g><title>{}</title><rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="{}" fill="{}" stroke="{}" stroke-width="{}"{}/>)",
      markup_text(box.tells), left, top, width, height, box.region ? 2 : 6, box.fill, box.marked ? "red" : "#333333",
      box.marked ? 6 : 1, box.dashed ? R"( stroke-dasharray="5 3")" : "");
  for (size_t i = 0; i < box.rows.size(); ++i) {
    const DrawnRow& row = box.rows[i];
    const double y = top + kPadding / 2 + static_cast<double>(i) * kRow;
    // Names stand on white, so that they can be read on every colour.
    const std::string_view behind = !row.fill.empty() ? row.fill : row.bold || box.region ? "" : "#FFFFFF";
    if (!behind.empty())
      svg += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{}" fill="{}" fill-opacity="0.85"/>)",
                         left + 4, y, width - 8, kRow, behind);
    svg += fmt::format(R"(<text x="{:.1f}" y="{:.1f}"{}>{}</text>)", at.x, y + kRow - 4,
                       row.bold ? R"( font-weight="bold")" : "", markup_text(row.text));
  }
  return svg + "</g>\n";
}

/// Through the places of a long one.
std::string svg_arrow(const DrawnArrow& arrow, const Drawing& drawing, const GraphLayout& layout,
                      const std::vector<PlacedNode>& bends) {
  const PlacedNode &from = layout.nodes[arrow.from], &to = layout.nodes[arrow.to];
  std::vector<PlacedNode> way{{from.x, from.y + height_of(drawing.boxes[arrow.from]) / 2}};
  way.insert(way.end(), bends.begin(), bends.end());
  way.push_back({to.x, to.y - height_of(drawing.boxes[arrow.to]) / 2});
  std::string path = fmt::format("M{:.1f} {:.1f}", way[0].x, way[0].y);
  for (size_t i = 1; i < way.size(); ++i) {
    const double middle = (way[i - 1].y + way[i].y) / 2;
    path += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", way[i - 1].x, middle, way[i].x, middle, way[i].x,
                        way[i].y);
  }
  std::string svg = fmt::format(
      R"svg(<path d="{}" fill="none" stroke="{}" stroke-width="2" marker-end="url(#tip)"/>)svg", path, arrow.colour);
  if (!arrow.label.empty())
    svg += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" class="edge">{}</text>)", (way[0].x + way[1].x) / 2,
                       (way[0].y + way[1].y) / 2 + 4, markup_text(arrow.label));
  return svg + "\n";
}

/// In quotes, for DOT.
std::string dot_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string html_label(const DrawnBox& box) {
  std::string label = R"(<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0">)";
  for (const DrawnRow& row : box.rows) {
    const std::string text = row.text.empty() ? " " : markup_text(row.text);
    label += fmt::format("<TR><TD{}>{}</TD></TR>", row.fill.empty() ? "" : fmt::format(R"( BGCOLOR="{}")", row.fill),
                         row.bold ? "<B>" + text + "</B>" : text);
  }
  return label + "</TABLE>>";
}

}  // namespace

std::string drawing_svg(const Drawing& drawing, std::string_view title) {
  BoxSizes sizes{kLeastWidth, kRow, 24, 46};
  for (const DrawnBox& box : drawing.boxes) {
    sizes.width = std::max(sizes.width, width_of(box));
    sizes.height = std::max(sizes.height, height_of(box));
  }
  for (const DrawnArrow& arrow : drawing.arrows)
    sizes.width = std::max(sizes.width, static_cast<double>(letters(arrow.label)) * kLetter);
  std::vector<std::pair<size_t, size_t>> edges;
  for (const DrawnArrow& arrow : drawing.arrows) edges.emplace_back(arrow.from, arrow.to);
  const GraphLayout layout = place_graph(drawing.boxes.size(), edges, sizes);
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" font-family="sans-serif" font-size="11" text-anchor="middle">)"
      "\n<title>{2}</title><style>.edge{{font-size:10px;paint-order:stroke;stroke:white;stroke-width:3px}}</style>\n"
      R"(<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" markerHeight="6" orient="auto">)"
      R"(<path d="M0 0L8 4L0 8z" fill="#333333"/></marker></defs>)"
      "\n"
      R"(<rect width="100%" height="100%" fill="white"/>)"
      "\n",
      std::max(layout.width, kLeastWidth), std::max(layout.height, kRow), markup_text(title));
  for (size_t i = 0; i < drawing.arrows.size(); ++i)
    svg += svg_arrow(drawing.arrows[i], drawing, layout, layout.bends[i]);
  for (size_t i = 0; i < drawing.boxes.size(); ++i) svg += svg_box(drawing.boxes[i], layout.nodes[i]);
  return svg + "</svg>\n";
}

std::string drawing_dot(const Drawing& drawing, std::string_view title) {
  std::string dot = fmt::format("digraph {} {{\n  node [shape=box style=\"filled,rounded\" fontname=Helvetica]\n",
                                dot_text(markup_text(title)));
  for (size_t i = 0; i < drawing.boxes.size(); ++i) {
    const DrawnBox& box = drawing.boxes[i];
    dot += fmt::format("  n{} [label={} tooltip={} fillcolor={}{}{}]\n", i, html_label(box),
                       dot_text(markup_text(box.tells)), dot_text(box.fill),
                       box.region ? fmt::format(" style=\"filled{}\"", box.dashed ? ",dashed" : "") : "",
                       box.marked ? " color=red penwidth=6" : "");
  }
  for (const DrawnArrow& arrow : drawing.arrows)
    dot += fmt::format("  n{} -> n{} [label={} color={}]\n", arrow.from, arrow.to, dot_text(markup_text(arrow.label)),
                       dot_text(arrow.colour));
  return dot + "}\n";
}

}  // namespace hone
