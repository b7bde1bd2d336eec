// SPDX-License-Identifier: Apache-2.0
//
// The parser: split, take row by row in the order of the table, then say what is left.
#include "options/parse.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "options/defaults.h"
#include "options/flag.h"
#include "options/values.h"

namespace hone {
namespace {

std::vector<Argument> split_arguments(std::span<const std::string> arguments) {
  std::vector<Argument> result;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& text = arguments[i];
    const size_t equals = text.find('=');
    result.push_back({text.substr(0, equals), equals == std::string::npos ? "" : text.substr(equals + 1), i + 1});
  }
  return result;
}

bool is_shape_flag(std::string_view flag) {
  return flag == "--minShapes" || flag == "--optShapes" || flag == "--maxShapes";
}

void take_pair(std::vector<Argument>& arguments, size_t at, ToolOptions& tool) {
  arguments[at].taken = true;
  const auto [pair, is_new] = tool.reference_pairs.try_emplace(read_integer(arguments[at]));
  if (!is_new)
    throw Error(fmt::format("--refPair={} is given twice", arguments[at].value), "give every --refPair its own number");
  for (size_t i = at + 1; i < arguments.size() && i <= at + 2; ++i) {
    const bool inputs = arguments[i].flag == "--loadInputs";
    if (!inputs && arguments[i].flag != "--loadRefOutputs") return;
    (inputs ? pair->second.inputs : pair->second.outputs) = read_named(arguments[i]);
    arguments[i].taken = true;
  }
}

/// --profile=N takes the at most three shape flags right behind it; --refPair the two flags of its pair.
void take_positional(std::vector<Argument>& arguments, ToolOptions& tool) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].flag == "--profile") {
      arguments[i].taken = true;
      const auto [profile, is_new] = tool.profiles.try_emplace(read_integer(arguments[i]));
      if (!is_new) throw Error("Optimization profile index cannot be the same.", "give every --profile its own number");
      for (size_t j = i + 1; j < arguments.size() && j <= i + 3 && is_shape_flag(arguments[j].flag); ++j) {
        setters::put_shape_of(profile->second, arguments[j]);
        arguments[j].taken = true;
      }
    } else if (arguments[i].flag == "--refPair") {
      take_pair(arguments, i, tool);
    }
  }
  if (tool.profiles.empty()) return;
  for (const Argument& argument : arguments)
    if (is_shape_flag(argument.flag) && !argument.taken)
      throw Error("Multiple --minShapes/--optShapes/--maxShapes without --profile are not allowed. ",
                  "put the shape flags right behind their --profile=N");
}

std::string warning_of(const Flag& flag) {
  if (flag.instead.starts_with("--")) return std::string(flag.instead);
  return fmt::format("{} is accepted, but {}", flag.name, flag.instead);
}

void take(const Flag& flag, std::vector<Argument>& arguments, CommandLine& line) {
  for (Argument& argument : arguments) {
    if (argument.taken || (argument.flag != flag.name && (flag.alias.empty() || argument.flag != flag.alias))) continue;
    argument.taken = true;
    if (!flag.instead.empty()) line.warnings.push_back(warning_of(flag));
    if (flag.value_name.empty() && !argument.value.empty())
      line.warnings.push_back(
          fmt::format("{} is a switch: it is on, and its value '{}' is ignored", flag.name, argument.value));
    if (flag.set != nullptr) flag.set(line.options, argument);
    if (flag.own) line.options.own_flags.emplace_back(flag.name, argument.value);
    if (!flag.repeatable) return;  // further copies are left over
  }
}

/// The characters that word processors make of "--".
std::string_view typographic_dash(std::string_view text) {
  struct Dash {
    std::string_view bytes, name;
  };
  static constexpr Dash kDashes[] = {{"\u2010", "U+2010 (hyphen)"},      {"\u2011", "U+2011 (non-breaking hyphen)"},
                                     {"\u2012", "U+2012 (figure dash)"}, {"\u2013", "U+2013 (en dash)"},
                                     {"\u2014", "U+2014 (em dash)"},     {"\u2015", "U+2015 (horizontal bar)"},
                                     {"\u2212", "U+2212 (minus sign)"}};
  const std::string_view start = text.starts_with('-') ? text.substr(1) : text;
  for (const Dash& dash : kDashes)
    if (text.starts_with(dash.bytes) || start.starts_with(dash.bytes)) return dash.name;
  return {};
}

std::string nearest_flag(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Flag& flag : flag_table()) names.push_back(flag.name);
  return std::string(nearest(name, names));
}

std::string hint_for_word(const Argument& argument) {
  const std::string text = argument.text();
  if (text.ends_with(".onnx")) return fmt::format("a model is given with --onnx={}", text);
  for (const std::string_view ending : {".plan", ".engine", ".trt"})
    if (text.ends_with(ending)) return fmt::format("a plan is given with --loadEngine={}", text);
  return "arguments have the form --flag or --flag=value; a value stands behind '=', without blanks";
}

std::string hint_for(const Argument& argument, Release release) {
  if (trim(argument.flag).empty() && argument.value.empty()) return "empty argument; trailing blank after a backslash?";
  if (const std::string_view dash = typographic_dash(argument.flag); !dash.empty())
    return fmt::format(
        "it begins with {} instead of ASCII hyphens, as copied from a formatted page; type --{}", dash,
        argument.flag.substr(argument.flag.find_first_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")));
  for (const LookAlike& look_alike : look_alikes())
    if (look_alike.name == argument.flag) return std::string(look_alike.hint);
  if (is_removed(argument.flag, release))
    return fmt::format("release 11 has dropped {}; leave --compat out to use it", argument.flag);
  if (const Flag* flag = find_flag(argument.flag)) return fmt::format("{} may be given only once", flag->name);
  if (!argument.flag.starts_with('-')) return hint_for_word(argument);
  return fmt::format("did you mean {}?", nearest_flag(argument.flag));
}

void report_left_over(const std::vector<Argument>& arguments, CommandLine& line) {
  for (const Argument& argument : arguments)
    if (!argument.taken)
      line.errors.push_back(fmt::format("Unknown option: {} {}\n  hint: {}", argument.flag, argument.value,
                                        hint_for(argument, line.options.tool.release)));
}

/// --continue replays the command line that the results hold; nothing else may stand beside it.
void refuse_resume(const std::vector<Argument>& arguments, const ToolOptions& tool) {
  if (!tool.tuning.resume) return;
  for (const Argument& argument : arguments)
    if (argument.flag != "--continue" && argument.flag != "--tuningCacheFile")
      throw Error(fmt::format("--continue cannot be used with {}", argument.flag),
                  "only --tuningCacheFile=<file> may stand beside --continue");
}

void require_model(const std::vector<Argument>& arguments, const ToolOptions& tool) {
  if (!tool.onnx.empty() || !tool.load_engine.empty()) return;
  if (!tool.uff.empty() || !tool.caffe_weights.empty() || !tool.caffe_prototxt.empty())
    throw Error("UFF and Caffe models are not read: the formats are retired",
                "convert the model to ONNX and give it with --onnx=<file>");
  std::string hint = "give a model with --onnx=<file> or a plan with --loadEngine=<file>";
  for (const Argument& argument : arguments) {
    if (argument.taken || argument.flag.starts_with('-')) continue;
    hint = hint_for(argument, tool.release);
    break;
  }
  throw Error("Model missing or format not recognized", hint);
}

}  // namespace

CommandLine parse_command_line(std::span<const std::string> words) {
  CommandLine line;
  line.options.arguments.assign(words.begin(), words.end());
  std::vector<Argument> arguments = split_arguments(words);
  const auto given = [&](std::string_view name) {
    return std::ranges::any_of(arguments, [&](const Argument& a) { return a.flag == name; });
  };
  line.help = given("--help") || given("-h");
  if (line.help) return line;
  try {
    for (const Argument& argument : arguments)
      if (argument.flag == "--compat") apply_release_defaults(line.options, read_release(argument.value));
    for (const Argument& argument : arguments)
      if (is_shape_flag(argument.flag) || argument.flag == "--shapes")
        line.options.tool.shape_arguments.emplace_back(argument.flag, argument.value);
    take_positional(arguments, line.options.tool);
    for (const Flag& flag : flag_table())
      if (!is_removed(flag.name, line.options.tool.release)) take(flag, arguments, line);
    std::ranges::move(line.options.warnings, std::back_inserter(line.warnings));
    refuse_resume(arguments, line.options.tool);
    if (line.options.tool.tuning.help || line.options.tool.tuning.resume) return line;
    require_model(arguments, line.options.tool);
    apply_implied_flags(line.options, given, line.warnings);
    refuse_combinations(line.options, given);
    complete_shapes(line.options, line.warnings);
  } catch (const Error& error) {
    line.errors.push_back(error.what());
    return line;
  }
  report_left_over(arguments, line);
  return line;
}

}  // namespace hone
