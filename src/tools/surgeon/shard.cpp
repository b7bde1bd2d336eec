// SPDX-License-Identifier: Apache-2.0
//
// `hone shard`: a model for each of several ranks, which hold a share of its weights each and run it together.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "edit/file.h"
#include "edit/shard/rank_model.h"
#include "tools/commands/commands.h"
#include "tools/surgeon/model_line.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

const CompanionCommand& command() {
  static const CompanionCommand kCommand{
      "shard",
      "MODEL.onnx",
      "Divides a model over ranks: pairs of products by columns and rows, attention by heads, large tables and last "
      "products by columns. "
      "Each rank gets a model of its own, MODEL.onnx.rank0 and so on, with its share of the weights; what stays whole "
      "is "
      "listed with the "
      "reason.",
      {{"--tp", Takes::one, "<ranks>", "how many ranks (default 2)"},
       {"--output", Takes::one, "<folder>", "where the models go", "-o"},
       {"--form", Takes::one, "<name>",
        "whose collectives are written: tensorrt (DistCollective, the default) or microsoft (AllReduce, AllGather)"},
       {"--external-data-dir", Takes::one, "<folder>",
        "where weights in other files are (default: beside the model)"}}};
  return kCommand;
}

edit::CollectiveForm form_of(const std::string& name) {
  if (name == "tensorrt") return edit::CollectiveForm::tensorrt;
  if (name == "microsoft") return edit::CollectiveForm::microsoft;
  throw UsageError(fmt::format("--form {}: there is no such form", name), "tensorrt or microsoft");
}

/// Weights in other files stay there for a rank, too, and models that are nearly too large for one file get one.
bool wants_external(const edit::Model& model) {
  constexpr int64_t kMost = int64_t{1} << 30;
  int64_t bytes = 0;
  for (const edit::Weight& weight : model.graph.weights) {
    if (weight.file) return true;
    bytes += edit::element_bytes(weight);
  }
  return bytes > kMost;
}

Json report_of(const edit::Division& division, const std::vector<std::string>& files) {
  Json whole = Json::array();
  for (const edit::Whole& each : division.whole)
    whole.push_back(
        {{"node", each.node}, {"weight", each.weight}, {"elements", each.elements}, {"reason", each.reason}});
  return {{"ranks", division.ranks},   {"files", files}, {"pairs", division.pairs}, {"alone", division.heads},
          {"tables", division.tables}, {"whole", whole}};
}

void tell(const edit::Model& model, const edit::Division& division, const Narrator& narrator) {
  narrator.info("{} pairs of products are divided, each with a sum over the ranks behind it", division.pairs);
  if (division.heads > 0)
    narrator.info("{} products are divided alone, and their results put together", division.heads);
  if (division.tables > 0) narrator.info("{} tables are divided by columns", division.tables);
  for (const auto* values : {&model.graph.inputs, &model.graph.outputs})
    for (const edit::Value& value : *values)
      if (const auto cut = division.tensors.find(value.name);
          cut != division.tensors.end() && !division.gathered.contains(value.name))
        narrator.info("{} is a share on every rank: 1/{} of its axis {}", value.name, division.ranks, cut->second.axis);
  for (const edit::Whole& each : division.whole)
    narrator.warning("{} stays whole on every rank ({}, {} elements): {}", each.node, each.weight, each.elements,
                     each.reason);
}

ExitStatus shard(const Arguments& arguments) {
  if (!arguments.has("--output")) throw UsageError("no folder to write is given", "-o ranks");
  constexpr int64_t kMostRanks = 1024;
  const int64_t ranks = arguments.integer("--tp", 2);
  if (ranks < 2 || ranks > kMostRanks)
    throw UsageError(fmt::format("--tp {}: a model is divided over 2 to {} ranks", ranks, kMostRanks));
  const edit::CollectiveForm form = form_of(arguments.value("--form", "tensorrt"));
  const Narrator narrator(arguments);
  const edit::Model model = load_model(arguments, arguments.file());
  const edit::Facts facts(model);
  const edit::Division division = edit::divide(facts, static_cast<int>(ranks));
  const std::filesystem::path folder(arguments.value("--output"));
  std::filesystem::create_directories(folder);
  edit::SaveRules rules;
  if (wants_external(model)) rules.external = "";
  std::vector<std::string> files;
  for (int rank = 0; rank < division.ranks; ++rank) {
    files.push_back(
        (folder / fmt::format("{}.rank{}", std::filesystem::path(arguments.file()).filename().string(), rank))
            .string());
    edit::save(edit::rank_model(model, facts, division, rank, form), files.back(), rules);
    narrator.info("Wrote {}", files.back());
  }
  tell(model, division, narrator);
  if (arguments.has("--json")) write_json_result(arguments, report_of(division, files).dump(2));
  return ExitStatus::passed;
}

}  // namespace

const FriendlyCommand& describe_shard() {
  static const FriendlyCommand kFriendly = friendly_of(command());
  return kFriendly;
}

int run_shard(Words words) { return run_companion(command(), words, shard); }

}  // namespace hone
