// SPDX-License-Identifier: Apache-2.0
//
// The surgeon's commands about weights as a whole: prune, weight-strip, weight-reconstruct; and `inspect sparsity`.
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "edit/changes/sparsity.h"
#include "tools/commands/commands.h"
#include "tools/surgeon/model_line.h"

namespace hone {
namespace {

/// Names in a file, one a line.
std::vector<std::string> excluded(const Arguments& arguments) {
  std::vector<std::string> names = arguments.values("--exclude");
  if (!arguments.has("--exclude-list")) return names;
  need_file(arguments.value("--exclude-list"));
  const std::string text = read_file(arguments.value("--exclude-list"));
  for (const std::string_view line : split(text, '\n'))
    if (!trim(line).empty()) names.emplace_back(trim(line));
  return names;
}

const CompanionFlag kExclude{"--exclude", Takes::some, "<weight...>", "leave these weights alone"};
const CompanionFlag kExcludeList{"--exclude-list", Takes::one, "<file>",
                                 "leave the weights alone that this file names, one a line"};

const CompanionCommand& prune_command() {
  static const CompanionCommand kCommand{"surgeon prune", "MODEL.onnx",
                                         "Gives weights of Conv, MatMul and Gemm 2:4 structure: of every four elements "
                                         "the two smallest become zero. Accuracy is not kept.",
                                         with_model_flags({kExclude, kExcludeList})};
  return kCommand;
}

ExitStatus prune(const Arguments& arguments) {
  return edit_model(arguments, [&](edit::Model& model, const Narrator& narrator) {
    for (const edit::PrunableWeight& weight : edit::prunable_weights(model))
      if (!weight.skipped.empty()) narrator.warning("Skipping {}: {}", weight.name, weight.skipped);
    const std::vector<std::string> pruned = edit::prune(model, excluded(arguments));
    narrator.info("Pruned {} weight(s)", pruned.size());
  });
}

const CompanionCommand& strip_command() {
  static const CompanionCommand kCommand{"surgeon weight-strip", "MODEL.onnx",
                                         "Leaves the elements of weights out of the file; their shapes and types stay.",
                                         with_model_flags({kExclude, kExcludeList})};
  return kCommand;
}

ExitStatus strip(const Arguments& arguments) {
  return edit_model(arguments, [&](edit::Model& model, const Narrator& narrator) {
    const size_t count = edit::strip_weights(model, excluded(arguments));
    narrator.info("Finished stripping {} weights", count);
  });
}

const CompanionCommand& reconstruct_command() {
  static const CompanionCommand kCommand{"surgeon weight-reconstruct", "MODEL.onnx",
                                         "Puts placeholders in the place of elements that weight-strip left out.",
                                         with_model_flags({})};
  return kCommand;
}

ExitStatus reconstruct(const Arguments& arguments) {
  return edit_model(arguments, [&](edit::Model& model, const Narrator& narrator) {
    const size_t count = edit::reconstruct_weights(model);
    narrator.info("Finished reconstructing {} weights", count);
  });
}

const CompanionCommand& sparsity_command() {
  static const CompanionCommand kCommand{
      "inspect sparsity", "MODEL.onnx",
      "Tells of each weight of Conv, MatMul and Gemm whether it has 2:4 structure, and how much of it is zero.",
      with_load_flags({})};
  return kCommand;
}

ExitStatus sparsity(const Arguments& arguments) {
  const Narrator narrator(arguments);
  const edit::Model model = load_model(arguments, arguments.file());
  const std::vector<edit::PrunableWeight> weights = edit::prunable_weights(model);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  size_t eligible = 0;
  for (const edit::PrunableWeight& weight : weights) eligible += weight.skipped.empty() ? 1 : 0;
  narrator.info("Found: {} weight tensor(s) eligible for pruning.", eligible);
  for (const edit::PrunableWeight& weight : weights) {
    if (!weight.skipped.empty()) {
      narrator.warning("Skipping {}: {}", weight.name, weight.skipped);
    } else if (weight.fits) {
      narrator.info("Found sparse tensor: {} ({:.1f} % zeros)", weight.name, 100 * weight.zeros);
    } else {
      narrator.warning("Found non-sparse tensor: {} ({:.1f} % zeros)", weight.name, 100 * weight.zeros);
    }
    rows.push_back({{"name", weight.name},
                    {"axis", weight.axis},
                    {"sparse", weight.fits},
                    {"zeros", weight.zeros},
                    {"skipped", weight.skipped}});
  }
  write_json_result(arguments, rows.dump(2));
  return ExitStatus::passed;
}

}  // namespace

const FriendlyCommand& describe_surgeon_prune() { return friendly<prune_command>(); }
int run_surgeon_prune(Words words) { return run_companion(prune_command(), words, prune); }
const FriendlyCommand& describe_surgeon_weight_strip() { return friendly<strip_command>(); }
int run_surgeon_weight_strip(Words words) { return run_companion(strip_command(), words, strip); }
const FriendlyCommand& describe_surgeon_weight_reconstruct() { return friendly<reconstruct_command>(); }
int run_surgeon_weight_reconstruct(Words words) { return run_companion(reconstruct_command(), words, reconstruct); }
const FriendlyCommand& describe_inspect_sparsity() { return friendly<sparsity_command>(); }
int run_inspect_sparsity(Words words) { return run_companion(sparsity_command(), words, sparsity); }

}  // namespace hone
