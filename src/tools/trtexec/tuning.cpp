// SPDX-License-Identifier: Apache-2.0
#include "tools/trtexec/tuning.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "options/flag.h"
#include "options/parse.h"
#include "tools/trtexec/routes.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kTunerVersion = "1";

/// Routes and their results are short; anything else is no such file.
std::string read_short_file(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{64} << 20;
  const auto file = MappedFile::open(path);
  HONE_CHECK(file->bytes().size() <= kMaxBytes, "{} has {} bytes, which is too large for build routes or their results",
             path, file->bytes().size());
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

/// What became of one route.
struct Outcome {
  std::string route;
  bool crash = false;
  std::string error;
  Json losses = nullptr;     // by output; null without references
  std::optional<double> ms;  // none: it failed
};

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string name_of_flag(std::string_view argument) { return std::string(argument.substr(0, argument.find('='))); }

/// As a shell would take it.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("-_=./:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

/// Paths in arguments made absolute, so that the loop can be taken up from another folder.
std::string absolute_argument(const std::string& argument) {
  const Flag* flag = find_flag(name_of_flag(argument));
  const size_t equals = argument.find('=');
  if (flag == nullptr || flag->value_name != "<file>" || equals == std::string::npos) return argument;
  return argument.substr(0, equals + 1) + fs::absolute(argument.substr(equals + 1)).lexically_normal().string();
}

bool belongs_to_loop(std::string_view flag) {
  const Flag* row = find_flag(flag);
  return row != nullptr && (row->group == FlagGroup::tuning || flag == "--saveEngine");
}

std::string without_line_breaks(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

/// The expression in the arguments, from the command line or from its file.
RouteExpression expression_of(const RouteOptions& tuning) {
  return parse_routes(tuning.routes.empty() ? without_line_breaks(read_short_file(tuning.route_file)) : tuning.routes);
}

Json header_of(const ToolOptions& tool, const RouteExpression& expression, const std::vector<std::string>& arguments) {
  static const std::map<std::string, const char*> kAlgorithms{
      {"l0", "L0"}, {"l1", "L1"}, {"l2", "L2"}, {"lInf", "LInf"}, {"cos", "Cosine"}};
  Json argv = Json::array({"trtexec"}), inputs = Json::object(), references = Json::object();
  std::vector<std::string> words{"trtexec"};
  for (const std::string& argument : arguments) {
    argv.push_back(absolute_argument(argument));
    words.push_back(quoted(argument));
  }
  for (const auto& [name, file] : tool.load_inputs) inputs[name] = file;
  for (const auto& [name, file] : tool.reference_outputs) references[name] = file;
  return {{"tuner_version", kTunerVersion},
          {"accuracy_algorithm", kAlgorithms.at(tool.accuracy.algorithm)},
          {"accuracy_parameter",
           {{"atol", tool.accuracy.atol}, {"rtol", tool.accuracy.rtol}, {"epsilon", tool.accuracy.threshold}}},
          {"searching_algorithm", tool.tuning.search},
          {"command_line", join(words, " ")},
          {"default_build_route", route_text(baseline(expression))},
          {"tuning_expr", expression_text(expression)},
          {"files",
           {{"onnx", tool.onnx}, {"save_engine", tool.save_engine}, {"inputs", inputs}, {"ref_outputs", references}}},
          {"argv", std::move(argv)}};
}

Json line_of(size_t iteration, const Outcome& outcome) {
  return {{"iter", iteration},
          {"build_route", outcome.route},
          {"crash", outcome.crash},
          {"error_message", outcome.error},
          {"accuracy_loss", outcome.losses},
          {"gpu_time", outcome.ms ? Json(*outcome.ms) : Json(nullptr)}};
}

Outcome outcome_of(const Json& line) {
  Outcome outcome{line.at("build_route").get<std::string>(),
                  line.at("crash").get<bool>(),
                  line.at("error_message").get<std::string>(),
                  line.at("accuracy_loss"),
                  {}};
  if (!line.at("gpu_time").is_null()) outcome.ms = line.at("gpu_time").get<double>();
  return outcome;
}

void banner(std::string_view state, size_t iteration, const std::string& route) {
  const bool begins = state == "TASK_BEGIN";
  fmt::print("{}&&&& {} [iter={}] BuildRoute = '{}'\n{}", begins ? "\n" : "", state, iteration, route,
             begins ? "" : "\n");
  std::fflush(stdout);
}

/// Waits for a program with these arguments; its status as wait() gives it.
int wait_for_child(std::vector<std::string> arguments) {
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  pid_t child = 0;
  if (const int error = posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, words.data(), environ); error != 0)
    throw Error(fmt::format("cannot start a process: {}", std::strerror(error)),
                "see whether the system has reached a limit");
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

class Loop {
 public:
  Loop(const ToolOptions& tool, std::vector<std::string> arguments)
      : tool_(tool), arguments_(std::move(arguments)), expression_(expression_of(tool.tuning)) {}

  /// Starts the results anew, or reads those that are there.
  void open(bool resume) {
    if (resume) return read_results();
    std::ofstream(cache(), std::ios::trunc) << dumped(header_of(tool_, expression_, arguments_)) << '\n';
    if (!fs::exists(cache())) throw Error(fmt::format("cannot write {}", cache()), "choose another --tuningCacheFile");
  }

  void run() {
    const std::string& search = tool_.tuning.search;
    run_all(search == "full" ? full_search(expression_) : fast_search(expression_));
    if (search != "mixed") return;
    const RouteExpression helpful = helpful_knobs();
    if (helpful.size() < 2) return;
    std::vector<Route> routes;
    for (const Route& part : full_search(helpful)) {
      Route route = baseline(expression_);
      for (auto& [knob, value] : route)
        for (const auto& [name, chosen] : part)
          if (name == knob) value = chosen;
      routes.push_back(std::move(route));
    }
    run_all(routes);
  }

  /// Tells what came out and leaves the fastest engine under the name asked for. False when no route gave one.
  bool finish() {
    const auto best = best_route();
    if (!best) {
      fmt::print(stderr, "No build route gave an engine that runs within the limits.\n");
      return false;
    }
    const Outcome& outcome = outcomes_[*best];
    fmt::print("Best build route: '{}' [iter={}], mean GPU Compute Time {:g} ms", outcome.route, *best, *outcome.ms);
    if (outcomes_[0].ms) fmt::print(", {:g} ms without a route", *outcomes_[0].ms);
    fmt::print("\nResults of {} routes are in {}\n", outcomes_.size(), cache());
    keep_engine(*best);
    return true;
  }

  void print_routes() const {
    const std::vector<Route> routes =
        tool_.tuning.search == "full" ? full_search(expression_) : fast_search(expression_);
    for (size_t i = 0; i < routes.size(); ++i) fmt::print("[iter={}] BuildRoute = '{}'\n", i, route_text(routes[i]));
  }

 private:
  const std::string& cache() const { return tool_.tuning.cache_file; }
  std::string engine(size_t iteration) const { return fmt::format("{}.iter{}", tool_.save_engine, iteration); }

  void read_results() {
    const std::string text = read_short_file(cache());
    const std::vector<std::string_view> lines = split(text, '\n');
    for (size_t i = 1; i < lines.size(); ++i) {
      const Json line = Json::parse(lines[i], nullptr, false);
      if (line.is_discarded()) break;  // the loop was cut off while it wrote
      outcomes_.push_back(outcome_of(line));
    }
    std::string kept(lines[0]);
    kept += '\n';
    for (size_t i = 0; i < outcomes_.size(); ++i) kept += dumped(line_of(i, outcomes_[i])) + "\n";
    write_file(cache(), kept);
  }

  void run_all(const std::vector<Route>& routes) {
    for (const Route& route : routes) {
      const std::string text = route_text(route);
      if (std::ranges::find(outcomes_, text, &Outcome::route) != outcomes_.end()) continue;
      if (tool_.tuning.time_out_s >= 0 && seconds_since(start_) >= tool_.tuning.time_out_s) {
        if (!std::exchange(timed_out_, true))
          fmt::print("No further build routes: --tuningTimeOut={} is reached.\n", tool_.tuning.time_out_s);
        return;
      }
      outcomes_.push_back(run_route(text));
      std::ofstream(cache(), std::ios::app) << dumped(line_of(outcomes_.size() - 1, outcomes_.back())) << '\n';
    }
  }

  Outcome run_route(const std::string& route) {
    const size_t iteration = outcomes_.size();
    const std::string result = fmt::format("{}.result{}", cache(), getpid());
    std::vector<std::string> words{"trtexec"};
    for (const std::string& argument : arguments_)
      if (!belongs_to_loop(name_of_flag(argument))) words.push_back(argument);
    if (std::ranges::find(words, "--separateProfileRun") == words.end())
      words.push_back("--separateProfileRun");  // a run with the profiler is not measured
    words.push_back("--setBuildRoute=" + route);
    words.push_back("--tuningResultFile=" + result);
    if (!tool_.save_engine.empty()) words.push_back("--saveEngine=" + engine(iteration));
    banner("TASK_BEGIN", iteration, route);
    const int status = wait_for_child(std::move(words));
    Outcome outcome{route, false, "", nullptr, {}};
    read_result(result, status, outcome);
    banner(outcome.crash ? "TASK_ABORT" : "TASK_END", iteration, route);
    return outcome;
  }

  static void read_result(const std::string& path, int status, Outcome& outcome) {
    const Json result = fs::exists(path) ? Json::parse(read_file(path), nullptr, false) : Json();
    fs::remove(path);
    if (!result.is_object()) {
      outcome.crash = true;
      outcome.error = WIFSIGNALED(status) ? fmt::format("killed by signal {}", WTERMSIG(status))
                                          : fmt::format("exit status {}", WEXITSTATUS(status));
      return;
    }
    if (!result.at("accuracy_loss").empty()) outcome.losses = result.at("accuracy_loss");
    if (result.at("accuracy_failed").get<bool>()) outcome.error = "accuracy failed";
    outcome.ms = result.at("gpu_time_ms").get<double>();
  }

  /// Knobs of which one value alone was faster than the baseline, with all their values.
  RouteExpression helpful_knobs() const {
    const Route base = baseline(expression_);
    RouteExpression helpful;
    for (size_t i = 0; i < expression_.size(); ++i) {
      const bool helps = std::ranges::any_of(expression_[i].values, [&](const std::string& value) {
        Route route = base;
        route[i].second = value;
        const auto found = std::ranges::find(outcomes_, route_text(route), &Outcome::route);
        return found != outcomes_.end() && usable(*found) && usable(outcomes_[0]) && *found->ms < *outcomes_[0].ms;
      });
      if (!helps) continue;
      helpful.push_back(expression_[i]);
      std::vector<std::string>& values = helpful.back().values;
      if (std::ranges::find(values, base[i].second) == values.end()) values.insert(values.begin(), base[i].second);
    }
    return helpful;
  }

  static bool usable(const Outcome& outcome) { return outcome.ms.has_value() && outcome.error.empty(); }

  std::optional<size_t> best_route() const {
    std::optional<size_t> best;
    for (size_t i = 0; i < outcomes_.size(); ++i)
      if (usable(outcomes_[i]) && (!best || *outcomes_[i].ms < *outcomes_[*best].ms)) best = i;
    return best;
  }

  void keep_engine(size_t best) const {
    if (tool_.save_engine.empty()) return;
    fs::copy_file(engine(best), tool_.save_engine, fs::copy_options::overwrite_existing);
    for (size_t i = 0; i < outcomes_.size() && !tool_.tuning.save_all_engines; ++i) fs::remove(engine(i));
  }

  const ToolOptions& tool_;
  std::vector<std::string> arguments_;
  RouteExpression expression_;
  std::vector<Outcome> outcomes_;
  const double start_ = now_ms();
  bool timed_out_ = false;
};

/// The command line that a file of results was begun with.
std::vector<std::string> stored_arguments(const std::string& path) {
  const std::string text = read_short_file(path);
  const Json header = Json::parse(text.substr(0, text.find('\n')), nullptr, false);
  if (!header.is_object() || header.value("tuner_version", "") != kTunerVersion || !header.contains("argv"))
    throw Error(fmt::format("{} does not hold results of build routes", path),
                "give the file of an earlier --tuneBuildRoutes with --tuningCacheFile=<file>");
  auto argv = header.at("argv").get<std::vector<std::string>>();
  argv.erase(argv.begin());
  return argv;
}

int run_loop(const ToolOptions& tool, const std::vector<std::string>& arguments, bool resume) {
  Loop loop(tool, arguments);
  if (tool.tuning.dry_run) {
    loop.print_routes();
    return 0;
  }
  loop.open(resume);
  loop.run();
  return loop.finish() ? 0 : 1;
}

}  // namespace

int run_tuning(const ToolOptions& options, const std::vector<std::string>& arguments) {
  if (!options.tuning.resume) return run_loop(options, arguments, false);
  const std::vector<std::string> stored = stored_arguments(options.tuning.cache_file);
  CommandLine line = parse_command_line(stored);
  if (!line.errors.empty() || !line.options.tool.tuning.is_loop() || line.options.tool.tuning.resume)
    throw Error(fmt::format("the command line in {} cannot be run", options.tuning.cache_file),
                "start the tuning anew");
  line.options.tool.tuning.cache_file = options.tuning.cache_file;
  return run_loop(line.options.tool, stored, true);
}

void write_tuning_result(const std::string& path, double mean_ms, bool accuracy_failed,
                         const std::vector<std::pair<std::string, double>>& losses) {
  Json by_output = Json::object();
  for (const auto& [output, loss] : losses) by_output[output] = std::max(loss, by_output.value(output, loss));
  write_file(
      path,
      dumped({{"gpu_time_ms", mean_ms}, {"accuracy_failed", accuracy_failed}, {"accuracy_loss", by_output}}) + "\n");
}

}  // namespace hone
