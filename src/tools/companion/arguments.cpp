// SPDX-License-Identifier: Apache-2.0
#include "tools/companion/arguments.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "options/flag.h"

namespace hone {
namespace {

constexpr CompanionFlag kCommon[] = {
    {"--json", Takes::maybe, "<file>",
     "results as JSON: to a file, or to standard output, which then holds nothing else"},
    {"--help", Takes::nothing, "", "show the command's flags", "-h"},
    {"--verbose", Takes::nothing, "", "tell more; several times: still more", "-v -vv -vvv"},
    {"--quiet", Takes::nothing, "", "tell less", "-q"},
    {"--silent", Takes::nothing, "", "tell nothing but errors"},
    {"--log-file", Takes::one, "<file>", "write what is told into a file, too"},
    {"--log-format", Takes::some, "<format...>", "accepted; lines have no times and no colours"},
    {"--verbosity", Takes::some, "<level...>", "the least level that is told: VERBOSE, INFO, WARNING, ERROR"},
};

bool spelled(const CompanionFlag& flag, std::string_view name) {
  if (flag.name == name) return true;
  if (flag.others.empty()) return false;
  const std::vector<std::string_view> others = split(flag.others, ' ');
  return std::ranges::find(others, name) != others.end();
}

/// A word that begins another flag: negative numbers do not.
bool is_flag(const std::string& word) {
  if (word.size() < 2 || word[0] != '-') return false;
  return std::isdigit(static_cast<unsigned char>(word[1])) == 0 && word[1] != '.' && word != "-inf";
}

std::string status_name(ExitStatus status) {
  constexpr const char* kNames[] = {"passed", "failed", "usage", "file", "backend", "internal"};
  return kNames[static_cast<size_t>(status)];
}

int tell_error(const CompanionCommand& command, const Error& error, ExitStatus status, bool json) {
  std::string text = error.what();
  fmt::print(stderr, "hone {}: {}\n", command.name, text);
  if (json)
    fmt::print("{}\n", nlohmann::ordered_json{{"error", error.message()},
                                              {"hint", error.hint()},
                                              {"status", status_name(status)},
                                              {"exit", static_cast<int>(status)}}
                           .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return static_cast<int>(status);
}

}  // namespace

void need_file(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0)
    throw StatusError(ExitStatus::no_file, fmt::format("there is no file {}", path), "check the path");
  if (access(path.c_str(), R_OK) != 0)
    throw StatusError(ExitStatus::no_file, fmt::format("{} may not be read", path), "check its permissions");
}

std::span<const CompanionFlag> common_flags() { return kCommon; }

Arguments::Arguments(const CompanionCommand& command, std::span<const std::string> words)
    : command_(command), words_(words.begin(), words.end()) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (!is_flag(words[i])) {
      files_.push_back(words[i]);
      continue;
    }
    const std::string word = with_two_dashes(words[i]);
    const size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    const std::string joined = equals == std::string::npos ? "" : word.substr(equals + 1);
    const CompanionFlag* flag = find(name);
    if (flag == nullptr && command.trtexec_flags && find_flag(name) != nullptr) {
      trtexec_.push_back(word);
      continue;
    }
    if (flag == nullptr) refuse(name);
    if (word == "-vv" || word == "-vvv")
      for (size_t more = 2; more < word.size(); ++more) given_[std::string(flag->name)].emplace_back();
    i = take(*flag, words, i + 1, equals == std::string::npos ? nullptr : &joined) - 1;
  }
  if (has("--help")) return;
  if (files_.size() > command.most_files)
    throw UsageError(fmt::format("{} is more than {} takes", files_[command.most_files], command.name),
                     fmt::format("hone {} {}", command.name, command.takes));
  if (files_.size() < command.least_files)
    throw UsageError(fmt::format("{} is missing", command.takes),
                     fmt::format("hone {} --help shows how", command.name));
}

/// "-output=x" is often typed for "--output=x".
std::string Arguments::with_two_dashes(const std::string& word) const {
  const std::string name = word.substr(0, word.find('='));
  if (word.starts_with("--") || name.size() < 4 || name.starts_with("-v")) return word;
  for (const CompanionFlag& flag : command_.flags)
    if (flag.name == "-" + name) return "-" + word;
  return word;
}

/// Exact names come first, then beginnings that fit one flag alone.
const CompanionFlag* Arguments::find(std::string_view name) const {
  std::vector<const CompanionFlag*> begun;
  for (const std::span<const CompanionFlag> flags : {std::span(command_.flags), common_flags()})
    for (const CompanionFlag& flag : flags) {
      if (spelled(flag, name)) return &flag;
      if (name.size() > 3 && name.starts_with("--") && flag.name.starts_with(name)) begun.push_back(&flag);
    }
  if (command_.trtexec_flags && find_flag(name) != nullptr) return nullptr;
  if (begun.size() > 1)
    throw UsageError(fmt::format("{} is the beginning of {} and of {}", name, begun[0]->name, begun[1]->name),
                     "write it in full");
  return begun.empty() ? nullptr : begun[0];
}

void Arguments::refuse(const std::string& name) const {
  std::vector<std::string_view> names;
  for (const std::span<const CompanionFlag> flags : {std::span(command_.flags), common_flags()})
    for (const CompanionFlag& flag : flags) names.push_back(flag.name);
  if (command_.trtexec_flags)
    for (const Flag& flag : flag_table()) names.push_back(flag.name);
  throw UsageError(fmt::format("there is no flag {}", name), fmt::format("did you mean {}?", nearest(name, names)));
}

/// The index behind the last word that the flag takes.
size_t Arguments::take(const CompanionFlag& flag, std::span<const std::string> words, size_t at,
                       const std::string* joined) {
  std::vector<std::string> values;
  if (joined != nullptr) {
    if (flag.takes == Takes::nothing)
      throw UsageError(fmt::format("{} takes no value", flag.name), fmt::format("write {} alone", flag.name));
    values.push_back(*joined);
  }
  if (flag.takes == Takes::rest) {
    values.insert(values.end(), words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
    at = words.size();
  }
  if (flag.takes == Takes::word && values.empty() && at < words.size()) values.push_back(words[at++]);
  const bool several = flag.takes == Takes::some || flag.takes == Takes::any;
  while (at < words.size() && flag.takes != Takes::nothing && flag.takes != Takes::word &&
         (several || values.empty())) {
    const bool dash = words[at] == "-";
    if (is_flag(words[at]) && !dash) break;
    // A model that follows is the command's own; behind --json, which is typed most without a name, any other file is, too.
    if (flag.takes == Takes::maybe && !dash &&
        (flag.name == "--json" ? !words[at].ends_with(".json") : words[at].ends_with(".onnx")))
      break;
    values.push_back(words[at++]);
  }
  if (values.empty() && (flag.takes != Takes::nothing && flag.takes != Takes::maybe && flag.takes != Takes::any))
    throw UsageError(fmt::format("{} needs a value", flag.name),
                     fmt::format("write {} {}", flag.name, flag.value_name));
  given_[std::string(flag.name)].push_back(std::move(values));
  order_.emplace_back(flag.name);
  return at;
}

std::string Arguments::value(std::string_view flag, std::string_view otherwise) const {
  const std::vector<std::string> words = values(flag);
  return words.empty() ? std::string(otherwise) : words.back();
}

std::vector<std::string> Arguments::values(std::string_view flag) const {
  const auto found = given_.find(flag);
  return found == given_.end() ? std::vector<std::string>() : found->second.back();
}

std::vector<std::vector<std::string>> Arguments::all(std::string_view flag) const {
  const auto found = given_.find(flag);
  return found == given_.end() ? std::vector<std::vector<std::string>>() : found->second;
}

size_t Arguments::count(std::string_view flag) const { return all(flag).size(); }

int64_t Arguments::integer(std::string_view flag, int64_t otherwise) const {
  if (!has(flag)) return otherwise;
  const std::optional<int64_t> number = parse_integer(value(flag));
  if (!number) throw UsageError(fmt::format("{} takes an integer, not '{}'", flag, value(flag)));
  return *number;
}

double Arguments::real(std::string_view flag, double otherwise) const {
  if (!has(flag)) return otherwise;
  const std::optional<double> number = parse_real(value(flag));
  if (!number) throw UsageError(fmt::format("{} takes a number, not '{}'", flag, value(flag)));
  return *number;
}

int64_t parse_bytes(std::string_view flag, const std::string& text) {
  std::string_view digits = text;
  double unit = 1;
  const std::string_view units = "KMG";
  if (!digits.empty())
    if (const size_t at = units.find(static_cast<char>(std::toupper(static_cast<unsigned char>(digits.back()))));
        at != std::string_view::npos) {
      unit = std::pow(1024.0, static_cast<double>(at + 1));
      digits.remove_suffix(1);
    }
  const std::optional<double> number = parse_real(digits);
  if (!number || !(*number >= 0) || *number * unit > 9e18)
    throw UsageError(fmt::format("{} takes a size, not '{}'", flag, text), "for example 64M, 1G or 1e9");
  return static_cast<int64_t>(*number * unit);
}

std::string companion_help(const CompanionCommand& command) {
  std::string text = fmt::format("usage: hone {}{}{} [flags]\n\n{}\n\n", command.name, command.takes.empty() ? "" : " ",
                                 command.takes, command.purpose);
  for (const std::span<const CompanionFlag> flags : {std::span(command.flags), common_flags()})
    for (const CompanionFlag& flag : flags) {
      std::string name(flag.name);
      for (const std::string_view other : split(flag.others, ' '))
        if (!other.empty()) name += fmt::format(", {}", other);
      if (!flag.value_name.empty()) name += fmt::format(" {}", flag.value_name);
      text += fmt::format("  {:<38}{}{}\n", name, name.size() >= 38 ? "\n" + std::string(40, ' ') : "", flag.help);
    }
  return text + (command.trtexec_flags
                     ? "\nFlags of trtexec that shape a build are understood too: hone trtexec --help\n"
                     : "");
}

FriendlyCommand friendly_of(const CompanionCommand& command) {
  FriendlyCommand friendly{command.name, command.takes, command.purpose, {}, command.trtexec_flags};
  for (const std::span<const CompanionFlag> flags : {std::span(command.flags), common_flags()})
    for (const CompanionFlag& flag : flags)
      if (flag.name != "--json" && flag.name != "--help")  // which the documents give every command
        friendly.flags.push_back({flag.name, flag.value_name, "", flag.help});
  return friendly;
}

int run_companion(const CompanionCommand& command, std::span<const std::string> words,
                  ExitStatus (*tool)(const Arguments&)) {
  const bool json = std::ranges::find(words, "--json") != words.end();
  try {
    const Arguments arguments(command, words);
    if (arguments.has("--help")) {
      fmt::print("{}", companion_help(command));
      return 0;
    }
    return static_cast<int>(tool(arguments));
  } catch (const StatusError& error) {
    return tell_error(command, error, error.status(), json);
  } catch (const InternalError& error) {
    return tell_error(command, error, ExitStatus::internal, json);
  } catch (const Error& error) {
    return tell_error(command, error, ExitStatus::failed, json);
  } catch (const std::bad_alloc&) {
    return tell_error(command, Error("there is too little memory"), ExitStatus::failed, json);
  } catch (const std::filesystem::filesystem_error& error) {
    return tell_error(command, Error(fmt::format("{}: {}", error.path1().string(), error.code().message())),
                      ExitStatus::failed, json);
  }
}

}  // namespace hone
