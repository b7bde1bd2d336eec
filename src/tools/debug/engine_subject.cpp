// SPDX-License-Identifier: Apache-2.0
#include "tools/debug/engine_subject.h"

#include "tools/compare/inputs.h"

namespace hone {

std::vector<CompanionFlag> engine_subject_flags() {
  std::vector<CompanionFlag> all{{"--cpu", Takes::nothing, "", "build for the processor"},
                                 {"--cuda", Takes::nothing, "", "build for the GPU"},
                                 {"--trt", Takes::nothing, "", "build for the best device there is (default)"}};
  for (const std::vector<CompanionFlag>& more : {checker_flags(), engine_flags(), model_flags(), data_flags()})
    for (const CompanionFlag& flag : more)
      if (flag.name != "--save-inputs" && flag.name != "--data-loader-cmd" && flag.name != "--iterations")
        all.push_back(flag);
  return all;
}

EngineSubject::EngineSubject(const Arguments& arguments, const Narrator& narrator)
    : narrator_(narrator), request_(engine_request(arguments, narrator)) {
  need_file(arguments.file());
  if (!is_onnx_file(arguments.file()))
    throw UsageError(fmt::format("{} is no ONNX model", arguments.file()),
                     "an engine cannot be built anew; give the model it was made of");
  face_ = face_of(arguments, arguments.file(), narrator);
  request_.device = arguments.has("--cpu") ? "cpu" : arguments.has("--cuda") ? "cuda:0" : best_device();
  device_ = open_device_named(request_.device);
  if (arguments.has("--load-inputs")) samples_ = load_inputs(arguments.values("--load-inputs"), face_.inputs);
  const InputRequest inputs = input_request(arguments);
  if (samples_.empty())
    samples_.push_back(draw_inputs(resolved_inputs(face_, inputs, narrator), inputs, 0, narrator, false));
}

Owned<hone_plan> EngineSubject::build(const EngineRequest& request, const std::string& path) const {
  auto plan = build_plan(face_, request, *device_, samples_, narrator_);
  check(hone_plan_save(plan.get(), path.c_str()));
  return plan;
}

}  // namespace hone
