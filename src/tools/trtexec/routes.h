// SPDX-License-Identifier: Apache-2.0
//
// Build routes: settings of the builder's knobs, "-onednn=off -opt_level=4". An expression gives knobs several values,
// "-onednn=[on|off]"; a search makes routes of it. Knobs are the builder's own: its effort, its kernel libraries, its passes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone {

struct RouteKnob {
  std::string name;
  std::vector<std::string> values;
  std::string standard;  // what a build has without a route
  std::string help;
};

std::vector<RouteKnob> route_knobs();
/// The database, or one knob of it, as --helpBuildRoute prints it. Throws Error for an unknown knob.
std::string knobs_json(const std::string& knob);

/// A knob and the values to try.
struct RouteToken {
  std::string knob;
  std::vector<std::string> values;
};
using RouteExpression = std::vector<RouteToken>;
/// A knob and its value, in the expression's order.
using Route = std::vector<std::pair<std::string, std::string>>;

/// Throws Error for unknown knobs, for values that are empty, repeated or not allowed, for text beside the brackets.
RouteExpression parse_routes(std::string_view text);
/// A single route: one value for each knob.
Route parse_route(std::string_view text);
std::string route_text(const Route& route);
std::string expression_text(const RouteExpression& expression);

/// All knobs of the expression as a build has them without a route.
Route baseline(const RouteExpression& expression);
/// The baseline, then single changes, from the last knob to the first.
std::vector<Route> fast_search(const RouteExpression& expression);
/// Every combination; the last knob varies fastest.
std::vector<Route> full_search(const RouteExpression& expression);

}  // namespace hone
