// SPDX-License-Identifier: Apache-2.0
#include "tools/debug/checker.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "tensor/json.h"
#include "tools/compare/compare_run.h"
#include "tools/compare/run_flags.h"
#include "tools/debug/passing_file.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReplay = "polygraphy_debug_replay.json";

/// Words as a shell splits them: blanks separate, quotes hold together.
std::vector<std::string> shell_words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool open = false;
  for (const char each : text) {
    if (quote != 0) {
      if (each == quote) quote = 0;
      else word += each;
    } else if (each == '\'' || each == '"') {
      quote = each;
      open = true;
    } else if (each == ' ' || each == '\t' || each == '\n') {
      if (open) words.push_back(word);
      word.clear();
      open = false;
    } else {
      word += each;
      open = true;
    }
  }
  if (quote != 0) throw UsageError(fmt::format("a quote is open in '{}'", text));
  if (open) words.push_back(word);
  return words;
}

/// Runs a command, its output and errors together. `hone` and `polygraphy` are this program wherever it lies.
int run_program(const std::vector<std::string>& words, std::string& output) {
  int ends[2];
  if (pipe(ends) != 0) throw Error("no pipe for the check command's output");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw Error("the check command cannot be started");
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    if (words[0] == "hone" || words[0] == "polygraphy") execv("/proc/self/exe", arguments.data());
    execvp(words[0].c_str(), arguments.data());
    dprintf(STDERR_FILENO, "%s cannot be run: %s\n", words[0].c_str(), std::strerror(errno));
    _exit(127);
  }
  close(ends[1]);
  char part[4096];
  while (true) {
    const ssize_t got = ::read(ends[0], part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    output.append(part, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::set<int> codes_of(const Arguments& arguments, std::string_view flag) {
  std::set<int> codes;
  for (const std::string& word : arguments.values(flag)) {
    const std::optional<int64_t> code = parse_integer(word);
    if (!code) throw UsageError(fmt::format("{} takes exit codes, not '{}'", flag, word));
    codes.insert(static_cast<int>(*code));
  }
  return codes;
}

}  // namespace

std::vector<CompanionFlag> checker_flags() {
  return {{"--check", Takes::rest, "<command...>",
           "what tells whether an iteration passes; everything behind it is the command", "--check-inference"},
          {"--check-run", Takes::word, "<flags>",
           "compare in this process, as hone run with these flags does: \"--cpu --ref --atol 1e-3\""},
          {"--fail-code", Takes::some, "<code...>", "exit codes that mean failure; default: all but 0",
           "--fail-returncode"},
          {"--ignore-fail-code", Takes::some, "<code...>", "exit codes that do not", "--ignore-fail-returncode"},
          {"--fail-regex", Takes::some, "<pattern...>", "output that means failure, whatever the exit code"},
          {"--show-output", Takes::nothing, "", "show what the check prints"},
          {"--hide-fail-output", Takes::nothing, "", "do not even where it fails"},
          {"--artifacts", Takes::some, "<file...>", "files to sort into good/ and bad/ behind each iteration"},
          {"--art-dir", Takes::one, "<folder>", "where those are (default polygraphy_artifacts)", "--artifacts-dir"},
          {"--iter-artifact", Takes::one, "<file>", "what each iteration writes, for the check to read",
           "--intermediate-artifact"},
          {"--no-remove-intermediate", Takes::nothing, "", "leave it there"},
          {"--iter-info", Takes::one, "<file>", "write the iteration's number there as JSON", "--iteration-info"},
          {"--load-debug-replay", Takes::one, "<file>", "go on where a search was interrupted"},
          {"--save-debug-replay", Takes::one, "<file>",
           "where the answers are kept (default polygraphy_debug_replay.json)"}};
}

Checker::Checker(const Arguments& arguments, const Narrator& narrator, const std::string& artifact)
    : arguments_(arguments),
      narrator_(narrator),
      artifact_(arguments.value("--iter-artifact", artifact)),
      command_(arguments.values("--check")),
      fail_codes_(codes_of(arguments, "--fail-code")),
      ignored_codes_(codes_of(arguments, "--ignore-fail-code")),
      start_ms_(now_ms()) {
  if (!fail_codes_.empty() && !ignored_codes_.empty())
    throw UsageError("--fail-code and --ignore-fail-code exclude each other");
  if (arguments.has("--check") && arguments.has("--check-run"))
    throw UsageError("--check and --check-run exclude each other");
  for (const auto& words : arguments.all("--fail-regex"))
    for (const std::string& word : words) {
      try {
        fail_patterns_.emplace_back(word);
      } catch (const std::regex_error&) {
        throw UsageError(fmt::format("--fail-regex {} is no regular expression", word));
      }
    }
  const std::string replay = arguments.value("--load-debug-replay");
  if (!replay.empty()) known_ = read_debug_replay(replay);
  replay_ = known_.size();
  // Behind an interrupted search the intermediate file may still lie there.
  if (replay.empty() && !artifact_.empty() && fs::exists(artifact_))
    throw UsageError(fmt::format("{} is there, and every iteration would overwrite it", artifact_),
                     "remove it, or name another file with --iter-artifact");
  if (command_.empty() && !arguments.has("--check-run"))
    narrator.info("Neither --check nor --check-run is given: whoever sits here is asked");
}

bool Checker::passes(const std::string& what, const std::function<void()>& make, const TensorList* inputs) {
  if (const std::optional<bool> known = replayed(what)) return *known;
  begin();
  const std::string replay = arguments_.value("--save-debug-replay", kReplay);
  // Whoever crashes here can go on behind the crash with this one.
  const size_t ending = replay.rfind('.');
  save_replay(fmt::format("{}_skip_current{}", replay.substr(0, ending),
                          ending == std::string::npos ? "" : replay.substr(ending)),
              false, what);
  return answer(what, attempt(make, inputs));
}

Checker::Answer Checker::attempt(const std::function<void()>& make, const TensorList* inputs) {
  try {
    make();
  } catch (const StatusError&) {
    throw;
  } catch (const Error& error) {
    narrator_.warning("The iteration could not be made: {}", error.message());
    return {false, 1};
  }
  const double start = now_ms();
  const Answer answer = run(inputs);
  check_ms_ += now_ms() - start;
  ++checks_;
  return answer;
}

std::optional<bool> Checker::replayed(const std::string& what) {
  if (next_known_ >= replay_) return std::nullopt;
  const auto& [kept, passed] = known_[next_known_];
  if (kept != what) {
    narrator_.warning("The replay's iteration {} asked about other things; the search goes on by itself",
                      next_known_ + 1);
    known_.resize(next_known_);
    replay_ = next_known_;
    return std::nullopt;
  }
  ++next_known_;
  ++asked_;
  passed_ += passed;
  narrator_.info("{} | Iteration {} | Skipped: the replay holds its answer", passed ? "PASSED" : "FAILED", asked_);
  return passed;
}

void Checker::begin() {
  ++asked_;
  narrator_.info("RUNNING | Iteration {}{}", asked_,
                 remaining_ >= 0 ? fmt::format(" | Approximately {} iteration(s) remaining", remaining_) : "");
  if (const std::string path = arguments_.value("--iter-info"); !path.empty())
    write_passing_file(path, Json{{"iteration", asked_ - 1}}.dump() + "\n");
}

Checker::Answer Checker::run(const TensorList* inputs) {
  if (arguments_.has("--check-run")) return run_comparison(inputs);
  if (command_.empty()) return ask_user();
  return run_command();
}

/// Polygraphy's rules: codes decide unless a pattern is given; with both, both have to say so.
bool Checker::judge(int code, const std::string& output) const {
  if (ignored_codes_.contains(code)) return true;
  const bool found = std::ranges::any_of(fail_patterns_,
                                         [&](const std::regex& pattern) { return std::regex_search(output, pattern); });
  if (!fail_codes_.empty()) return !fail_codes_.contains(code) || (!fail_patterns_.empty() && !found);
  return fail_patterns_.empty() ? code == 0 : !found;
}

Checker::Answer Checker::run_command() const {
  narrator_.info("Running check command: {}", join(command_, " "));
  std::string output;
  const int code = run_program(command_, output);
  if (code == 127)
    throw StatusError(ExitStatus::no_backend,
                      fmt::format("the check command cannot be run: {}", std::string(trim(output))), "give its path");
  const bool good = judge(code, output);
  if (arguments_.has("--show-output") || (!good && !arguments_.has("--hide-fail-output")))
    narrator_.info("========== CAPTURED STDOUT AND STDERR ==========\n{}", std::string(trim(output)));
  return {good, code};
}

Checker::Answer Checker::run_comparison(const TensorList* inputs) const {
  std::vector<std::string> words{artifact_};
  for (std::string& word : shell_words(arguments_.value("--check-run"))) words.push_back(std::move(word));
  if (!arguments_.has("--show-output")) words.insert(words.end(), {"--verbosity", "CRITICAL"});
  try {
    const Arguments comparison(comparison_command(), words);
    std::vector<TensorList> iterations;
    if (inputs != nullptr) iterations.push_back(*inputs);
    const bool given = inputs != nullptr && !comparison.has("--load-inputs") && !comparison.has("--data-loader-cmd");
    const ExitStatus status = compare_runs(comparison, given ? &iterations : nullptr);
    return {status == ExitStatus::passed, static_cast<int>(status)};
  } catch (const StatusError& error) {
    if (error.status() == ExitStatus::usage || error.status() == ExitStatus::no_backend) throw;
    return {false, static_cast<int>(error.status())};
  } catch (const Error& error) {
    narrator_.info("The comparison failed: {}", error.message());
    return {false, static_cast<int>(ExitStatus::failed)};
  }
}

Checker::Answer Checker::ask_user() const {
  while (true) {
    fmt::print("Did {} [p]ass or [f]ail? ", artifact_);
    std::fflush(stdout);
    char line[64];
    if (std::fgets(line, sizeof line, stdin) == nullptr)
      throw UsageError("nobody says whether an iteration passes", "add --check COMMAND or --check-run FLAGS");
    if (line[0] == 'p' || line[0] == 'P') return {true, 0};
    if (line[0] == 'f' || line[0] == 'F') return {false, 1};
  }
}

bool Checker::answer(const std::string& what, const Answer& answer) {
  passed_ += answer.passed;
  known_.emplace_back(what, answer.passed);
  replay_ = next_known_ = known_.size();
  sort_artifacts(answer);
  if (!arguments_.has("--no-remove-intermediate")) {
    std::error_code none;
    if (!artifact_.empty()) fs::remove(artifact_, none);
  }
  save_replay(arguments_.value("--save-debug-replay", kReplay), std::nullopt, {});
  const auto level = answer.passed ? Narrator::Level::info : Narrator::Level::error;
  narrator_.write(
      level, fmt::format("{} | Iteration {} | Exit code {}", answer.passed ? "PASSED" : "FAILED", asked_, answer.code));
  return answer.passed;
}

void Checker::sort_artifacts(const Answer& answer) const {
  const fs::path folder =
      fs::path(arguments_.value("--art-dir", "polygraphy_artifacts")) / (answer.passed ? "good" : "bad");
  for (const std::string& file : arguments_.values("--artifacts")) {
    if (!fs::exists(file)) {
      narrator_.warning("Artifact {} is not there", file);
      continue;
    }
    fs::create_directories(folder);
    const fs::path path(file);
    const fs::path target = folder / fmt::format("{}_N{}_ret{}{}", path.stem().string(), asked_ - 1, answer.code,
                                                 path.extension().string());
    fs::copy(path, target, fs::copy_options::overwrite_existing | fs::copy_options::recursive);
    if (!arguments_.has("--no-remove-intermediate") || path != fs::path(artifact_)) fs::remove_all(path);
  }
}

/// `current`: how the iteration under way shall count, where it does.
void Checker::save_replay(const std::string& path, std::optional<bool> current, const std::string& what) const {
  DebugAnswers answers = known_;
  if (current) answers.emplace_back(what, *current);
  write_passing_file(path, debug_replay_text(answers));
}

Json Checker::timing() const {
  const double total = now_ms() - start_ms_, count = std::max<double>(1, static_cast<double>(checks_));
  return {{"iterations", checks_},
          {"totalMs", total},
          {"checkMsEach", check_ms_ / count},
          {"otherMsEach", (total - check_ms_) / count}};
}

void Checker::finish() const {
  const double rate = asked_ == 0 ? 0 : 100.0 * static_cast<double>(passed_) / static_cast<double>(asked_);
  narrator_.info("Finished {} iteration(s) in {:.3g} s | Passed: {}/{} | Pass Rate: {:.1f}%", asked_,
                 (now_ms() - start_ms_) / 1000, passed_, asked_, rate);
}

}  // namespace hone
