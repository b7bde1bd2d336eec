// SPDX-License-Identifier: Apache-2.0
//
// Data-dependent sizes (NonZero, a Reshape to a computed shape): which node decides which, what may run where,
// and the stages into which an engine's layers fall. A stage ends before the first layer that needs a size it decides.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "builder/layers.h"

namespace hone {

class DataSizes {
 public:
  explicit DataSizes(const Graph& graph);

  /// Symbols that the input shapes do not determine.
  const std::set<std::string>& symbols() const { return symbols_; }
  /// Whether a value lives in a host tensor: objects, unknown rank, or sizes that its own producer decides.
  bool managed(const Value& value) const;
  bool sized_by_data(const Shape& shape) const;
  /// Whether a region's only result is one whose sizes it decides, and a device may be asked to (Traits::most).
  bool measurable(const Region& region) const;
  /// Only the reference can run it: it touches managed operands before their sizes are known, decides sizes that no device does,
  /// or broadcasts axes of which a run decides which one is 1.
  bool host_only(const Region& region) const;
  /// The stage of every layer, in order.
  std::vector<int> stages(const std::vector<Layer>& layers) const;

 private:
  std::map<std::string, const Node*> deciders_;
  std::set<std::string> symbols_;
};

/// The symbols that anything inside a graph uses.
std::set<std::string> symbols_in(const Graph& graph);

}  // namespace hone
