// SPDX-License-Identifier: Apache-2.0
//
// An engine's graph as a picture of its own: layers as boxes, tensors as arrows, regions of memory as boxes where a name alone would
// mislead. Colours, rows and flags are those of TREx, whose `draw` this stands in for; no Graphviz is needed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "explore/engine_file.h"

namespace hone {

struct DrawingOptions {
  bool regions = false;    // every tensor is a box; else those that are bound, written several times or read by several
  bool constants = false;  // tensors that nobody writes and nobody gives
  bool layer_names = true;    // in boxes
  bool metadata = false;      // nodes of the model, in boxes
  bool region_names = false;  // in boxes of tensors
  std::string beam;           // a layer: only what is within `radius` steps of it
  int radius = 0;
  std::string query;  // a regular expression: only what it finds in names and nodes, and their neighbours
};

/// At most so many bytes of a text, and a sign where there were more.
std::string shortened(std::string_view text, size_t most = 44);

/// A line of text in a box.
struct DrawnRow {
  std::string text;
  std::string_view fill = {};  // empty: the box's
  bool bold = false;
};
struct DrawnBox {
  std::vector<DrawnRow> rows;
  std::string fill;
  bool region = false, dashed = false, marked = false;
  std::string tells;  // all that is known, for who points at it
};
struct DrawnArrow {
  size_t from, to;  // boxes
  std::string label;
  std::string_view colour;
};
struct Drawing {
  std::vector<DrawnBox> boxes;
  std::vector<DrawnArrow> arrows;
};

/// Throws Error for a layer or an expression that is not there or not right.
Drawing draw_engine(const EngineRows& engine, const DrawingOptions& options);
std::string drawing_svg(const Drawing& drawing, std::string_view title);
std::string drawing_dot(const Drawing& drawing, std::string_view title);

}  // namespace hone
