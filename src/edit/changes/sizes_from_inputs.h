// SPDX-License-Identifier: Apache-2.0
//
// Sizes that an exporter wrote down as numbers, at nodes that have no way to say "what is left over": they are read off the inputs when the
// model runs. Which of the numbers that look like one are it is found by trying: at twice the size a change makes a node fit that did not.
#pragma once

#include "edit/changes/dynamic.h"

namespace hone::edit {

/// Slices that ended where their axis ended, in the model before its sizes were opened, reach to the end. Their names.
std::vector<std::string> open_slices(Model& model, const Model& closed);

class SizesFromInputs {
 public:
  /// `before`: the numbers that the axes had.
  SizesFromInputs(Model& model, const std::vector<OpenAxis>& axes, std::vector<std::optional<int64_t>> before);
  /// Makes one change that helps: the node. Nothing when none is left, or after many that did not help.
  std::optional<std::string> mend();

 private:
  struct Place {
    size_t axis;  // of the open ones
    size_t node, operand, entry;
    std::vector<int64_t> sizes;
  };
  /// How many nodes cannot be typed where the open sizes are `factor` times what they were.
  size_t problems(const Model& model, int64_t factor) const;
  std::vector<Place> places() const;
  void change(Model& tried, const Place& place) const;
  std::string size_in(Model& tried, const OpenAxis& axis) const;

  Model& model_;
  std::vector<OpenAxis> axes_;
  std::vector<std::optional<int64_t>> before_;
  size_t unavoidable_, tries_ = 0;
};

}  // namespace hone::edit
