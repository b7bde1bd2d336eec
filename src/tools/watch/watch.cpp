// SPDX-License-Identifier: Apache-2.0
//
// `hone watch`: two processes. The command runs in a child and tells what it does through a pipe; the parent draws at the foot of the
// terminal, with what the command prints above, and takes next to nothing of the time that is measured. The few escape codes that this
// needs are written here: a library for terminals would bring a data base of them, a dozen megabytes or a slower start.
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <array>
#include <cstdlib>

#include "base/clock.h"
#include "base/text.h"
#include "tools/commands/commands.h"
#include "tools/common/terminal.h"
#include "tools/common/watcher.h"
#include "tools/trtexec/trtexec.h"
#include "tools/watch/screen.h"

namespace hone {
namespace {

constexpr int kRedrawMs = 100;

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      .name = "watch",
      .takes = "COMMAND...",
      .purpose =
          "Runs a command of hone, or trtexec, and shows what it is at: phases of a build and how long they will take, "
          "the "
          "best so far, latencies as they are measured. Where there is no terminal, a line now and then on standard "
          "error.\n\nhone watch build model.onnx -o model.plan; hone watch bench model.plan -t 10",
      .flags = {},
      .others = false};
  return kCommand;
}

pid_t child_process = 0;  // what a signal handler can reach is static
extern "C" void pass_on(int signal) {
  if (child_process > 0) kill(child_process, signal);
}

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Error("no pipe can be made", "close other programs");
    read = ends[0], write = ends[1];
  }
};

ScreenSize terminal_size() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return {size.ws_col, size.ws_row};
}

bool speaks_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* value = std::getenv(name); value != nullptr && *value != 0) {
      const std::string text = value;
      return text.find("UTF-8") != std::string::npos || text.find("utf8") != std::string::npos;
    }
  return false;
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written <= 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

/// The lines at the foot of the terminal.
class Foot {
 public:
  explicit Foot(bool there) : there_(there) {
    if (there_) write_all(STDERR_FILENO, "\033[?25l");  // no cursor
  }
  ~Foot() {
    if (there_) write_all(STDERR_FILENO, "\033[?25h");
  }
  Foot(const Foot&) = delete;
  Foot& operator=(const Foot&) = delete;

  void clear() {
    if (drawn_ > 0) write_all(STDERR_FILENO, fmt::format("\r\033[{}A\033[J", drawn_));
    drawn_ = 0;
  }
  void draw(const std::vector<std::string>& lines) {
    std::string text = drawn_ > 0 ? fmt::format("\r\033[{}A", drawn_) : "";
    for (const std::string& line : lines) text += line + "\033[K\n";
    text += "\033[J";
    drawn_ = lines.size();
    write_all(STDERR_FILENO, text);
  }

 private:
  bool there_;
  size_t drawn_ = 0;
};

/// A pipe of the child, read by lines.
struct Source {
  int descriptor;
  int to;  // where its lines go; -1: they are told to the state
  std::string rest = {};
};

class Watch {
 public:
  Watch(std::string title, bool screen)
      : title_(std::move(title)), screen_(screen), unicode_(speaks_unicode()), begun_(now()), foot_(screen) {}

  int run(pid_t child, std::vector<Source> sources) {
    while (!sources.empty()) {
      std::vector<pollfd> polled;
      for (const Source& source : sources) polled.push_back({source.descriptor, POLLIN, 0});
      poll(polled.data(), polled.size(), kRedrawMs);
      for (size_t i = polled.size(); i-- > 0;)
        if (polled[i].revents != 0 && !read_from(sources[i])) {
          close(sources[i].descriptor);
          sources.erase(sources.begin() + static_cast<std::ptrdiff_t>(i));
        }
      show(false);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    show(true);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  static double now() { return now_ms() / 1000; }
  /// False at the end.
  bool read_from(Source& source) {
    std::array<char, 65536> bytes{};
    const ssize_t count = read(source.descriptor, bytes.data(), bytes.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (count > 0) source.rest.append(bytes.data(), static_cast<size_t>(count));
    if (count <= 0 && source.to >= 0 && !source.rest.empty()) source.rest += '\n';
    const size_t end = source.rest.rfind('\n');
    if (end != std::string::npos) {
      const std::string lines = source.rest.substr(0, end + 1);
      source.rest.erase(0, end + 1);
      if (source.to < 0) {
        for (const std::string_view line : split(lines, '\n')) state_.take(line, now());
      } else {
        foot_.clear();
        write_all(source.to, lines);
      }
    }
    return count > 0;
  }
  void show(bool last) {
    const double at = now();
    if (!screen_) {
      for (const std::string& line : plain_.news(state_, at)) write_all(STDERR_FILENO, line + "\n");
    } else if (last || at - drawn_ >= kRedrawMs / 1000.0) {
      foot_.draw(screen_lines(state_, title_, begun_, at, terminal_size(), unicode_));
      drawn_ = at;
    }
  }

  std::string title_;
  bool screen_, unicode_;
  double begun_, drawn_ = 0;
  WatchState state_;
  PlainLines plain_;
  Foot foot_;
};

int run_words(Words words) {
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (words[0] == "trtexec") return run_trtexec(rest, join(words, " "));
  const Command& found = *find_command(words[0], rest);
  return found.run(words.subspan(found.second.empty() ? 1 : 2));
}

[[noreturn]] void become_command(Words words, const Pipe& events, const Pipe* out, const Pipe* err) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  signal(SIGINT, SIG_DFL);
  if (out != nullptr) dup2(out->write, STDOUT_FILENO);
  if (err != nullptr) dup2(err->write, STDERR_FILENO);
  fcntl(events.write, F_SETFL, fcntl(events.write, F_GETFL) | O_NONBLOCK);
  signal(SIGPIPE, SIG_IGN);
  Watcher::set_process(events.write);
  const int status = run_words(words);
  std::fflush(nullptr);
  std::exit(status);
}

int watch(Words words) {
  const bool screen = wants_screen(stderr);
  const Pipe events;
  std::optional<Pipe> out, err;
  if (screen) {
    err.emplace();
    if (isatty(STDOUT_FILENO) != 0) out.emplace();
  }
  std::fflush(nullptr);
  signal(SIGINT, SIG_IGN);  // the child ends, in its own way, and then so does this one
  const pid_t child = fork();
  if (child < 0) throw Error("no process can be started", "close other programs");
  if (child == 0) become_command(words, events, out ? &*out : nullptr, err ? &*err : nullptr);
  child_process = child;
  signal(SIGTERM, pass_on);
  close(events.write);
  std::vector<Source> sources{{events.read, -1}};
  if (out) close(out->write), sources.push_back({out->read, STDOUT_FILENO});
  if (err) close(err->write), sources.push_back({err->read, STDERR_FILENO});
  return Watch("hone " + join(words, " "), screen).run(child, std::move(sources));
}

}  // namespace

const FriendlyCommand& describe_watch() { return command(); }

int run_watch(Words words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    fmt::print(words.empty() ? stderr : stdout, "{}", friendly_help(command()));
    return words.empty() ? 2 : 0;
  }
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (words[0] == "watch" || (words[0] != "trtexec" && find_command(words[0], rest) == nullptr)) {
    std::vector<std::string_view> names{"trtexec"};
    for (const Command& each : command_table()) names.push_back(each.first);
    fmt::print(stderr, "hone watch: there is no command called {}\n  hint: did you mean {}?\n", words[0],
               nearest(words[0], names));
    return 2;
  }
  try {
    return watch(words);
  } catch (const Error& error) {
    fmt::print(stderr, "hone watch: {}\n", error.what());
    return 1;
  }
}

}  // namespace hone
