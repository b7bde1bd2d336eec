// SPDX-License-Identifier: Apache-2.0
//
// From regions to layers with timed candidates, and from there to the choice of tactics, layouts and reformats.
#pragma once

#include <map>
#include <tuple>

#include "builder/session.h"

namespace hone {

/// A value brought into another layout: one more layer of the engine.
struct ReformatLayer {
  std::unique_ptr<Problem> problem;
  Candidate candidate;
};
using LayoutChange = std::tuple<const Value*, Layout, Layout>;       // value, from, to
using ReformatKey = std::tuple<const Value*, Layout, Layout, bool>;  // and whether it goes entry by entry

struct Choice {
  std::vector<Layer> layers;                       // `chosen` filled in
  std::map<ReformatKey, ReformatLayer> reformats;  // those that the choice may need
};

/// Whether two layouts coincide for every value of the symbols.
bool always_same_bytes(const Shape& shape, Layout a, Layout b);
/// Asks every source and splits what nobody wants; nothing is timed.
std::vector<Layer> propose_layers(BuildSession& session, const ProfilePoints& points);
/// The values that some of the layers' candidates would need in another layout than others leave them in.
std::vector<const Value*> reformatted_values(const BuildSession& session, const std::vector<Layer>& layers);
/// The same, then times what the cache does not know: the layers that take longest first,
/// because a build may be told to stop; then the rule of level 0 serves for the rest.
std::vector<Layer> make_layers(BuildSession& session, const ProfilePoints& points);
/// Times the reformats that could be needed, then chooses.
Choice choose(BuildSession& session, const ProfilePoints& points, std::vector<Layer> layers);

}  // namespace hone
