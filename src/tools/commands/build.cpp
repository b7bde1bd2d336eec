// SPDX-License-Identifier: Apache-2.0
//
// `hone build`: MODEL.onnx becomes MODEL.plan, with a timing cache beside it so that the next build is quick.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "tools/commands/commands.h"
#include "tools/common/friendly.h"
#include "tools/common/plan_summary.h"
#include "tools/common/session.h"
#include "tools/common/terminal.h"
#include "tools/files/rank_files.h"

namespace hone {
namespace {

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      "build",
      "MODEL.onnx",
      "Builds an engine from an ONNX model and saves it as a plan.",
      {{"-o", "<file>", "--saveEngine", "where the plan goes (default: the model's name with .plan)"},
       {"--min", "<shapes>", "--minShapes", "smallest input shapes, name:1x3x224x224[,...]"},
       {"--opt", "<shapes>", "--optShapes", "input shapes to be fastest at"},
       {"--max", "<shapes>", "--maxShapes", "largest input shapes"},
       {"--cache", "<file>", "--timingCacheFile", "times already measured (default: hone.cache beside the plan)"},
       {"--effort", "<0-5>", "--builderOptimizationLevel",
        "0 takes what works, 3 times every kernel (default), 5 times more variants"},
       {"--workspace", "<size>", "", "most scratch memory of one kernel, for example 256MiB"},
       {"--portable", "", "--versionCompatible",
        "a plan that other machines and versions can tune again; twice as large"}}};
  return kCommand;
}

int build(const FriendlyLine& line) {
  if (line.options.tool.onnx.empty())
    throw Error(fmt::format("{} is no ONNX model by its name", line.file),
                "hone build takes a file that ends in .onnx");
  const Logger log = quiet_logger();
  const Voices voices(log, "");
  for (const std::string& warning : line.warnings) log.warning("{}", warning);
  Session session(line.options, make_device(line.options.tool.device), voices);
  const double start = now_ms();
  session.build();
  const double seconds = seconds_since(start);
  session.load();
  auto summary = plan_summary(session.plan());
  summary["file"] = line.options.tool.save_engine;
  summary["bytes"] = session.plan_bytes();
  summary["seconds"] = seconds;
  if (is_divided(session.plan()) && !speaks()) return 0;
  if (line.json) {
    fmt::print("{}\n", summary.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  const Page page;
  page.title(fmt::format("{} -> {}", line.file, line.options.tool.save_engine));
  print_plan_summary(summary, page);
  page.pair("size", fmt::format("{:.1f} MiB", static_cast<double>(session.plan_bytes()) / (1 << 20)));
  page.pair("built in", fmt::format("{:.1f} s", seconds));
  page.pair("next", fmt::format("hone bench {}", line.options.tool.save_engine));
  return 0;
}

std::string after_flag(Words words, std::string_view flag) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == flag && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with(std::string(flag) + "=")) return words[i].substr(flag.size() + 1);
  }
  return {};
}

}  // namespace

const FriendlyCommand& describe_build() { return command(); }

int run_build(Words words) {
  std::vector<std::string> given(words.begin(), words.end());
  std::string plan = after_flag(words, "-o"), model;
  if (plan.empty()) plan = after_flag(words, "--saveEngine");
  for (const std::string& word : words)
    if (word.ends_with(".onnx") && !word.starts_with('-')) model = word;
  if (plan.empty() && !model.empty()) plan = std::filesystem::path(model).replace_extension(".plan").string();
  const std::string workspace = after_flag(words, "--workspace");
  std::vector<std::string> defaults;
  if (!plan.empty()) {
    defaults.push_back("--saveEngine=" + plan);
    defaults.push_back("--timingCacheFile=" + (std::filesystem::path(plan).parent_path() / "hone.cache").string());
  }
  if (!workspace.empty()) defaults.push_back("--memPoolSize=workspace:" + workspace);
  return run_friendly(command(), given, defaults, build);
}

}  // namespace hone
