// SPDX-License-Identifier: Apache-2.0
//
// How far outputs are from references: the losses of --accuracyAlgorithm.
#pragma once

#include <span>
#include <string_view>

#include "options/tool_options.h"

namespace hone {

/// l0: share of elements with |a-r| > atol + rtol·|r|; l1: mean |a-r|; l2: mean (a-r)²; lInf: max |a-r|; cos: 1 - cosine
/// similarity. NaN in one alone counts as out of every tolerance. Both hold the same number of elements.
double accuracy_loss(const AccuracyOptions& options, std::span<const double> found, std::span<const double> reference);
/// "L0", "L1", "L2", "LInf", "CosineSimilarity".
std::string_view accuracy_label(std::string_view algorithm);

}  // namespace hone
