// SPDX-License-Identifier: Apache-2.0
//
// A model that is not taken as it is: which nodes are refused and why, and the parts of the model that can and that cannot be taken, as
// files of their own.
#pragma once

#include <optional>
#include <string>

namespace hone {

struct PartitionRequest {
  bool writes_parts = false;
  std::string folder = "polygraphy_capability_dumps";
  bool json = false;
};

/// Prints what is refused and writes what is asked for; the exit status: 0 where nothing is refused, else 1. Nothing where no node is
/// refused and no parts are asked for. Throws StatusError for a file that is no model.
std::optional<int> tell_refused(const std::string& path, const PartitionRequest& request);

}  // namespace hone
