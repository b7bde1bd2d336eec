// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/tuner_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/clock.h"

namespace hone {
namespace {

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)),
                "see whether the system has reached a limit");
  return ends;
}

/// In the new process: nothing but what may stand between fork and exec.
[[noreturn]] void become(char* const* words, int input, int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // it would go on timing, beside whoever does so next
  if (getppid() != parent) _exit(1);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  execv("/proc/self/exe", words);
  _exit(127);
}

}  // namespace

TunerProcess::TunerProcess(std::vector<std::string> words) {
  std::signal(SIGPIPE, SIG_IGN);
  words.insert(words.begin(), {"hone", "tune"});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::array<int, 2> in = make_pipe(), out = make_pipe();
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) become(arguments.data(), in[0], out[1], parent);
  close(in[0]), close(out[1]);
  input_ = in[1], output_ = out[0];
  if (process_ < 0)
    throw Error(fmt::format("cannot start a process: {}", std::strerror(errno)),
                "see whether the system has reached a limit");
  std::optional<Json> first = next(-1);
  if (!first)
    throw Error(fmt::format("the process that was to time ended at once: {}", how_), "its own words stand above");
  greeting_ = std::move(*first);
}

TunerProcess::~TunerProcess() {
  if (input_ >= 0) close(input_);
  if (output_ >= 0) close(output_);
  if (process_ > 0) kill(process_, SIGKILL), waitpid(process_, nullptr, 0);
}

void TunerProcess::send(const std::string& key) {
  const std::string line = key + "\n";
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t count = write(input_, line.data() + sent, line.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // it has ended, as next() will tell
    sent += static_cast<size_t>(count);
  }
}

std::optional<Json> TunerProcess::next(double seconds) {
  const double start = now_ms();
  while (true) {
    if (const size_t at = pending_.find('\n'); at != std::string::npos) {
      const std::string line = pending_.substr(0, at);
      pending_.erase(0, at + 1);
      return parse_json(line, "what a tuning process told");
    }
    const double left = seconds - seconds_since(start);
    pollfd waiting{.fd = output_, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, seconds < 0 ? -1 : std::max(0, static_cast<int>(1000 * left)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      end(seconds);
      return std::nullopt;
    }
    std::array<char, 1 << 16> chunk{};
    const ssize_t count = read(output_, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      end(-1);
      return std::nullopt;
    }
    pending_.append(chunk.data(), static_cast<size_t>(count));
  }
}

/// Waits for its end; with seconds, ends it.
void TunerProcess::end(double seconds) {
  if (seconds >= 0) kill(process_, SIGKILL);
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {}
  process_ = -1;
  how_ = seconds >= 0          ? fmt::format("took longer than {:g} s", seconds)
         : WIFSIGNALED(status) ? fmt::format("killed by signal {}", WTERMSIG(status))
                               : fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace hone
