// SPDX-License-Identifier: Apache-2.0
//
// What a kernel that only moves elements keeps of its region: what it copies from, and the operators, whose sizes are
// expressions, so that one compiled tactic serves every shape.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/fields.h"

namespace hone {

enum class CopyKind {
  identity,
  flat,  // only the dimensions change: Reshape, Squeeze, ...
  reformat,
  transpose,
  concat,
  split,
  slice,
  expand,
  tile,
  pad,
  resize,
  depth_to_space,
  space_to_depth,
  shuffle,  // of channels
};
constexpr std::array<std::string_view, 14> field_names(CopyKind) {
  return {"identity", "flat", "reformat", "transpose", "concat",         "split",          "slice",
          "expand",   "tile", "pad",      "resize",    "depth_to_space", "space_to_depth", "shuffle"};
}

enum class PadMode { constant, reflect, edge, wrap };
constexpr std::array<std::string_view, 4> field_names(PadMode) { return {"constant", "reflect", "edge", "wrap"}; }

/// One operator; of its members those that its kind has. Texts are sizes as expressions.
struct CopyOperator {
  CopyKind kind = CopyKind::identity;
  int64_t axis = 0;                  // of Concat and Split
  int64_t block = 1;                 // of DepthToSpace and SpaceToDepth, in pixels along an axis; of a shuffle, groups
  bool channels_first = false;       // of theirs: channels as [C, block, block], not [block, block, C]
  PadMode mode = PadMode::constant;  // of Pad
  Dims perm = {};                    // of Transpose
  Dims parts = {};                   // of Split: the part that each output of the region is
  std::vector<std::string> sizes = {};  // of Split: all parts along the axis
  std::vector<std::string> axes = {};   // of Slice and Pad
  std::vector<std::string> starts = {}, steps = {},
                           counts = {};  // of Slice, one per axis; counts only within an assembly
  std::vector<std::string> pads = {};    // of Pad: before each of the axes, then behind each
  Dims operands = {};                    // within an assembly: sources by number, then the results of earlier operators

  static void fields(auto& self, auto& visit) {
    visit("kind", self.kind);
    visit("axis", self.axis, -kMostAxes, kMostAxes - 1);
    visit("block", self.block, 1, (1 << 16) - 1);
    visit("channels_first", self.channels_first);
    visit("mode", self.mode);
    visit("perm", self.perm, 0, kMostAxes - 1, kMaxRank);
    visit("parts", self.parts, 0, kMostParts - 1);
    visit("sizes", self.sizes);
    visit("axes", self.axes);
    visit("starts", self.starts);
    visit("steps", self.steps);
    visit("counts", self.counts);
    visit("pads", self.pads);
    visit("operands", self.operands, 0, 2 * kMostParts - 1);
  }
  static constexpr int kMostParts = 1 << 16;
};

/// What is copied from: region input `place`, or constant -1 - place of the kernel with these sizes.
struct CopyOperand {
  int64_t place = 0;
  Dims dims = {};
  static void fields(auto& self, auto& visit) {
    visit("place", self.place, -CopyOperator::kMostParts, CopyOperator::kMostParts - 1);
    visit("dims", self.dims, 0, kMostSize, kMaxRank);
  }
};

/// One operator over all sources (the second one of a Pad or Reformat is the element that fills), or an assembly: several Slices
/// and Concats of each other, and perhaps a shuffle of what comes out.
struct CopyCode {
  std::vector<CopyOperand> sources;  // constants are numbered in order
  std::vector<CopyOperator> operators;
  static void fields(auto& self, auto& visit) {
    visit("sources", self.sources, CopyOperator::kMostParts);
    visit("operators", self.operators, CopyOperator::kMostParts);
  }
};

/// The kind of an operator; nothing where it does more than to move elements.
std::optional<CopyKind> copy_kind(std::string_view op);

}  // namespace hone
