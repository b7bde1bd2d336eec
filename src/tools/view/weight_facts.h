// SPDX-License-Identifier: Apache-2.0
//
// What is in a weight: statistics, a histogram, its first values. Of a large one every so many elements are looked at.
#pragma once

#include "edit/model.h"
#include "explore/model_view.h"

namespace hone {

/// Without figures where the elements are not in reach or no numbers.
ViewWeight weight_facts(const edit::Model& model, const edit::Weight& weight);

}  // namespace hone
