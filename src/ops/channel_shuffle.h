// SPDX-License-Identifier: Apache-2.0
//
// Channels dealt out in turns, as exporters write it: groups become an axis of their own (View), change places with the channels of a
// group (Transpose), and are channels again (View).
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace hone {

struct ChannelShuffle {
  std::vector<Node*> nodes;  // in order; nothing else reads what lies between them
  int64_t groups;            // of neighbouring channels before, of which each deals one in turn
};

/// Nothing where `last` is not the last node of such, in tensors of three to five axes.
std::optional<ChannelShuffle> channel_shuffle(Node* last);

}  // namespace hone
