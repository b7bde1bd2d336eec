// SPDX-License-Identifier: Apache-2.0
//
// `hone shard`: a model for each of several ranks, which hold a share of its weights each and run it together.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "edit/file.h"
#include "edit/shard/estimate.h"
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
       {"--collective-us", Takes::one, "<microseconds>",
        "what one collective takes on your cards, for the estimate (default 10, assumed for two on NVLink)"},
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

Json report_of(const edit::Division& division, const edit::ShardEstimate& estimate,
               const std::vector<std::string>& files) {
  Json whole = Json::array();
  for (const edit::Whole& each : division.whole)
    whole.push_back(
        {{"node", each.node}, {"weight", each.weight}, {"elements", each.elements}, {"reason", each.reason}});
  return {{"ranks", division.ranks},
          {"files", files},
          {"pairs", division.pairs},
          {"alone", division.heads},
          {"tables", division.tables},
          {"whole", whole},
          {"estimate",
           {{"collectives", estimate.collectives},
            {"wholeMs", estimate.whole_ms},
            {"rankMs", estimate.rank_ms},
            {"slower", estimate.slower()}}}};
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

void tell(const edit::ShardEstimate& estimate, const edit::CardRates& rates, const Narrator& narrator) {
  const std::string reckoning = fmt::format(
      "an inference of few rows takes a card about {:.2f} ms for its weights, ranks {:.2f} ms with {} collectives of "
      "{:g} us (--collective-us says what yours take)",
      estimate.whole_ms, estimate.rank_ms, estimate.collectives, 1000 * rates.collective_ms);
  if (estimate.slower())
    narrator.warning("It will be slower than on one card: {}. Where it fits, a copy on each card serves more",
                     reckoning);
  else narrator.info("Estimate: {}", reckoning);
}

edit::CardRates rates_of(const Arguments& arguments) {
  edit::CardRates rates;
  const int64_t microseconds = arguments.integer("--collective-us", static_cast<int64_t>(1000 * rates.collective_ms));
  if (microseconds < 0) throw UsageError("--collective-us takes microseconds", "0 or more");
  rates.collective_ms = static_cast<double>(microseconds) / 1000;
  return rates;
}

ExitStatus shard(const Arguments& arguments) {
  if (!arguments.has("--output")) throw UsageError("no folder to write is given", "-o ranks");
  constexpr int64_t kMostRanks = 1024;
  const int64_t ranks = arguments.integer("--tp", 2);
  if (ranks < 2 || ranks > kMostRanks)
    throw UsageError(fmt::format("--tp {}: a model is divided over 2 to {} ranks", ranks, kMostRanks));
  const edit::CollectiveForm form = form_of(arguments.value("--form", "tensorrt"));
  const edit::CardRates rates = rates_of(arguments);
  const Narrator narrator(arguments);
  const edit::Model model = load_model(arguments, arguments.file());
  const edit::Facts facts(model);
  const edit::Division division = edit::divide(facts, static_cast<int>(ranks));
  const std::filesystem::path folder(arguments.value("--output"));
  std::filesystem::create_directories(folder);
  edit::SaveRules rules;
  if (wants_external(model)) rules.external = "";
  std::vector<std::string> files;
  edit::ShardEstimate estimate;
  for (int rank = 0; rank < division.ranks; ++rank) {
    files.push_back(
        (folder / fmt::format("{}.rank{}", std::filesystem::path(arguments.file()).filename().string(), rank))
            .string());
    const edit::Model mine = edit::rank_model(model, facts, division, rank, form);
    if (rank == 0) estimate = edit::estimate_shard(model, mine, rates);
    edit::save(mine, files.back(), rules);
    narrator.info("Wrote {}", files.back());
  }
  tell(model, division, narrator);
  tell(estimate, rates, narrator);
  if (arguments.has("--json")) write_json_result(arguments, report_of(division, estimate, files).dump(2));
  return ExitStatus::passed;
}

}  // namespace

const FriendlyCommand& describe_shard() {
  static const FriendlyCommand kFriendly = friendly_of(command());
  return kFriendly;
}

int run_shard(Words words) { return run_companion(command(), words, shard); }

}  // namespace hone
