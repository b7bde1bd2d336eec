// SPDX-License-Identifier: Apache-2.0
//
// Which axes a reduction (or a global pool, which reduces the spatial ones) folds, and the walk over its input that follows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "device/fields.h"
#include "device/tactic.h"
#include "ir/graph.h"

namespace hone {

/// What the code of a reduction keeps of its axes: their numbers, from 0 on.
struct ReducedAxes {
  Dims axes;
  static void fields(auto& self, auto& visit) { visit("axes", self.axes, 0, kMostAxes - 1); }
};

/// The axes that are reduced, or nothing when they are not constant.
std::optional<Dims> reduced_axes(const Node& node);

/// One offer per layout that the input and the result may have together, and one more where a pooled image loses its spatial
/// axes, so that channels_last comes out linear.
void offer_reductions(const Problem& problem, const Dims& axes, std::string_view source, Candidates& out);

/// A run of axes that lie side by side and share their fate.
struct AxisRun {
  int64_t size, stride;
  bool reduced;
};

/// Outermost first, in the order in which the bytes lie; axes of size 1 are left out.
std::vector<AxisRun> merged_axes(const ConcreteType& type, const Dims& reduced);

}  // namespace hone
