// SPDX-License-Identifier: Apache-2.0
//
// `hone template shard-hints`: how a model could be spread over several GPUs, for reading and editing. `hone multi-device shard`: the
// model rewritten so.
#include "base/file.h"
#include "base/text.h"
#include "tools/commands/commands.h"
#include "tools/commands/group.h"
#include "tools/surgeon/model_line.h"
#include "tools/surgeon/shard_hints.h"

namespace hone {
namespace {

std::vector<CompanionFlag> with_hint_flags(std::vector<CompanionFlag> own) {
  const std::vector<CompanionFlag> flags{
      {"--parallelism", Takes::one, "<kind>", "CP: each device has a part of the sequence"},
      {"--root", Takes::one, "<rank>", "of collectives (default -1)"},
      {"--gpus", Takes::one, "<count>", "that take part (default 0: all)"},
      {"--groups", Takes::any, "<index...>", "of NCCL; none: all"},
      {"--cp-type", Takes::one, "<kind>", "native: keys and values are gathered; fused: Attention nodes do it"},
      {"--no-suggest-io", Takes::nothing, "", "leave inputs and outputs as they are"},
      {"--i-idx", Takes::one, "<axis>", "of the sequence in inputs that have no size sequence_length or seq_len"},
      {"--o-idx", Takes::one, "<axis>", "in outputs"},
      {"--k-idx", Takes::one, "<axis>", "in keys"},
      {"--v-idx", Takes::one, "<axis>", "in values"},
      {"--i-rank", Takes::one, "<rank>", "of inputs whose rank is not known"},
      {"--o-rank", Takes::one, "<rank>", "of outputs"},
      {"--kv-rank", Takes::one, "<rank>", "of keys and values"},
      {"--reduce-op", Takes::one, "<word>", "of what is scattered: sum, prod, min, max (default), avg"},
      {"--attention-pattern", Takes::one, "<number>", "0: MatMul, Softmax, MatMul; 1: with scales behind Q's shape"},
      {"--q-shuffle", Takes::any, "<axis...>", "of Attention nodes: queries are transposed so before"},
      {"--k-shuffle", Takes::any, "<axis...>", "keys"},
      {"--v-shuffle", Takes::any, "<axis...>", "values"},
      {"--is-causal", Takes::nothing, "", "of Attention nodes"},
      {"--nb-rank", Takes::one, "<count>", "of ranks (default 1)"}};
  own.insert(own.end(), flags.begin(), flags.end());
  return own;
}

const CompanionCommand& hints_command() {
  static const CompanionCommand kCommand{
      "template shard-hints", "MODEL.onnx",
      "Writes how attention, inputs and outputs of a model could be spread over several GPUs, for hone multi-device "
      "shard.",
      with_load_flags(with_hint_flags({{"--output", Takes::one, "<file>", "the JSON file that is written", "-o"}}))};
  return kCommand;
}
const CompanionCommand& shard_command() {
  static const CompanionCommand kCommand{
      "multi-device shard", "MODEL.onnx",
      "Rewrites a model for several GPUs: parts of the sequence are scattered and gathered by DistCollective nodes, "
      "which are "
      "TensorRT's.",
      with_model_flags(
          with_hint_flags({{"--hint", Takes::one, "<file>", "of hone template shard-hints", "-s"},
                           {"--one-shot", Takes::nothing, "", "without one: what it would say is done"},
                           {"--shape-inference", Takes::nothing, "", "accepted; types are always inferred"},
                           {"--no-shape-inference", Takes::nothing, "", "accepted"}}))};
  return kCommand;
}
const CompanionCommand& multi_device_command() {
  static const CompanionCommand kCommand{
      "multi-device", "COMMAND", "Rewrites models for several GPUs: shard.", {}, 0, 1000};
  return kCommand;
}

edit::AttentionForm form_of(const Arguments& arguments) {
  const int64_t form = arguments.integer("--attention-pattern", 0);
  if (form != 0 && form != 1)
    throw UsageError(fmt::format("--attention-pattern {}: there is no such pattern", form), "0 or 1");
  return form == 0 ? edit::AttentionForm::plain : edit::AttentionForm::scaled;
}

std::vector<int64_t> integers_of(const Arguments& arguments, std::string_view flag) {
  std::vector<int64_t> numbers;
  for (const std::string& word : arguments.values(flag)) {
    const std::optional<int64_t> number = parse_integer(word);
    if (!number) throw UsageError(fmt::format("{} takes integers, not '{}'", flag, word));
    numbers.push_back(*number);
  }
  return numbers;
}

edit::HintRequest request_of(const Arguments& arguments) {
  if (const std::string kind = arguments.value("--parallelism", "CP"); kind != "CP")
    throw UsageError(fmt::format("--parallelism {} is not built", kind), "CP, context parallelism, is");
  const std::string type = arguments.value("--cp-type", "native");
  if (type != "native" && type != "fused")
    throw UsageError(fmt::format("--cp-type {}: there is no such kind", type), "native or fused");
  const auto number = [&](std::string_view flag) { return arguments.integer(flag, 0); };
  const auto rank = [&](std::string_view flag) {
    return arguments.has(flag) ? std::optional(arguments.integer(flag, 0)) : std::nullopt;
  };
  const int64_t ranks = arguments.integer("--nb-rank", 1);
  edit::HintRequest request;
  request.form = form_of(arguments);
  request.collective = {number("--gpus"), arguments.integer("--root", -1), ranks, integers_of(arguments, "--groups"),
                        arguments.value("--reduce-op", "max")};
  check_reduction(request.collective.reduce);
  if (type == "fused")
    request.replace =
        edit::FusedAttention{arguments.has("--is-causal"), integers_of(arguments, "--q-shuffle"),
                             integers_of(arguments, "--k-shuffle"), integers_of(arguments, "--v-shuffle"), ranks};
  request.suggests_ends = !arguments.has("--no-suggest-io");
  request.input_axis = number("--i-idx"), request.output_axis = number("--o-idx");
  request.k_axis = number("--k-idx"), request.v_axis = number("--v-idx");
  request.input_rank = rank("--i-rank"), request.output_rank = rank("--o-rank"), request.kv_rank = rank("--kv-rank");
  return request;
}

ExitStatus write_hints(const Arguments& arguments) {
  const Narrator narrator(arguments);
  const std::string path = arguments.value("--output");
  if (!path.ends_with(".json")) throw UsageError("the file to write is to be called .json", "-o hints.json");
  const edit::HintRequest request = request_of(arguments);
  const edit::ShardHints hints = edit::shard_hints(load_model(arguments, arguments.file()), request);
  if (hints.layers.empty()) narrator.warning("No attention was found: the hints say nothing");
  narrator.info("{} attention layer(s), {} input(s), {} output(s)", hints.layers.size(), hints.inputs.size(),
                hints.outputs.size());
  write_file(path, hints_text(hints));
  narrator.info("Saving shard hints to: {}", path);
  return ExitStatus::passed;
}

ExitStatus shard(const Arguments& arguments) {
  if (arguments.has("--hint") == arguments.has("--one-shot"))
    throw UsageError("either --hint or --one-shot says what to do", "hone template shard-hints MODEL -o hints.json");
  const edit::AttentionForm form = form_of(arguments);
  std::optional<edit::ShardHints> hints;
  if (arguments.has("--hint")) hints = read_hints(arguments.value("--hint"));
  return edit_model(arguments, [&](edit::Model& model, const Narrator& narrator) {
    if (!hints) hints = edit::shard_hints(model, request_of(arguments));
    const size_t count = edit::shard(model, *hints, form);
    if (count == 0)
      throw Error(
          fmt::format("none of the {} attention layer(s) that the hints name is in the model", hints->layers.size()),
          "hone template shard-hints finds them; --attention-pattern 1 is another form");
    narrator.info("{} attention layer(s) rewritten", count);
  });
}

}  // namespace

const FriendlyCommand& describe_template_shard_hints() { return friendly<hints_command>(); }
int run_template_shard_hints(Words words) { return run_companion(hints_command(), words, write_hints); }
const FriendlyCommand& describe_multi_device_shard() { return friendly<shard_command>(); }
int run_multi_device_shard(Words words) { return run_companion(shard_command(), words, shard); }
const FriendlyCommand& describe_multi_device() { return friendly<multi_device_command>(); }
int run_multi_device(Words words) { return run_group(multi_device_command(), words); }

}  // namespace hone
