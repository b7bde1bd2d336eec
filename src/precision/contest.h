// SPDX-License-Identifier: Apache-2.0
//
// Which of the engines of a network is the fastest, and whether a mixture of them would be faster.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "builder/events/listener.h"
#include "precision/mix.h"
#include "precision/variants.h"

namespace hone {

/// The upper one of two in the middle; of one value at least.
double median(std::vector<double> values);

/// An engine that can be run.
class Contender {
 public:
  virtual ~Contender() = default;
  /// How far its results are from those of the first contender, relatively; NaN where an element is no number in one alone.
  virtual double error() const = 0;
  /// Milliseconds of one inference: the median of some in a row, the first not counted.
  virtual double burst() = 0;
  virtual std::vector<LayerTime> layer_times() = 0;
};
/// Builds an engine. Throws Error where the types do not fit the network.
using Enter = std::function<std::unique_ptr<Contender>(const Variant& variant)>;

/// The first variant is the one that the others are held against: to win, fewer bits have to be clearly faster, and near enough
/// (BuildOptions::accuracy_budget). Behind them enters what mixed_types() makes of their layers' times. Throws what `enter`
/// throws for the first.
std::unique_ptr<Contender> contest(std::span<const Variant> variants, const BuildOptions& options, const Enter& enter,
                                   const Listeners& listeners);

}  // namespace hone
