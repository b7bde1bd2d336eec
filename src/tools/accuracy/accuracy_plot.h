// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "tools/accuracy/layer_errors.h"
#include "tools/accuracy/reduced_network.h"

namespace hone {

/// A drawing (SVG) of the error along the depth of a network, and of the errors and times of the ways to build it. Pointing at a
/// mark shows its name and numbers.
std::string accuracy_plot(const std::string& title, std::span<const LayerError> layers, std::span<const Trial> trials,
                          double exact_ms);

}  // namespace hone
