// SPDX-License-Identifier: Apache-2.0
//
// `hone surgeon extract`: a part of a model, by the tensors at its edge.
#include "edit/changes/extract.h"

#include "tools/commands/commands.h"
#include "tools/surgeon/model_line.h"

namespace hone {
namespace {

const CompanionCommand& command() {
  static const CompanionCommand kCommand{
      "surgeon extract", "MODEL.onnx",
      "Cuts the part out of a model that computes some tensors from others. A tensor is NAME, NAME:SHAPE:TYPE (an "
      "output: NAME:TYPE); "
      "what is 'auto' or left out is found out.",
      with_model_flags(
          {{"--inputs", Takes::some, "<tensor...>", "where the part begins; without it the model's own inputs"},
           {"--outputs", Takes::some, "<tensor...>", "where it ends; without it the model's own outputs"},
           {"--force-fallback-shape-inference", Takes::nothing, "", "accepted; types are inferred as always"},
           {"--no-shape-inference", Takes::nothing, "", "accepted"}})};
  return kCommand;
}

ExitStatus extract(const Arguments& arguments) {
  if (!arguments.has("--inputs") && !arguments.has("--outputs"))
    throw UsageError("neither --inputs nor --outputs says what to cut out", "--outputs NAME:auto");
  return edit_model(arguments, [&](edit::Model& model, const Narrator&) {
    std::vector<edit::Boundary> inputs, outputs;
    for (const std::string& text : arguments.values("--inputs")) inputs.push_back(edit::parse_boundary(text, false));
    for (const std::string& text : arguments.values("--outputs")) outputs.push_back(edit::parse_boundary(text, true));
    edit::extract(model, inputs, outputs);
  });
}

}  // namespace

const FriendlyCommand& describe_surgeon_extract() {
  static const FriendlyCommand kFriendly = friendly_of(command());
  return kFriendly;
}
int run_surgeon_extract(Words words) { return run_companion(command(), words, extract); }

}  // namespace hone
