// SPDX-License-Identifier: Apache-2.0
//
// trtexec from the first banner to the last: options, device, engine, inference. Whoever parses its log relies on the
// order and the wording here; every failure ends in FAILED and exit status 1.
#include "tools/trtexec/trtexec.h"

#include <cstdio>
#include <optional>

#include "base/env.h"
#include "base/text.h"
#include "base/version.h"
#include "options/blocks.h"
#include "options/parse.h"
#include "tools/common/inference.h"
#include "tools/common/operator_libraries.h"
#include "tools/common/plan_streams.h"
#include "tools/common/replicas.h"
#include "tools/common/session.h"
#include "tools/files/rank_files.h"
#include "tools/trtexec/memory_usage.h"
#include "tools/trtexec/routes.h"
#include "tools/trtexec/time_deserialize.h"
#include "tools/trtexec/tuning.h"

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

/// "9.0" of a GPU, whose architecture is "sm_90".
std::string capability(std::string text) {
  if (!text.starts_with("sm_")) return text;
  text.erase(0, 3);
  return text.insert(text.size() - 1, ".");
}

void print_device(const hone_device_info& info, const Logger& log) {
  log.info("=== Device Information ===");
  log.info("Selected Device: {}", info.name);
  log.info("Compute Capability: {}", capability(info.architecture));
  log.info("SMs: {}", info.workers);
  log.info("Device Global Memory: {} MiB", info.memory_bytes >> 20);
  log.info("Shared Memory per SM: {} KiB", info.core_bytes >> 10);
  log.info("Memory Bus Width: {} bits (ECC {})", info.memory_bus_bits,
           info.error_correction < 0    ? "unknown"
           : info.error_correction != 0 ? "enabled"
                                        : "disabled");
  log.info("Application Compute Clock Rate: {:g} GHz", info.clock_ghz);
  log.info("Application Memory Clock Rate: {:g} GHz", info.memory_clock_ghz);
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
  if (options.report.dump_optimization_profile) report_optimization_profiles(session, log);
}

bool set_up_engine(Session& session, const Options& options, const Voices& voices) {
  constexpr std::string_view kFailed = "Engine set up failed";
  const bool built = phase(kFailed, voices.tool, [&] {
    open_operator_libraries(options.tool, voices.tool);
    if (!options.tool.load_engine.empty()) return session.read();
    try {
      session.build();
    } catch (const Error& error) {
      voices.tool.error("{}", error.what());
      throw Error("Failed to create engine from model or file.");
    }
  });
  const bool loaded = built && phase("Engine refit failed.", voices.tool, [&] { session.refit(); }) &&
                      phase(kFailed, voices.tool, [&] { session.load(); });
  if (loaded && options.report.explain) {
    const std::string text = ask<const char*>(hone_plan_explain, session.plan(), options.report.explain_layer.c_str());
    for (const std::string_view line : split(text, '\n')) voices.tool.info("{}", line);
  }
  return loaded;
}

Outcome run_engine(Session& session, const Options& options, const Voices& voices) {
  if (!set_up_engine(session, options, voices)) return Outcome::failed;
  if (options.tool.time_deserialize) return time_deserialize(session, voices.tool) ? Outcome::passed : Outcome::failed;
  if (options.tool.skip_inference || session.interrupted()) {
    report_engine(session, options, voices.tool);
    voices.tool.info("Skipped inference phase since {}.",
                     options.tool.skip_inference ? "--skipInference is added" : "the build was interrupted");
    return Outcome::passed;
  }
  Inference inference(session, options, voices);
  std::optional<Replicas> replicas;
  const bool ready = phase("Inference set up failed", voices.tool, [&] {
    inference.set_up();
    replicas.emplace(session, inference, options, voices);
  });
  if (!ready) return Outcome::failed;
  if (options.report.wants_layer_info()) report_layers(session, options.report, inference.shapes(), voices.tool);
  if (options.report.dump_optimization_profile) report_optimization_profiles(session, voices.tool);
  bool accurate = false;
  const bool ran = phase("Error occurred during inference", voices.tool, [&] {
    inference.run();
    accurate = inference.validate();
  });
  if (ran && !options.tool.tuning.result_file.empty())
    write_tuning_result(options.tool.tuning.result_file, inference.mean_compute_ms(), !accurate, inference.losses());
  return ran && accurate ? Outcome::passed : Outcome::failed;
}

/// --perfMap and --jitDump, before any code is generated.
void name_code(const ReportOptions& options, const Logger& log) {
  if (options.perf_map) log.info("Writing names of generated code to {}", ask<const char*>(hone_write_perf_map));
  if (!options.jit_dump.empty())
    log.info("Writing generated code to {}", ask<const char*>(hone_write_jit_dump, options.jit_dump.c_str()));
}

Outcome run(const Options& options, PlanFile file, Logger& log) {
  if (options.tool.get_plan_version_only) {
    log.info("Plan was created with Hone version {}",
             ask<const char*>(hone_plan_file_version, options.tool.load_engine.c_str()));
    return Outcome::passed;
  }
  const MemoryUsage before;
  Owned<hone_device> device;
  try {
    device = device_for_streams(options);
  } catch (const Error& error) {
    log.error("{}", error.what());
    return Outcome::no_device;
  }
  const Voices voices(log, "[HONE] ");
  const hone_device_info info = info_of(device.get());
  print_device(info, log);
  if (options.perf.streams > 1 && info.host_accessible != 0)
    log.info("Cores of each of the {} inference streams: {}, from a thread of its own", options.perf.streams,
             info.workers);
  voices.engine.info("{}", before.change(fmt::format("Init {} device", info.kind)));
  if (!phase("Generated code cannot be named.", log, [&] { name_code(options.report, log); })) return Outcome::failed;
  Session session(options, std::move(device), voices);
  session.take(std::move(file));
  return run_engine(session, options, voices);
}

void warn_of_environment(const Logger& log) {
  const std::string report = unknown_env_report();
  for (const std::string_view text : split(report, '\n'))
    if (!text.empty()) log.warning("{}", text);
}

int print_knobs(const std::string& knob) {
  try {
    print(knobs_json(knob) + "\n");
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

/// The engine as the command line describes it, from the option blocks to the last report.
Outcome run_single(Options& options, Logger& log) {
  FollowedPlan followed;
  if (!options.tool.get_plan_version_only) followed = follow_plan(options);
  for (const std::string& text : option_blocks(options)) log.info("{}", text);
  if (options.report.verbose) log.set_threshold(Severity::verbose);
  if (followed.taken)
    log.info(
        "The plan was found to give the most with {} inference streams and {} rows a query, which are taken; "
        "--infStreams=1 "
        "measures one query at a time.",
        followed.taken->streams, followed.taken->rows);
  const std::string& route = options.tool.tuning.route;
  const bool taken = route.empty() || phase("The build route cannot be taken.", log, [&] {
                       (void)parse_route(route);
                       log.info("Using tuning build route: {}", route);
                     });
  return taken ? run(options, std::move(followed.file), log) : Outcome::failed;
}

Outcome run_loop(const Options& options, const std::vector<std::string>& arguments, const Logger& log) {
  int status = 1;
  phase("Tuning of build routes failed.", log, [&] { status = run_tuning(options.tool, arguments); });
  return status == 0 ? Outcome::passed : Outcome::failed;
}

bool accept(const CommandLine& line, const Logger& log) {
  if (line.errors.empty()) return true;
  const bool errors_first = line.options.tool.release == Release::v8_6;
  if (!errors_first) print(help_text());
  for (const std::string& error : line.errors) log.error("{}", error);
  if (errors_first) print(help_text());
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
  CommandLine line = parse_command_line(arguments);
  if (line.help) {
    print(help_text());
    return 0;
  }
  if (line.errors.empty() && line.options.tool.tuning.help) return print_knobs(line.options.tool.tuning.help_knob);
  Logger log;
  if (!speaks()) log.set_threshold(Severity::error);
  Outcome outcome = Outcome::failed;
  const bool accepted = accept(line, log);
  if (!accepted && line.options.tool.release == Release::v11) return 1;
  if (accepted) {
    warn_of_environment(log);
    for (const std::string& warning : line.warnings) log.warning("{}", warning);
    try {
      outcome =
          line.options.tool.tuning.is_loop() ? run_loop(line.options, arguments, log) : run_single(line.options, log);
    } catch (const std::exception& error) {
      log.error("Uncaught exception detected: {}", error.what());
    }
  }
  if (outcome != Outcome::no_device) banner(outcome == Outcome::passed ? "PASSED" : "FAILED", command);
  return outcome == Outcome::passed ? 0 : 1;
}

}  // namespace hone
