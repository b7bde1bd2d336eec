// SPDX-License-Identifier: Apache-2.0
//
// The command line of the plain-word tools (build, run, bench, inspect): a file, a few short flags, and every flag of trtexec
// behind them. A short flag is another spelling of one of trtexec's, so both understand the same values.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "options/tool_options.h"

namespace hone {

/// "--cache <file>" stands for "--timingCacheFile=<file>"; with an empty `means` the tool itself reads the value. "<types...>" takes
/// all words behind it that are names.
struct ShortFlag {
  std::string_view name, value_name, means, help;
};

struct FriendlyCommand {
  std::string_view name, takes, purpose;  // "build", "MODEL.onnx", what it does
  std::vector<ShortFlag> flags;
  bool others = true;          // every flag of trtexec is understood, too
  bool takes_several = false;  // files
};

struct FriendlyLine {
  std::string file;                                     // what stood alone; of several, the first
  std::vector<std::string> files;                       // all of them
  std::map<std::string, std::string, std::less<>> own;  // values of short flags that the tool reads
  Options options;
  std::vector<std::string> warnings;
  bool help = false, json = false;

  bool has(std::string_view flag) const { return own.contains(flag); }
  std::string value(std::string_view flag) const;
};

/// "--flag value" and "--flag=value" are the same. A file that ends in .onnx becomes --onnx, another --loadEngine; `defaults` are
/// flags of trtexec that hold where the line does not say otherwise. Throws Error.
FriendlyLine read_friendly(const FriendlyCommand& command, std::span<const std::string> arguments,
                           std::span<const std::string> defaults);
std::string friendly_help(const FriendlyCommand& command);

/// Runs a tool: --help, and errors on stderr (as JSON on stdout too where JSON was asked for); the exit status.
int run_friendly(const FriendlyCommand& command, std::span<const std::string> arguments,
                 std::span<const std::string> defaults, int (*tool)(const FriendlyLine&));

}  // namespace hone
