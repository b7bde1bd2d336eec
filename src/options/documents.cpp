// SPDX-License-Identifier: Apache-2.0
#include "options/documents.h"

#include <fmt/format.h>

#include "base/text.h"
#include "options/flag.h"

namespace hone {
namespace {

constexpr FlagSection kSections[] = {
    {"Model", FlagGroup::model},   {"Build", FlagGroup::build},         {"Inference", FlagGroup::inference},
    {"Tuning", FlagGroup::tuning}, {"Reporting", FlagGroup::reporting}, {"System and device", FlagGroup::system},
    {"Help", FlagGroup::help}};

/// For a cell of a table.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '*') result += '\\';
    result += c == '<' ? std::string("&lt;") : std::string(1, c);
  }
  return result;
}

std::string row(const Flag& flag) {
  std::string name = fmt::format("`{}{}{}`", flag.name, flag.value_name.empty() ? "" : "=", flag.value_name);
  for (size_t at = 0; (at = name.find('|', at)) != std::string::npos; at += 2) name.insert(at, 1, '\\');
  if (!flag.alias.empty()) name += fmt::format(", `{}`", flag.alias);
  std::string meaning = escaped(flag.help);
  if (flag.repeatable) meaning += "; may be given several times";
  if (flag.instead.starts_with("--")) meaning += " (deprecated)";
  else if (!flag.instead.empty()) meaning += fmt::format(". *Accepted, but {}*", escaped(flag.instead));
  return fmt::format("| {} | {} |\n", name, meaning);
}

/// Where releases disagree; without --compat the column of 8.6 holds, unless the row says otherwise.
struct Disagreement {
  std::string_view what, v8_6, v10, v11;
};
constexpr Disagreement kDisagreements[] = {
    {"copies of inputs and outputs in the measurement", "yes, `--noDataTransfers` leaves them out", "as 8.6",
     "no, `--includeDataTransfers` makes them"},
    {"waiting", "blocking, `--useSpinWait`", "as 8.6", "spinning, `--noSpinWait`"},
    {"recorded launches", "off, `--useCudaGraph`", "as 8.6", "on, `--noCudaGraph`"},
    {"profile", "in the only run; a run of its own with `--separateProfileRun`", "as 8.6",
     "always in a run of its own"},
    {"precision, calibration and layer-precision flags", "known", "known",
     "unknown options; networks are strongly typed"},
    {"I/O formats", "`type:format`", "`type:format`", "`format`"},
    {"`--memPoolSize` units",
     "MiB, whatever follows the number; without `--compat` B, K, M, G, KiB, MiB and GiB are what they say",
     "the last letter: `1024MiB` is 1024 bytes", "as 10"},
    {"unstable compute time is warned of above", "1 %", "1 %", "2.5 %"},
    {"raw files", "`y.output.1.8.Float.raw`", "`y.output.1.8.fp32.raw`", "as 10"},
    {"labels of the option blocks", "those of 8.6", "those of 10.4; no build block with `--loadEngine`",
     "those of 11.1"},
    {"wrong arguments", "errors, then the help; without `--compat` as 10", "the help, then errors",
     "the same, without the FAILED banner"},
};

std::string compat_section() {
  std::string text =
      "\n## What --compat changes\n\nWithout it flags of all releases are understood, and the column of 8.6 holds "
      "where it does "
      "not say otherwise.\n\n| | 8.6 | 10 | 11 |\n|---|---|---|---|\n";
  for (const Disagreement& d : kDisagreements)
    text += fmt::format("| {} | {} | {} | {} |\n", d.what, d.v8_6, d.v10, d.v11);
  return text;
}

}  // namespace

std::string flags_page() {
  std::string text =
      "# Flags of trtexec\n\n"
      "Generated from `src/options/table.cpp` by `hone help flags`; a test holds both together. A flag and its value "
      "are one word,\n"
      "`--flag=value`. Command lines of every release from 7.0 to 11.1 are understood; `--compat` follows one of them "
      "where they disagree.\n";
  for (const FlagSection& section : kSections) {
    text += fmt::format("\n## {}\n\n| flag | meaning |\n|---|---|\n", section.title);
    for (const Flag& flag : flag_table())
      if (flag.group == section.group) text += row(flag);
  }
  return text + compat_section();
}

std::span<const FlagSection> flag_sections() { return kSections; }

std::string_view words_for(std::string_view flag) {
  struct Words {
    std::string_view flag, words;
  };
  static constexpr Words kWords[] = {{"--profilingVerbosity", "layer_names_only detailed none"},
                                     {"--precisionConstraints", "none obey prefer"},
                                     {"--sparsity", "disable enable force"},
                                     {"--useRuntime", "full lean dispatch"},
                                     {"--builderOptimizationLevel", "0 1 2 3 4 5"},
                                     {"--allocationStrategy", "static profile runtime"},
                                     {"--accuracyAlgorithm", "l0 l1 l2 lInf cos"},
                                     {"--compat", "8.6 10 11"},
                                     {"--hardwareCompatibilityLevel", "none ampere+ sameComputeCapability"},
                                     {"--runtimePlatform", "SameAsBuild WindowsAMD64"},
                                     {"--tuningSearch", "fast full mixed"},
                                     {"--saveAllDebugTensors", "summary numpy string raw"}};
  for (const Words& row : kWords)
    if (row.flag == flag) return row.words;
  return {};
}

}  // namespace hone
