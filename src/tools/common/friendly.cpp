// SPDX-License-Identifier: Apache-2.0
#include "tools/common/friendly.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error_text.h"
#include "base/text.h"
#include "options/flag.h"
#include "options/parse.h"
#include "tools/common/operator_libraries.h"
#include "tools/companion/exit_status.h"

namespace hone {
namespace {

const ShortFlag* find_short(const FriendlyCommand& command, std::string_view name) {
  const auto found = std::ranges::find(command.flags, name, &ShortFlag::name);
  return found == command.flags.end() ? nullptr : &*found;
}

/// No flag, and no path or file.
bool is_name(std::string_view word) {
  return !word.starts_with('-') && word.find_first_of("./") == std::string_view::npos;
}

bool is_given(std::span<const std::string> flags, std::string_view flag) {
  return std::ranges::any_of(flags, [&](const std::string& text) { return text.substr(0, text.find('=')) == flag; });
}

/// Splits the words into the file, the tool's own values and flags of trtexec.
class Reader {
 public:
  Reader(const FriendlyCommand& command, FriendlyLine& line) : command_(command), line_(line) {}

  void read(std::span<const std::string> words) {
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      const size_t equals = word.find('=');
      const std::string name = word.substr(0, equals);
      if (!word.starts_with('-')) {
        take_file(word);
      } else if (name == "--help" || name == "-h") {
        line_.help = true;
      } else if (name == "--json") {
        line_.json = true;
      } else if (const ShortFlag* flag = find_short(command_, name)) {
        std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
        if (!flag->value_name.empty() && equals == std::string::npos) {
          if (i + 1 == words.size())
            throw Error(fmt::format("{} needs a value", name), fmt::format("write {} {}", name, flag->value_name));
          value = words[++i];
          while (flag->value_name.ends_with("...>") && i + 1 < words.size() && is_name(words[i + 1]))
            value += " " + words[++i];
        }
        take_short(*flag, value);
      } else {
        if (find_flag(name) == nullptr) refuse(name);
        flags.push_back(word);
      }
    }
  }

  std::vector<std::string> flags;  // of trtexec

 private:
  void take_file(const std::string& word) {
    if (!line_.file.empty() && !command_.takes_several)
      throw Error(fmt::format("one file is taken, these are two: {} and {}", line_.file, word),
                  fmt::format("hone {} {}", command_.name, command_.takes));
    if (line_.file.empty()) line_.file = word;
    line_.files.push_back(word);
  }
  void take_short(const ShortFlag& flag, const std::string& value) {
    if (flag.means.empty()) line_.own[std::string(flag.name)] = value;
    else flags.push_back(flag.value_name.empty() ? std::string(flag.means) : fmt::format("{}={}", flag.means, value));
  }
  [[noreturn]] void refuse(const std::string& name) const {
    std::vector<std::string_view> names;
    for (const ShortFlag& flag : command_.flags) names.push_back(flag.name);
    for (const Flag& flag : flag_table()) names.push_back(flag.name);
    throw Error(fmt::format("hone {} has no flag {}", command_.name, name),
                fmt::format("did you mean {}?", nearest(name, names)));
  }

  const FriendlyCommand& command_;
  FriendlyLine& line_;
};

}  // namespace

std::string FriendlyLine::value(std::string_view flag) const {
  const auto found = own.find(flag);
  return found == own.end() ? "" : found->second;
}

FriendlyLine read_friendly(const FriendlyCommand& command, std::span<const std::string> arguments,
                           std::span<const std::string> defaults) {
  FriendlyLine line;
  Reader reader(command, line);
  reader.read(arguments);
  if (line.help) return line;
  if (line.file.empty())
    throw Error(fmt::format("hone {} needs {}", command.name, command.takes),
                fmt::format("hone {} --help shows how", command.name));
  std::vector<std::string> flags{
      fmt::format("{}={}", line.file.ends_with(".onnx") ? "--onnx" : "--loadEngine", line.file)};
  flags.insert(flags.end(), reader.flags.begin(), reader.flags.end());
  for (const std::string& flag : defaults)
    if (!is_given(flags, flag.substr(0, flag.find('=')))) flags.push_back(flag);
  CommandLine parsed = parse_command_line(flags);
  if (!parsed.errors.empty()) throw parse_error(parsed.errors.front());
  line.options = std::move(parsed.options);
  line.warnings = std::move(parsed.warnings);
  return line;
}

std::string friendly_help(const FriendlyCommand& command) {
  std::string text = fmt::format("usage: hone {}{}{} [flags]\n\n{}\n\n", command.name, command.takes.empty() ? "" : " ",
                                 command.takes, command.purpose);
  const auto row = [&](std::string_view name, std::string_view value, std::string_view help) {
    text += fmt::format("  {:<26}{}\n", value.empty() ? std::string(name) : fmt::format("{} {}", name, value), help);
  };
  for (const ShortFlag& flag : command.flags) row(flag.name, flag.value_name, flag.help);
  row("--json", "", "print JSON instead of text");
  return text + (command.others ? "\nEvery flag of trtexec is understood too: hone trtexec --help\n" : "");
}

int run_friendly(const FriendlyCommand& command, std::span<const std::string> arguments,
                 std::span<const std::string> defaults, int (*tool)(const FriendlyLine&)) {
  const bool json = std::ranges::find(arguments, "--json") != arguments.end();
  const auto tell = [&](const Error& error) {
    fmt::print(stderr, "hone {}: {}\n", command.name, error.what());
    if (json)
      fmt::print("{}\n", nlohmann::json{{"error", error.message()}, {"hint", error.hint()}}.dump(
                             -1, ' ', false, nlohmann::json::error_handler_t::replace));
    const auto* known = dynamic_cast<const StatusError*>(&error);
    return known != nullptr ? static_cast<int>(known->status()) : 1;
  };
  try {
    const FriendlyLine line = read_friendly(command, arguments, defaults);
    if (line.help) {
      fmt::print("{}", friendly_help(command));
      return 0;
    }
    if (!line.options.tool.replicas.empty() && command.name != "bench")
      throw Error(fmt::format("hone {} takes one device", command.name),
                  "several devices compute beside each other in hone bench and trtexec");
    open_operator_libraries(line.options.tool, Logger([](Severity, std::string_view) {}));
    return tool(line);
  } catch (const Error& error) {
    return tell(error);
  } catch (const std::filesystem::filesystem_error& error) {
    return tell(Error(fmt::format("{}: {}", error.path1().string(), error.code().message())));
  }
}

}  // namespace hone
