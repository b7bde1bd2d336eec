// SPDX-License-Identifier: Apache-2.0
//
// Setters of the inference and tuning groups: accuracy, weight streaming, debug tensors, build routes.
#include "base/error.h"
#include "base/text.h"
#include "options/setters.h"
#include "options/values.h"

namespace hone::setters {

void put_allocation(Options& options, const Argument& argument) {
  options.tool.allocation_strategy = read_word(argument, "allocationStrategy", {"static", "profile", "runtime"});
}

/// -2 (off), -1 (automatic), a percentage, or a size in bytes with an optional unit.
void put_weight_budget(Options& options, const Argument& argument) {
  options.tool.weight_streaming_budget = argument.value;
  const double number = read_real(argument);
  if (argument.value.ends_with('%') && (number < 0 || number > 100))
    throw Error("The weight streaming percent must be between 0 and 100", "for example --weightStreamingBudget=50%");
  const char unit = argument.value.back();
  if (!argument.value.ends_with('%') && std::string_view("0123456789.BKMGbkmg").find(unit) == std::string_view::npos)
    throw Error(fmt::format("Error parsing \"{}\": invalid unit specifier '{}'.", argument.value, unit),
                "units are B, K, M and G; without a unit bytes are meant");
}

void put_debug_tensors(Options& options, const Argument& argument) {
  options.build.debug_tensors = read_list(argument);
}

void put_debug_formats(Options& options, const Argument& argument) {
  for (const std::string& format : read_list(argument)) {
    Argument word = argument;
    word.value = format;
    options.tool.debug_formats.push_back(read_word(word, "debug tensor format", {"summary", "numpy", "string", "raw"}));
  }
}

void put_uff_input(Options& options, const Argument& argument) {
  if (read_list(argument).size() != 4)
    throw Error(fmt::format("Invalid uffInput {}", argument.value), "it takes a name and three sizes: in,3,224,224");
  options.tool.uff_inputs.push_back(argument.value);
}

void put_accuracy_algorithm(Options& options, const Argument& argument) {
  options.tool.accuracy.algorithm = read_word(argument, "accuracyAlgorithm", {"l0", "l1", "l2", "lInf", "cos"});
}

void put_tolerance(Options& options, const Argument& argument) {
  const double value = read_real(argument);
  if (value < 0) throw Error(fmt::format("{} must be non-negative.", argument.flag), "give 0 or more");
  AccuracyOptions& accuracy = options.tool.accuracy;
  (argument.flag == "--atol" ? accuracy.atol : argument.flag == "--rtol" ? accuracy.rtol : accuracy.threshold) = value;
}

void put_routes(Options& options, const Argument& argument) {
  RouteOptions& tuning = options.tool.tuning;
  if (argument.flag == "--tuneBuildRoutes") tuning.routes = argument.value;
  else if (argument.flag == "--tuneBuildRouteFile") tuning.route_file = argument.value;
  else if (argument.flag == "--saveAllEngines") tuning.save_all_engines = true;
  else if (argument.flag == "--continue") tuning.resume = true;
  else if (argument.flag == "--dryRun") tuning.dry_run = true;
  else if (argument.flag == "--tuningCacheFile") tuning.cache_file = argument.value;
  else if (argument.flag == "--tuningTimeOut") tuning.time_out_s = read_integer(argument);
  else if (argument.flag == "--setBuildRoute") tuning.route = argument.value;
  else if (argument.flag == "--tuningResultFile") tuning.result_file = argument.value;
  else {
    tuning.help = true;
    tuning.help_knob = argument.value;
  }
}

}  // namespace hone::setters
