// SPDX-License-Identifier: Apache-2.0
//
// trtexec from the first banner to the last: options, device, engine, inference. Whoever parses its log relies on the
// order and the wording here; every failure ends in FAILED and exit status 1.
#include "tools/trtexec.h"

#include <cstdio>

#include "base/env.h"
#include "base/text.h"
#include "base/version.h"
#include "options/blocks.h"
#include "options/parse.h"
#include "report/explain.h"
#include "tools/inference.h"
#include "tools/memory_usage.h"
#include "tools/session.h"
#include "tools/time_deserialize.h"

namespace hone {
namespace {

enum class Outcome { passed, failed, no_device };

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void banner(std::string_view state, const std::string& command) {
  const unsigned number = kVersionMajor * 1000 + kVersionMinor * 100 + kVersionPatch;
  print(fmt::format("&&&& {} Hone.trtexec [Hone v{:04}] # {}\n", state, number, command));
}

void print_device(const DeviceInfo& info, const Logger& log) {
  log.info("=== Device Information ===");
  log.info("Selected Device: {}", info.name);
  log.info("Compute Capability: {}", info.architecture);
  log.info("SMs: {}", info.workers);
  log.info("Device Global Memory: {} MiB", info.memory_bytes >> 20);
  log.info("Shared Memory per SM: {} KiB", info.cache_bytes >> 10);
  log.info("Memory Bus Width: 0 bits (ECC disabled)");
  log.info("Application Compute Clock Rate: {:g} GHz", info.clock_ghz);
  log.info("Application Memory Clock Rate: 0 GHz");
  log.info("");
  log.info(
      "Note: The application clock rates do not reflect what the device is clocked at now; 0 stands for what the "
      "system does not tell.");
  log.info("");
  log.info("Hone version: {}", kVersion);
  log.info("Loading standard plugins");
}

/// Errors of one phase are told with their hint, then the phase is named.
template <typename Phase>
bool phase(std::string_view failure, const Logger& log, Phase&& body) {
  try {
    body();
    return true;
  } catch (const Error& error) {
    log.error("{}", error.what());
    log.error("{}", failure);
    return false;
  }
}

/// What is told about the engine when nothing runs.
void report_engine(const Session& session, const Options& options, const Logger& log) {
  if (options.report.wants_layer_info()) report_layers(session, options.report, {}, log);
  if (options.report.dump_optimization_profile) report_optimization_profiles(session.plan(), log);
}

bool set_up_engine(Session& session, const Options& options, const Voices& voices) {
  const bool loaded = phase("Engine set up failed", voices.tool, [&] {
    if (options.tool.load_engine.empty()) {
      try {
        session.build();
      } catch (const Error& error) {
        voices.tool.error("{}", error.what());
        throw Error("Failed to create engine from model or file.");
      }
    }
    session.load();
  });
  if (loaded && options.report.explain)
    for (const std::string& line : explain_lines(session.plan(), options.report.explain_layer))
      voices.tool.info("{}", line);
  return loaded;
}

Outcome run_engine(Session& session, const Options& options, const Voices& voices) {
  if (!set_up_engine(session, options, voices)) return Outcome::failed;
  if (options.tool.time_refit) voices.tool.info("Network not available, skipped timing refit.");
  if (options.tool.time_deserialize) return time_deserialize(session, voices.tool) ? Outcome::passed : Outcome::failed;
  if (options.tool.skip_inference || session.interrupted()) {
    report_engine(session, options, voices.tool);
    voices.tool.info("Skipped inference phase since {}.",
                     options.tool.skip_inference ? "--skipInference is added" : "the build was interrupted");
    return Outcome::passed;
  }
  Inference inference(session, options, voices);
  if (!phase("Inference set up failed", voices.tool, [&] { inference.set_up(); })) return Outcome::failed;
  if (options.report.wants_layer_info()) report_layers(session, options.report, inference.shapes(), voices.tool);
  if (options.report.dump_optimization_profile) report_optimization_profiles(session.plan(), voices.tool);
  bool accurate = false;
  const bool ran = phase("Error occurred during inference", voices.tool, [&] {
    inference.run();
    accurate = inference.validate();
  });
  return ran && accurate ? Outcome::passed : Outcome::failed;
}

Outcome run(const Options& options, Logger& log) {
  if (options.tool.get_plan_version_only) {
    log.info("Plan was created with Hone version {}",
             with_note([&] { return fmt::format("reading the plan {}", options.tool.load_engine); },
                       [&] { return plan_version(options.tool.load_engine); }));
    return Outcome::passed;
  }
  const MemoryUsage before;
  OpenDevice device;
  try {
    device = open_device(options.tool.device);
  } catch (const Error& error) {
    log.error("{}", error.what());
    return Outcome::no_device;
  }
  const Voices voices(log);
  print_device(device.device->info(), log);
  voices.engine.info("{}", before.change(fmt::format("Init {} device", device.backend->name)));
  Session session(options, std::move(device), voices);
  return run_engine(session, options, voices);
}

void warn_of_environment(const Logger& log) {
  const std::string report = unknown_env_report();
  for (const std::string_view text : split(report, '\n'))
    if (!text.empty()) log.warning("{}", text);
}

/// The database of --helpBuildRoute: engines have no knobs beyond the flags, so it is empty.
int print_knobs(const std::string& knob) {
  if (knob.empty()) {
    print("{\"tuner_version\": \"1\", \"tuner_options\": []}\n");
    return 0;
  }
  fmt::print(stderr, "Unknown knob: {}; there are none: see --builderOptimizationLevel and --tacticSources\n", knob);
  return 1;
}

bool accept(const CommandLine& line, const Logger& log) {
  if (line.errors.empty()) return true;
  print(help_text());
  for (const std::string& error : line.errors) log.error("{}", error);
  return false;
}

}  // namespace

int run_trtexec(const std::vector<std::string>& arguments, const std::string& command) {
  banner("RUNNING", command);
  if (arguments.empty()) {
    print(help_text());
    banner("PASSED", command);
    return 0;
  }
  const CommandLine line = parse_command_line(arguments);
  if (line.help) {
    print(help_text());
    return 0;
  }
  if (line.errors.empty() && line.options.tool.tuning.help) return print_knobs(line.options.tool.tuning.help_knob);
  Logger log;
  Outcome outcome = Outcome::failed;
  if (accept(line, log)) {
    warn_of_environment(log);
    for (const std::string& warning : line.warnings) log.warning("{}", warning);
    for (const std::string& text : option_blocks(line.options)) log.info("{}", text);
    if (line.options.report.verbose) log.set_threshold(Severity::verbose);
    try {
      outcome = run(line.options, log);
    } catch (const std::exception& error) {
      log.error("Uncaught exception detected: {}", error.what());
    }
  }
  if (outcome != Outcome::no_device) banner(outcome == Outcome::passed ? "PASSED" : "FAILED", command);
  return outcome == Outcome::passed ? 0 : 1;
}

}  // namespace hone
