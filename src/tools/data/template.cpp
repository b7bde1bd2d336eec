// SPDX-License-Identifier: Apache-2.0
//
// `hone template`: the beginnings of programs: a network layer by layer, a builder's configuration, an edit of a model. They run as they are;
// a line says where to go on.
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "tools/commands/commands.h"
#include "tools/commands/group.h"
#include "tools/companion/narrator.h"
#include "tools/companion/polygraphy_flags.h"
#include "tools/compare/inputs.h"
#include "tools/compare/run_flags.h"
#include "tools/data/template_texts.h"

namespace hone {
namespace {

const CompanionFlag kOutput{"--output", Takes::one, "<file>", "the program that is written (-: print it)", "-o"};

std::string python_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char each : text) {
    if (each == '"' || each == '\\') quoted += '\\';
    quoted += each;
  }
  return quoted + "\"";
}

std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [name, value] : values)
    for (size_t at = 0; (at = text.find("@" + name + "@", at)) != std::string::npos; at += value.size())
      text.replace(at, name.size() + 2, value);
  return text;
}

/// Lines of load_config() for flags of a build.
std::string config_lines(const Arguments& arguments) {
  std::string lines;
  if (arguments.has("--builder-optimization-level"))
    lines += fmt::format("    config.builder_optimization_level = {}\n",
                         arguments.integer("--builder-optimization-level", 3));
  for (const auto& [flag, name] :
       {std::pair("--fp16", "FP16"), std::pair("--bf16", "BF16"), std::pair("--int8", "INT8"),
        std::pair("--fp8", "FP8"), std::pair("--refittable", "REFIT"), std::pair("--sparse-weights", "SPARSE_WEIGHTS"),
        std::pair("--version-compatible", "VERSION_COMPATIBLE")})
    if (arguments.has(flag)) lines += fmt::format("    config.set_flag(trt.BuilderFlag.{})\n", name);
  const auto mins = arguments.all("--trt-min-shapes"), opts = arguments.all("--trt-opt-shapes"),
             maxs = arguments.all("--trt-max-shapes");
  if (!opts.empty() && (mins.size() != opts.size() || maxs.size() != opts.size()))
    throw UsageError("--trt-min-shapes, --trt-opt-shapes and --trt-max-shapes do not come equally often",
                     "one of each for a profile");
  for (size_t i = 0; i < opts.size(); ++i) {
    lines += "    profile = builder.create_optimization_profile()\n";
    const auto low = parse_shape_words("--trt-min-shapes", mins[i]),
               high = parse_shape_words("--trt-max-shapes", maxs[i]);
    for (const auto& [input, dims] : parse_shape_words("--trt-opt-shapes", opts[i])) {
      if (!low.contains(input) || !high.contains(input))
        throw UsageError(fmt::format("input {} lacks a smallest or largest shape", input));
      lines += fmt::format("    profile.set_shape({}, ({},), ({},), ({},))\n", python_text(input),
                           join_dims(low.at(input), ", "), join_dims(dims, ", "), join_dims(high.at(input), ", "));
    }
    lines += "    config.add_optimization_profile(profile)\n";
  }
  return lines;
}

ExitStatus write(const Arguments& arguments, const char* text, const std::string& model) {
  const Narrator narrator(arguments);
  if (!arguments.has("--output")) throw UsageError("no file to write is given", "-o program.py");
  const std::string path = arguments.value("--output");
  const std::string updated = model.empty() ? ""
                                            : (std::filesystem::path(model).parent_path() /
                                               (std::filesystem::path(model).stem().string() + "_updated.onnx"))
                                                  .string();
  const std::string program =
      filled(text, {{"COMMAND", fmt::format("hone {} {}", arguments.command().name, join(arguments.words(), " "))},
                    {"CONFIG", config_lines(arguments)},
                    {"PROFILES", arguments.has("--trt-opt-shapes") ? "True" : "False"},
                    {"MODEL", model.empty() ? "None" : python_text(model)},
                    {"UPDATED", python_text(updated)}});
  if (path == "-") {
    fmt::print("{}", program);
    return ExitStatus::passed;
  }
  narrator.info("Writing script to: {}", path);
  write_file(path, program);
  return ExitStatus::passed;
}

std::string model_of(const Arguments& arguments) {
  if (arguments.files().empty()) return {};
  need_file(arguments.file());
  return arguments.file();
}

const CompanionCommand& network_command() {
  static const CompanionCommand kCommand{
      "template trt-network",
      "[MODEL.onnx]",
      "Writes a Python program that makes a network layer by layer, or goes on from a model, and saves its engine.",
      with_accepted({kOutput}, {AcceptedFlags::model, AcceptedFlags::network, AcceptedFlags::tensorflow}),
      0,
      1};
  return kCommand;
}
std::vector<CompanionFlag> config_flags() {
  std::vector<CompanionFlag> flags = engine_flags();
  flags.insert(flags.begin(), kOutput);
  return flags;
}
const CompanionCommand& config_command() {
  static const CompanionCommand kCommand{
      "template trt-config",
      "[MODEL.onnx]",
      "Writes a Python program that sets up a builder's configuration as flags of a build say.",
      with_accepted(config_flags(), {AcceptedFlags::data, AcceptedFlags::model, AcceptedFlags::builder}),
      0,
      1};
  return kCommand;
}
const CompanionCommand& surgeon_command() {
  static const CompanionCommand kCommand{"template onnx-gs", "MODEL.onnx",
                                         "Writes a Python program that edits the model.",
                                         with_accepted({kOutput}, {AcceptedFlags::data, AcceptedFlags::model})};
  return kCommand;
}
const CompanionCommand& template_command() {
  static const CompanionCommand kCommand{
      "template", "COMMAND", "Writes the beginnings of programs: trt-network, trt-config, onnx-gs.", {}, 0, 1000};
  return kCommand;
}

}  // namespace

const FriendlyCommand& describe_template_trt_network() { return friendly<network_command>(); }
int run_template_trt_network(Words words) {
  return run_companion(network_command(), words, [](const Arguments& arguments) {
    return write(arguments, kNetworkTemplate, model_of(arguments));
  });
}
const FriendlyCommand& describe_template_trt_config() { return friendly<config_command>(); }
int run_template_trt_config(Words words) {
  return run_companion(config_command(), words, [](const Arguments& arguments) {
    return write(arguments, kConfigTemplate, model_of(arguments));
  });
}
const FriendlyCommand& describe_template_onnx_gs() { return friendly<surgeon_command>(); }
int run_template_onnx_gs(Words words) {
  return run_companion(surgeon_command(), words, [](const Arguments& arguments) {
    return write(arguments, kSurgeonTemplate, model_of(arguments));
  });
}
const FriendlyCommand& describe_template() { return friendly<template_command>(); }
int run_template(Words words) { return run_group(template_command(), words); }

}  // namespace hone
