// SPDX-License-Identifier: Apache-2.0
#include "tools/companion/narrator.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/text.h"

namespace hone {
namespace {

bool results_on_stdout(const Arguments& arguments) {
  if (!arguments.has("--json")) return false;
  const std::string file = arguments.value("--json", "-");
  return file == "-";
}

Narrator::Level level_of(const Arguments& arguments) {
  using Level = Narrator::Level;
  int level = static_cast<int>(Level::info) + static_cast<int>(arguments.count("--verbose")) -
              static_cast<int>(arguments.count("--quiet"));
  if (arguments.has("--silent")) level = static_cast<int>(Level::error);
  constexpr std::array<std::string_view, 6> kNames{"CRITICAL", "ERROR", "WARNING", "INFO", "VERBOSE", "EXTRA_VERBOSE"};
  for (std::string_view word : arguments.values("--verbosity")) {
    word = word.substr(word.rfind(':') + 1);
    if (const auto found = std::ranges::find(kNames, word); found != kNames.end())
      level = static_cast<int>(found - kNames.begin());
  }
  return static_cast<Level>(std::clamp(level, 0, static_cast<int>(Level::extra)));
}

}  // namespace

Narrator::Narrator(const Arguments& arguments)
    : level_(level_of(arguments)),
      out_(results_on_stdout(arguments) ? stderr : stdout),
      engine_log_([this](Severity severity, std::string_view text) {
        if (severity <= Severity::error) write(Level::error, text);
        else if (severity == Severity::warning) write(Level::warning, text);
        else write(severity == Severity::info ? Level::verbose : Level::extra, text);
      }) {
  engine_log_.set_threshold(level_ >= Level::extra     ? Severity::verbose
                            : level_ >= Level::verbose ? Severity::info
                                                       : Severity::warning);
  if (!arguments.has("--log-file")) return;
  const std::string path = arguments.value("--log-file");
  file_ = std::fopen(path.c_str(), "w");
  if (file_ == nullptr)
    throw StatusError(ExitStatus::no_file, fmt::format("the log {} cannot be written: {}", path, std::strerror(errno)));
}

Narrator::~Narrator() {
  if (file_ != nullptr) std::fclose(file_);
}

void Narrator::write(Level level, std::string_view text) const {
  if (level > level_) return;
  constexpr std::array<std::string_view, 6> kPrefix{"[!] ", "[E] ", "[W] ", "[I] ", "[V] ", "[X] "};
  const std::string indent(static_cast<size_t>(depth_) * 4, ' ');
  std::string lines;
  bool first = true;
  for (const std::string_view line : split(text, '\n')) {
    lines += fmt::format("{}{}{}\n", first ? kPrefix[static_cast<size_t>(level)] : "    ", indent, line);
    first = false;
  }
  std::fwrite(lines.data(), 1, lines.size(), out_);
  if (file_ != nullptr) std::fwrite(lines.data(), 1, lines.size(), file_);
}

void write_json_result(const Arguments& arguments, const std::string& text) {
  if (!arguments.has("--json")) return;
  const std::string file = arguments.value("--json", "-");
  if (file == "-") fmt::print("{}\n", text);
  else write_file(file, text + "\n");
}

}  // namespace hone
