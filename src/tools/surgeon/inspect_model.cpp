// SPDX-License-Identifier: Apache-2.0
//
// `hone inspect model`: an ONNX model or a plan in words.
#include <algorithm>
#include <fstream>
#include <map>

#include "base/text.h"
#include "edit/changes/unbounded.h"
#include "tools/commands/commands.h"
#include "tools/common/plan_summary.h"
#include "tools/common/plan_view.h"
#include "tools/companion/polygraphy_flags.h"
#include "tools/compare/engine_build.h"
#include "tools/compare/run_flags.h"
#include "tools/compare/tensor_files.h"
#include "tools/surgeon/describe_model.h"
#include "tools/surgeon/model_line.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

const CompanionCommand& command() {
  static const CompanionCommand kCommand{
      "inspect model", "MODEL.onnx | PLAN",
      "Shows what a model or a plan holds: inputs, outputs, initialisers, nodes; of a plan profiles, memory, layers "
      "with their kernels.",
      with_accepted(
          with_load_flags(
              {{"--show", Takes::some, "<layers attrs weights>", "nodes, their attributes, the values of weights"},
               {"--mode", Takes::one, "<mode>", "old spelling: none, basic (layers), attrs, full"},
               {"--layers", Takes::nothing, "", "the same as --show layers"},
               {"--neighbours", Takes::nothing, "", "of each node and tensor what stands before and behind it",
                "--neighbors"},
               {"--list-unbounded-dds", Takes::nothing, "",
                "tensors that hold sizes which only a run knows and nothing bounds"},
               {"--visual", Takes::nothing, "", "writes what hone view does, to view.html"},
               {"--save-visual", Takes::one, "<file.html>", "the same, to this file"},
               {"--visual-port", Takes::one, "<number>", "accepted: the page is a file that needs no server"},
               {"--convert-to", Takes::one, "<trt>", "shows the engine that this machine builds of the model",
                "--display-as"},
               {"--combine-tensor-info", Takes::one, "<file.json>",
                "of a plan's layers: statistics of the tensors that hone run --save-outputs kept"},
               {"--model-type", Takes::one, "<type>", "accepted; the file says what it is"}}),
          {AcceptedFlags::network, AcceptedFlags::builder, AcceptedFlags::tensorflow})};
  return kCommand;
}

ModelView view_of(const Arguments& arguments, const Narrator& narrator) {
  ModelView view;
  view.metadata = narrator.tells(Narrator::Level::verbose);
  view.neighbours = arguments.has("--neighbours");
  view.layers = arguments.has("--layers");
  for (const std::string& word : arguments.values("--show")) {
    if (word == "layers") view.layers = true;
    else if (word == "attrs") view.attrs = true;
    else if (word == "weights") view.weights = true;
    else throw UsageError(fmt::format("--show knows no '{}'", word), "layers, attrs, weights");
  }
  if (!arguments.has("--mode")) return view;
  const std::string mode = arguments.value("--mode");
  constexpr std::string_view kModes[] = {"none", "basic", "attrs", "full"};
  const auto at = std::ranges::find(kModes, mode);
  if (at == std::end(kModes)) throw UsageError(fmt::format("--mode knows no '{}'", mode), "none, basic, attrs, full");
  narrator.warning("--mode is the old spelling: write --show layers attrs weights");
  const auto level = at - kModes;
  view.layers |= level >= 1;
  view.attrs |= level >= 2;
  view.weights |= level >= 3;
  return view;
}

bool is_plan(const std::string& path) {
  char start[8] = {};
  std::ifstream(path, std::ios::binary).read(start, sizeof start);
  return std::string_view(start, sizeof start) == "HONEPLAN";
}

std::string profile_text(const PlanProfile& profile, size_t number, size_t tensors) {
  std::string text = fmt::format("- Profile: {}\n", number);
  for (const InputRange& range : profile.ranges)
    text += fmt::format("    Tensor: {} (Input), Shapes: min=({}), opt=({}), max=({})\n", range.input,
                        join_dims(range.min, ", "), join_dims(range.opt, ", "), join_dims(range.max, ", "));
  if (profile.ranges.empty()) text += fmt::format("    {} Tensor(s), all sizes are fixed\n", tensors);
  return text;
}

/// Statistics of tensors of the last iteration that a file holds, by name.
std::map<std::string, std::string> known_tensors(const std::string& path) {
  std::map<std::string, std::string> texts;
  if (path.empty()) return texts;
  for (const RunResult& result : load_results({path}))
    for (const TensorList& iteration : result.iterations)
      for (const NamedTensor& each : iteration) {
        const Statistics known = statistics_of(doubles_of(each.tensor));
        texts[each.name] = fmt::format("{} {}, {}", numpy_word(each.tensor.dtype()), shape_text(each.tensor.dims()),
                                       statistics_text(known, each.tensor.dims()));
      }
  return texts;
}

std::string layer_text(const hone_plan* plan, const PlanLayer& layer, size_t number,
                       const std::map<std::string, std::string>& values) {
  const hone_layer& known = layer.known;
  std::string text =
      fmt::format("Layer {:<4} | {} [Op: {}]\n", number, known.name, layer.is_view() ? "view" : known.kind);
  if (!layer.is_view()) text += fmt::format("    Tactic: {}.{}\n", known.source, known.tactic);
  if (!layer.nodes.empty()) text += fmt::format("    Nodes: {}\n", join(layer.nodes, ", "));
  for (size_t i = 0; !values.empty() && i < known.inputs + known.outputs; ++i) {
    const std::string tensor = ask<hone_tensor>(hone_plan_layer_tensor, plan, 0, number, i).name;
    if (const auto found = values.find(tensor); found != values.end())
      text += fmt::format("    {}: {}\n", tensor, found->second);
  }
  return text;
}

void inspect_plan(const hone_plan* plan, const Arguments& arguments, const Narrator& narrator, const ModelView& view) {
  Json summary = plan_summary(plan);
  std::vector<std::string> inputs, outputs;
  for (const NetworkTensor& tensor : tensors_of(plan))
    (tensor.is_input ? inputs : outputs).push_back(fmt::format("{} [{}]", tensor.name, tensor.type));
  const std::vector<PlanProfile> profiles = profiles_of(plan);
  const std::vector<PlanLayer> layers = layers_of(plan, 0);
  std::string text = fmt::format("==== Hone Engine ====\nName: {} | {} on {}\n", summary["model"].get<std::string>(),
                                 summary["madeBy"].get<std::string>(), summary["device"].get<std::string>());
  text += fmt::format("\n---- {} Engine Input(s) ----\n{{{}}}\n", inputs.size(), join(inputs, ",\n "));
  text += fmt::format("\n---- {} Engine Output(s) ----\n{{{}}}\n", outputs.size(), join(outputs, ",\n "));
  text += fmt::format("\n---- Memory ----\nDevice Memory: {} bytes\nWeights: {} bytes\n",
                      profiles.empty() ? 0 : profiles[0].memory_bytes, summary["weightBytes"].get<int64_t>());
  text +=
      fmt::format("\n---- {} Profile(s) ({} Tensor(s) Each) ----\n", profiles.size(), inputs.size() + outputs.size());
  for (size_t i = 0; i < profiles.size(); ++i) text += profile_text(profiles[i], i, inputs.size() + outputs.size());
  text += fmt::format("\n---- {} Layer(s) Per Profile ----\n", layers.size());
  if (view.layers || view.attrs) {
    const auto known = known_tensors(arguments.value("--combine-tensor-info"));
    for (size_t i = 0; i < layers.size(); ++i) text += layer_text(plan, layers[i], i, known);
    text += "\nFormats, as --dumpLayerInfo prints them:\n" + layers_text(plan, 0, {}, HONE_LAYERS_LINES);
    summary["layers"] = Json::parse(layers_text(plan, 0, {}, HONE_LAYERS_JSON_DETAILED));
  }
  narrator.write(Narrator::Level::info, text);
  write_json_result(arguments, summary.dump(2, ' ', false, Json::error_handler_t::replace));
}

Owned<hone_plan> built_plan(const Arguments& arguments, const Narrator& narrator) {
  if (const std::string form = arguments.value("--convert-to"); form != "trt")
    throw UsageError(fmt::format("--convert-to knows no '{}'", form), "trt");
  EngineRequest request;
  request.device = best_device();
  return build_plan(read_face(arguments.file()), request, *open_device_named(request.device), {}, narrator);
}

ExitStatus inspect(const Arguments& arguments) {
  const Narrator narrator(arguments);
  const ModelView view = view_of(arguments, narrator);
  need_file(arguments.file());
  if (arguments.has("--visual") || arguments.has("--save-visual")) {
    const std::string words[] = {arguments.file(), "-o", arguments.value("--save-visual", "view.html")};
    if (const int status = run_view(words); status != 0) return static_cast<ExitStatus>(status);
  }
  const bool of_plan = is_plan(arguments.file());
  if (of_plan || arguments.has("--convert-to")) {
    const auto plan = of_plan ? make<hone_plan>(hone_plan_create_from_file, arguments.file().c_str())
                              : built_plan(arguments, narrator);
    inspect_plan(plan.get(), arguments, narrator, view);
    return ExitStatus::passed;
  }
  const edit::Model model = load_model(arguments, arguments.file());
  if (arguments.has("--list-unbounded-dds")) {
    const std::vector<std::string> found = edit::unbounded_sizes(model);
    narrator.info("Found tensors with unbounded DDS: [{}]", join(found, ", "));
    write_json_result(arguments, Json(found).dump());
    return ExitStatus::passed;
  }
  if (!arguments.has("--json") || arguments.value("--json", "-") != "-")
    narrator.info("==== ONNX Model ====\n{}", model_text(model, view));
  if (arguments.has("--json"))
    write_json_result(arguments, model_json(model, view).dump(2, ' ', false, Json::error_handler_t::replace));
  return ExitStatus::passed;
}

}  // namespace

const FriendlyCommand& describe_inspect_model() {
  static const FriendlyCommand kFriendly = friendly_of(command());
  return kFriendly;
}
int run_inspect_model(Words words) { return run_companion(command(), words, inspect); }

}  // namespace hone
