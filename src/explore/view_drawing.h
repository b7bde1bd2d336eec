// SPDX-License-Identifier: Apache-2.0
//
// The graph of a view as a picture, all of it unfolded.
#pragma once

#include "explore/drawing.h"
#include "explore/model_view.h"

namespace hone {

Drawing draw_view(const ViewedModel& view, ViewColour colour);

}  // namespace hone
