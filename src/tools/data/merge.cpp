// SPDX-License-Identifier: Apache-2.0
//
// `hone data`: files of inputs and outputs made into one. `to-input` (`merge` in later versions of Polygraphy) puts tensors of several files
// beside each other, iteration by iteration; `concat` puts iterations behind each other.
#include <algorithm>

#include "base/text.h"
#include "tools/commands/commands.h"
#include "tools/commands/group.h"
#include "tools/companion/narrator.h"
#include "tools/data/saved.h"

namespace hone {
namespace {

const CompanionFlag kOutput{"--output", Takes::one, "<file>", "what is written: JSON, .npz, .safetensors, or a folder",
                            "-o"};

const CompanionCommand& merge_command() {
  static const CompanionCommand kCommand{
      "data merge",
      "FILE...",
      "Makes one file for --load-inputs of inputs and outputs: tensors of the same iteration come together.",
      {kOutput},
      1,
      1000};
  return kCommand;
}

const CompanionCommand& to_input_command() {
  static const CompanionCommand kCommand{
      "data to-input",
      "FILE...",
      "The same as hone data merge: makes one file for --load-inputs of inputs and outputs.",
      {kOutput},
      1,
      1000};
  return kCommand;
}

const CompanionCommand& concat_command() {
  static const CompanionCommand kCommand{
      "data concat",
      "FILE...",
      "Puts the iterations of several files of inputs, or of several files of results, behind each other.",
      {kOutput},
      1,
      1000};
  return kCommand;
}

const CompanionCommand& data_command() {
  static const CompanionCommand kCommand{
      "data", "COMMAND", "Joins files of inputs and outputs: to-input (merge), concat. hone inspect data shows them.",
      {},     0,         1000};
  return kCommand;
}

std::string output_of(const Arguments& arguments) {
  if (!arguments.has("--output")) throw UsageError("no file to write is given", "-o inputs.json");
  return arguments.value("--output");
}

[[noreturn]] void refuse_accuracy(const std::string& path) {
  throw UsageError(fmt::format("{} holds numbers of a comparison, no tensors", path),
                   "give files of --save-inputs and --save-outputs");
}

/// One behind the other, where they are results of several runners.
std::vector<std::vector<TensorList>> runs_of(const std::string& path) {
  SavedData data = read_saved(path);
  if (data.kind == SavedData::Kind::accuracy) refuse_accuracy(path);
  if (data.kind == SavedData::Kind::inputs) return {std::move(data.inputs)};
  std::vector<std::vector<TensorList>> runs;
  for (RunResult& result : data.results) runs.push_back(std::move(result.iterations));
  return runs;
}

void add(TensorList& to, const TensorList& from, const std::string& path, const Narrator& narrator) {
  for (const NamedTensor& each : from) {
    const auto there = std::ranges::find(to, each.name, &NamedTensor::name);
    if (there == to.end()) {
      to.push_back(each);
      continue;
    }
    narrator.warning("Input '{}' is overwritten by that of {}; hone data concat puts iterations behind each other",
                     each.name, path);
    there->tensor = each.tensor;
  }
}

void tell_saved(const std::vector<TensorList>& iterations, const std::string& path, const Narrator& narrator,
                const Arguments& arguments) {
  save_inputs(path, iterations);
  narrator.info("Saving input file containing {} iteration(s) to {}", iterations.size(), path);
  write_json_result(arguments, Json{{"written", path}, {"iterations", iterations.size()}}.dump());
}

ExitStatus merge(const Arguments& arguments) {
  const Narrator narrator(arguments);
  const std::string output = output_of(arguments);
  std::vector<TensorList> iterations;
  for (const std::string& path : arguments.files())
    for (const std::vector<TensorList>& run : runs_of(path)) {
      if (!iterations.empty() && run.size() != iterations.size())
        narrator.warning("{} has {} iteration(s), those before it {}: some will lack inputs", path, run.size(),
                         iterations.size());
      iterations.resize(std::max(iterations.size(), run.size()));
      for (size_t i = 0; i < run.size(); ++i) add(iterations[i], run[i], path, narrator);
    }
  tell_saved(iterations, output, narrator, arguments);
  return ExitStatus::passed;
}

std::vector<std::string> names_of(const TensorList& list) {
  std::vector<std::string> names;
  for (const NamedTensor& each : list) names.push_back(each.name);
  return names;
}

void concat_results(std::vector<RunResult>& all, std::vector<RunResult> more) {
  for (RunResult& result : more) {
    const auto there = std::ranges::find(all, result.runner, &RunResult::runner);
    if (there == all.end()) all.push_back(std::move(result));
    else std::ranges::move(result.iterations, std::back_inserter(there->iterations));
  }
}

ExitStatus concat(const Arguments& arguments) {
  const Narrator narrator(arguments);
  const std::string output = output_of(arguments);
  std::vector<TensorList> inputs;
  std::vector<RunResult> results;
  for (const std::string& path : arguments.files()) {
    SavedData data = read_saved(path);
    if (data.kind == SavedData::Kind::accuracy) refuse_accuracy(path);
    const bool mixed = data.kind == SavedData::Kind::results ? !inputs.empty() : !results.empty();
    if (mixed)
      throw UsageError(fmt::format("{} and the files before it are not of one kind", path),
                       "join inputs with inputs, and results with results");
    if (!inputs.empty() && !data.inputs.empty() && names_of(data.inputs[0]) != names_of(inputs[0]))
      narrator.warning("{} has other tensors than the files before it", path);
    std::ranges::move(data.inputs, std::back_inserter(inputs));
    concat_results(results, std::move(data.results));
  }
  if (results.empty()) {
    tell_saved(inputs, output, narrator, arguments);
    return ExitStatus::passed;
  }
  save_results(output, results);
  narrator.info("Saving output file containing concatenated iteration(s) to {}", output);
  write_json_result(arguments, Json{{"written", output}, {"runners", results.size()}}.dump());
  return ExitStatus::passed;
}

}  // namespace

const FriendlyCommand& describe_data_merge() { return friendly<merge_command>(); }
int run_data_merge(Words words) { return run_companion(merge_command(), words, merge); }
const FriendlyCommand& describe_data_to_input() { return friendly<to_input_command>(); }
int run_data_to_input(Words words) { return run_companion(to_input_command(), words, merge); }
const FriendlyCommand& describe_data_concat() { return friendly<concat_command>(); }
int run_data_concat(Words words) { return run_companion(concat_command(), words, concat); }
const FriendlyCommand& describe_data() { return friendly<data_command>(); }
int run_data(Words words) { return run_group(data_command(), words); }

}  // namespace hone
