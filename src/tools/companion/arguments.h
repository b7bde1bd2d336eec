// SPDX-License-Identifier: Apache-2.0
//
// Command lines of the companions: flags that take several words ("--rtol 1e-2 m:1e-6"), "--flag value" and "--flag=value" alike,
// flags given several times, unique beginnings of flags ("--fold-constant"), and everything behind a flag as a command ("--check").
// A table of flags is data: parsing, --help, manual pages and completion come from it.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/common/friendly.h"
#include "tools/companion/exit_status.h"

namespace hone {

enum class Takes {
  nothing,
  one,
  maybe,  // one, or none
  some,   // one and more
  any,    // none and more
  rest,   // all that follows, flags too
  word,   // one, which may look like a flag
};

struct CompanionFlag {
  std::string_view name;  // "--input-shapes"
  Takes takes = Takes::nothing;
  std::string_view value_name = {};
  std::string_view help = {};
  std::string_view others = {};  // further spellings, a blank between each: "--inputs -s"
};

struct CompanionCommand {
  std::string_view name, takes, purpose;  // "surgeon extract", "MODEL.onnx", what it does
  std::vector<CompanionFlag> flags;
  size_t least_files = 1, most_files = 1;
  bool trtexec_flags = false;  // flags of trtexec are understood, too, and kept as they are
};

/// Flags that each command has: --json, --help, -v, -q, --silent, --log-file.
std::span<const CompanionFlag> common_flags();

class Arguments {
 public:
  /// Throws UsageError for what the command has no flag for, naming the nearest one.
  Arguments(const CompanionCommand& command, std::span<const std::string> words);

  const CompanionCommand& command() const { return command_; }
  const std::vector<std::string>& files() const { return files_; }
  const std::string& file() const { return files_.at(0); }
  bool has(std::string_view flag) const { return given_.contains(flag); }
  /// The last value; "" where there is none.
  std::string value(std::string_view flag, std::string_view otherwise = {}) const;
  /// The words of the last time that the flag was given.
  std::vector<std::string> values(std::string_view flag) const;
  /// The words of each time that it was given.
  std::vector<std::vector<std::string>> all(std::string_view flag) const;
  size_t count(std::string_view flag) const;
  /// Throws UsageError for what is no number of the kind.
  int64_t integer(std::string_view flag, int64_t otherwise) const;
  double real(std::string_view flag, double otherwise) const;
  /// Flags of trtexec, "--name=value".
  const std::vector<std::string>& trtexec_flags() const { return trtexec_; }
  /// Of several flags the order in which they were given: --onnxrt --cpu --onnxrt.
  const std::vector<std::string>& order() const { return order_; }
  /// All words, for logs and scripts.
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::string with_two_dashes(const std::string& word) const;
  const CompanionFlag* find(std::string_view name) const;
  [[noreturn]] void refuse(const std::string& name) const;
  size_t take(const CompanionFlag& flag, std::span<const std::string> words, size_t at, const std::string* joined);

  const CompanionCommand& command_;
  std::vector<std::string> words_, files_, trtexec_, order_;
  std::map<std::string, std::vector<std::vector<std::string>>, std::less<>> given_;
};

/// "10", "64K", "1M", "2G" (of 1024), "1e9". Throws UsageError naming the flag.
int64_t parse_bytes(std::string_view flag, const std::string& text);

std::string companion_help(const CompanionCommand& command);
/// The same for manual pages and completion. Holds views of the command, which has to stay.
FriendlyCommand friendly_of(const CompanionCommand& command);
/// The same of a command that is described once.
template <const CompanionCommand& (*command)()>
const FriendlyCommand& friendly() {
  static const FriendlyCommand kFriendly = friendly_of(command());
  return kFriendly;
}

/// Runs a companion: --help, errors (one line on stderr that begins with the command's name, the hint below it; as JSON on stdout too
/// where JSON was asked for); the exit status.
int run_companion(const CompanionCommand& command, std::span<const std::string> words,
                  ExitStatus (*tool)(const Arguments&));

}  // namespace hone
