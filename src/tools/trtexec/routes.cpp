// SPDX-License-Identifier: Apache-2.0
#include "tools/trtexec/routes.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "tools/common/api.h"

namespace hone {
namespace {

const RouteKnob& knob_called(const std::vector<RouteKnob>& knobs, std::string_view name) {
  const auto found = std::ranges::find(knobs, name, &RouteKnob::name);
  if (found != knobs.end()) return *found;
  std::vector<std::string_view> names;
  for (const RouteKnob& knob : knobs) names.push_back(knob.name);
  throw Error(fmt::format("Unknown knob: {}", name),
              fmt::format("did you mean {}? --helpBuildRoute lists all", nearest(name, names)));
}

/// Splits at blanks outside of brackets.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens(1);
  bool inside = false;
  for (const char c : text) {
    if (c == '[') inside = true;
    if (c == ']') inside = false;
    if (std::isspace(static_cast<unsigned char>(c)) == 0) tokens.back() += c;
    else if (!inside && !tokens.back().empty()) tokens.emplace_back();
  }
  if (tokens.back().empty()) tokens.pop_back();
  return tokens;
}

std::vector<std::string> values_of(std::string_view token, std::string_view text) {
  const auto refuse = [&](std::string_view what) {
    throw Error(fmt::format("Build route {}: {}", token, what), "write -knob=value or -knob=[value|value]");
  };
  if (text.find_first_of("[]") == std::string_view::npos) {
    if (text.empty()) refuse("the value is empty");
    return {std::string(text)};
  }
  if (!text.starts_with('[')) refuse("there is text before the bracket");
  if (text.find(']') != text.size() - 1) refuse("the bracket does not end the token");
  std::vector<std::string> values;
  for (const std::string_view value : split(text.substr(1, text.size() - 2), '|')) {
    if (value.empty()) refuse("a value is empty");
    if (std::ranges::find(values, value) != values.end()) refuse(fmt::format("the value {} stands twice", value));
    values.emplace_back(value);
  }
  return values;
}

RouteToken read_token(const std::vector<RouteKnob>& knobs, std::string_view token) {
  const size_t equals = token.find('=');
  if (!token.starts_with('-') || equals == std::string_view::npos)
    throw Error(fmt::format("Build route {}: it is not of the form -knob=value", token),
                "write -knob=value or -knob=[value|value]");
  const RouteKnob& knob = knob_called(knobs, token.substr(1, equals - 1));
  RouteToken result{knob.name, values_of(token, token.substr(equals + 1))};
  for (const std::string& value : result.values)
    if (std::ranges::find(knob.values, value) == knob.values.end())
      throw Error(fmt::format("Build route {}: {} is no value of {}", token, value, knob.name),
                  fmt::format("its values are {}", join(knob.values, ", ")));
  return result;
}

nlohmann::ordered_json knob_json(const RouteKnob& knob) {
  return {{"option", "-" + knob.name},
          {"allowed_values", fmt::format("-{}=[{}]", knob.name, join(knob.values, "|"))},
          {"default_value", knob.standard},
          {"help", knob.help}};
}

}  // namespace

std::vector<RouteKnob> route_knobs() {
  std::vector<RouteKnob> knobs;
  for (size_t i = 0; i < hone_knobs(); ++i) {
    const auto told = ask<hone_knob>(hone_knob_describe, i);
    knobs.push_back({told.name, {told.values, told.values + told.value_count}, told.standard, told.help});
  }
  return knobs;
}

std::string knobs_json(const std::string& name) {
  const std::vector<RouteKnob> knobs = route_knobs();
  auto options = nlohmann::ordered_json::array();
  if (!name.empty()) options.push_back(knob_json(knob_called(knobs, name.substr(name.starts_with('-') ? 1 : 0))));
  else
    for (const RouteKnob& knob : knobs) options.push_back(knob_json(knob));
  return nlohmann::ordered_json{{"tuner_version", "1"}, {"tuner_options", std::move(options)}}.dump(2);
}

RouteExpression parse_routes(std::string_view text) {
  const std::vector<RouteKnob> knobs = route_knobs();
  RouteExpression expression;
  for (const std::string& token : tokens_of(text)) {
    expression.push_back(read_token(knobs, token));
    for (size_t i = 0; i + 1 < expression.size(); ++i)
      if (expression[i].knob == expression.back().knob)
        throw Error(fmt::format("Build route {}: the knob stands twice", token), "put all values into one bracket");
  }
  if (expression.empty())
    throw Error("The build route is empty", "write -knob=[value|value]; --helpBuildRoute lists the knobs");
  return expression;
}

Route parse_route(std::string_view text) {
  Route route;
  for (const RouteToken& token : parse_routes(text)) {
    if (token.values.size() != 1)
      throw Error(fmt::format("A single build route gives {} one value, not {}", token.knob, token.values.size()),
                  "several routes are searched with --tuneBuildRoutes");
    route.emplace_back(token.knob, token.values[0]);
  }
  return route;
}

std::string route_text(const Route& route) {
  std::vector<std::string> parts;
  for (const auto& [knob, value] : route) parts.push_back(fmt::format("-{}={}", knob, value));
  return join(parts, " ");
}

std::string expression_text(const RouteExpression& expression) {
  std::vector<std::string> parts;
  for (const RouteToken& token : expression)
    parts.push_back(fmt::format("-{}=[{}]", token.knob, join(token.values, "|")));
  return join(parts, " ");
}

Route baseline(const RouteExpression& expression) {
  const std::vector<RouteKnob> knobs = route_knobs();
  Route route;
  for (const RouteToken& token : expression) route.emplace_back(token.knob, knob_called(knobs, token.knob).standard);
  return route;
}

std::vector<Route> fast_search(const RouteExpression& expression) {
  const Route base = baseline(expression);
  std::vector<Route> routes{base};
  for (size_t i = expression.size(); i-- > 0;)
    for (const std::string& value : expression[i].values) {
      if (value == base[i].second) continue;
      routes.push_back(base);
      routes.back()[i].second = value;
    }
  return routes;
}

std::vector<Route> full_search(const RouteExpression& expression) {
  std::vector<Route> routes{Route()};
  for (const RouteToken& token : expression) {
    std::vector<Route> longer;
    for (const Route& route : routes)
      for (const std::string& value : token.values) {
        longer.push_back(route);
        longer.back().emplace_back(token.knob, value);
      }
    routes = std::move(longer);
  }
  return routes;
}

}  // namespace hone
