// SPDX-License-Identifier: Apache-2.0
//
// --help from the table: one section per group, flags padded to one column.
#include "options/flag.h"
#include "options/parse.h"

namespace hone {
namespace {

constexpr size_t kColumn = 40;

std::string row(const Flag& flag) {
  std::string name = fmt::format("  {}", flag.name);
  if (!flag.value_name.empty()) name += fmt::format("={}", flag.value_name);
  if (!flag.alias.empty()) name += fmt::format(", {}", flag.alias);
  std::string text = name.size() < kColumn ? fmt::format("{:<{}}{}", name, kColumn, flag.help)
                                           : fmt::format("{}\n{:{}}{}", name, "", kColumn, flag.help);
  if (flag.instead.starts_with("--")) text += " (deprecated)";
  else if (!flag.instead.empty()) text += fmt::format("\n{:{}}(accepted, but {})", "", kColumn, flag.instead);
  return text + "\n";
}

std::string section(std::string_view title, FlagGroup group) {
  std::string text = fmt::format("=== {} ===\n", title);
  for (const Flag& flag : flag_table())
    if (flag.group == group) text += row(flag);
  return text + "\n";
}

constexpr std::string_view kBatch =
    "=== Build and Inference Batch Options ===\n"
    "  The batch is an ordinary dimension of every input. A profile says which shapes an engine takes: of "
    "--minShapes,\n"
    "  --optShapes and --maxShapes the ones left out are copied from those given (opt first). --shapes says what is "
    "run;\n"
    "  left out, the opt shapes are. An input named by --shapes alone is built for exactly that shape, and one that "
    "is\n"
    "  named nowhere gets 1 for every dynamic size.\n\n";

}  // namespace

std::string help_text() {
  std::string text = section("Model Options", FlagGroup::model);
  text += section("Build Options", FlagGroup::build);
  text += section("Inference Options", FlagGroup::inference);
  text += kBatch;
  text += section("Tuning Options", FlagGroup::tuning);
  text += section("Reporting Options", FlagGroup::reporting);
  text += section("System Options", FlagGroup::system);
  text += section("Help", FlagGroup::help);
  return text;
}

}  // namespace hone
