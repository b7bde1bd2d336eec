// SPDX-License-Identifier: Apache-2.0
//
// A region that begins with a convolution, ordinary or transposed, read once for all sources; and what a kernel's code keeps of
// it. For any number of spatial axes and any layout: sizes of operands come from elsewhere.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/support.h"
#include "ops/window.h"
#include "regions/region_match.h"

namespace hone {

/// As the pads say, or so that the result has ceil(size / stride) elements.
enum class Padding { given, same_upper, same_lower };
inline constexpr std::array<std::string_view, 3> kPaddingNames = {"NOTSET", "SAME_UPPER", "SAME_LOWER"};
constexpr const auto& field_names(Padding) { return kPaddingNames; }

struct ConvCode {
  static constexpr int64_t kMostSteps = (1 << 20) - 1;  // taps, steps, elements of padding along an axis
  static constexpr int64_t kMostChannels = 1 << 24;
  static constexpr size_t kMostAxes = 3;

  int64_t input = 0;                                      // which of the region's inputs is convolved
  std::vector<int64_t> filter, strides, dilations, pads;  // of the spatial axes; pads: before all of them, then behind
  Padding padding = Padding::given;
  int64_t groups = 1, channels = 1;  // of the result
  EpilogueCode epilogue = {};
  static void fields(auto& self, auto& visit) {
    visit("input", self.input, 0, kMostOperands - 1);
    visit("filter", self.filter, 1, kMostSteps, kMostAxes);
    visit("strides", self.strides, 1, kMostSteps, kMostAxes);
    visit("dilations", self.dilations, 1, kMostSteps, kMostAxes);
    visit("pads", self.pads, -kMostSteps, kMostSteps, 2 * kMostAxes);
    visit("auto_pad", self.padding);
    visit("group", self.groups, 1, kMostChannels);
    visit("oc", self.channels, 1, kMostChannels);
    EpilogueCode::fields(self.epilogue, visit);
  }

  /// Throws Error where the lists are of another number of axes.
  void require_axes(size_t axes) const;
  /// Throws Error where the convolved input, the residual or the result does not exist or contradicts another one.
  void require_operands(const KernelShapes& shapes) const;
  /// The same but for the residual.
  void require_window(const KernelShapes& shapes) const;
  const ConcreteType& input_type(const KernelShapes& shapes) const { return shapes.inputs[static_cast<size_t>(input)]; }
  /// The pads for an input of these spatial sizes.
  Dims pads_for(std::span<const int64_t> sizes) const;
};

inline constexpr const char* kBeyondBounds = "its window or its channels are beyond all bounds";
/// What a kernel keeps of the window of the match's anchor; nothing where it is beyond all bounds.
std::optional<ConvCode> conv_code(const Graph& region, const RegionMatch& match, const WindowAttrs& window, bool bias);

struct ConvRegion {
  RegionMatch match;  // its refusal says why there is more than a convolution with an epilogue
  ConvCode code;
  WindowAttrs window;  // as the model says it
  bool transposed = false;

  const Node& node() const { return *match.anchor; }
  /// The model's constant weights with the region's scale: [O, I/groups, ...], transposed [I, O/groups, ...].
  Floats weights() const;
  /// One value per channel of the result; empty when there is none.
  std::vector<float> bias() const;
};

/// Nothing when the region, whose sizes are known, does not begin with a convolution.
std::optional<ConvRegion> read_conv_region(const Graph& region, Roundings roundings = Roundings::refused);

}  // namespace hone
