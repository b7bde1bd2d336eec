// SPDX-License-Identifier: Apache-2.0
#include "tools/companion/polygraphy_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"

namespace hone {
namespace {

constexpr std::string_view kNothing = "accepted, without effect", kScript = "refused: a script in Python";

const std::vector<CompanionFlag>& flags_of(AcceptedFlags group) {
  static const std::vector<CompanionFlag> kData{
      {"--data-loader-backend-module", Takes::one, "<name>", kNothing},
      {"--data-loader-script", Takes::one, "<file[:function]>", kNothing},
      {"--load-inputs", Takes::some, "<file...>", kNothing, "--load-input-data"},
      {"--input-shapes", Takes::some, "<name:[sizes]...>", kNothing, "--inputs --model-input-shapes --model-inputs"},
      {"--seed", Takes::one, "<number>", kNothing},
      {"--val-range", Takes::some, "<[name:][low,high]...>", kNothing},
      {"--iterations", Takes::one, "<count>", kNothing, "--iters"},
      {"--providers", Takes::some, "<name...>", kNothing, "--execution-providers"},
      {"--graph-optimization-level", Takes::one, "<level>", kNothing}};
  static const std::vector<CompanionFlag> kModel{
      {"--shape-inference", Takes::nothing, "", kNothing, "--do-shape-inference"},
      {"--no-onnxruntime-shape-inference", Takes::nothing, "", kNothing},
      {"--model-type", Takes::one, "<type>", "accepted; the file says what it is"},
      {"--onnx-outputs", Takes::some, "<tensor...>", kNothing},
      {"--onnx-exclude-outputs", Takes::some, "<tensor...>", kNothing},
      {"--onnx-outputs-by-type", Takes::some, "<operator...>", kNothing},
      {"--ignore-external-data", Takes::nothing, "", kNothing},
      {"--external-data-dir", Takes::one, "<folder>", kNothing, "--ext --load-external-data"},
      {"--save-external-data", Takes::maybe, "<file>", kNothing, "--external-data-path"},
      {"--external-data-size-threshold", Takes::one, "<bytes>", kNothing},
      {"--no-save-all-tensors-to-one-file", Takes::nothing, "", kNothing},
      {"--fp-to-fp16", Takes::nothing, "", kNothing}};
  static const std::vector<CompanionFlag> kNetwork{
      {"--all-tensor-dtypes", Takes::one, "<type>", kNothing, "--all-tensor-datatypes"},
      {"--all-tensor-formats", Takes::some, "<format...>", kNothing},
      {"--tensor-dtypes", Takes::some, "<name:type...>", kNothing, "--tensor-datatypes"},
      {"--tensor-formats", Takes::some, "<name:[format]...>", kNothing},
      {"--mark-debug", Takes::some, "<tensor...>", kNothing},
      {"--mark-unfused-tensors-as-debug-tensors", Takes::nothing, "", kNothing},
      {"--decomposable-attentions", Takes::nothing, "", kNothing},
      {"--enable-uint8-asymmetric-quantization-dla", Takes::nothing, "", kNothing},
      {"--trt-outputs", Takes::some, "<tensor...>", kNothing},
      {"--trt-exclude-outputs", Takes::some, "<tensor...>", kNothing},
      {"--trt-outputs-by-type", Takes::some, "<operator...>", kNothing},
      {"--layer-precisions", Takes::some, "<layer:type...>", kNothing},
      {"--onnx-flags", Takes::some, "<name...>", kNothing},
      {"--plugin-instancenorm", Takes::nothing, "", kNothing},
      {"--plugins", Takes::some, "<library...>", kNothing},
      {"--strongly-typed", Takes::nothing, "", kNothing},
      {"--load-runtime", Takes::one, "<file>", kNothing},
      {"--dla-workspace-allocation-strategy", Takes::one, "<how>", kNothing},
      {"--trt-network-postprocess-script", Takes::some, "<file[:function]...>", kScript, "--trt-npps"}};
  static const std::vector<CompanionFlag> kBuilder{
      {"--calib-base-cls", Takes::one, "<class>", kNothing, "--calibration-base-class"},
      {"--quantile", Takes::one, "<part>", kNothing},
      {"--regression-cutoff", Takes::one, "<number>", kNothing},
      {"--engine-capability", Takes::one, "<name>", kNothing},
      {"--save-timing-cache", Takes::one, "<file>", kNothing},
      {"--trt-config-script", Takes::one, "<file[:function]>", kScript},
      {"--trt-config-postprocess-script", Takes::one, "<file[:function]>", kScript, "--trt-cpps"}};
  static const std::vector<CompanionFlag> kTensorflow{{"--ckpt", Takes::one, "<name>", kNothing},
                                                      {"--freeze-graph", Takes::nothing, "", kNothing},
                                                      {"--opset", Takes::one, "<number>", kNothing},
                                                      {"--tf-outputs", Takes::some, "<tensor...>", kNothing},
                                                      {"--allow-growth", Takes::nothing, "", kNothing},
                                                      {"--dynamic-op", Takes::nothing, "", kNothing},
                                                      {"--xla", Takes::nothing, "", kNothing},
                                                      {"--gpu-memory-fraction", Takes::one, "<part>", kNothing},
                                                      {"--save-pb", Takes::one, "<file>", kNothing},
                                                      {"--minimum-segment-size", Takes::one, "<count>", kNothing},
                                                      {"--save-timeline", Takes::one, "<file>", kNothing},
                                                      {"--save-tensorboard", Takes::one, "<folder>", kNothing},
                                                      {"--tftrt", Takes::nothing, "", kNothing, "--use-tftrt"}};
  switch (group) {
    case AcceptedFlags::data: return kData;
    case AcceptedFlags::model: return kModel;
    case AcceptedFlags::network: return kNetwork;
    case AcceptedFlags::builder: return kBuilder;
    case AcceptedFlags::tensorflow: break;
  }
  return kTensorflow;
}

std::vector<std::string_view> spellings(const CompanionFlag& flag) {
  std::vector<std::string_view> all{flag.name};
  for (const std::string_view other : split(flag.others, ' '))
    if (!other.empty()) all.push_back(other);
  return all;
}

}  // namespace

std::vector<CompanionFlag> with_accepted(std::vector<CompanionFlag> own, std::initializer_list<AcceptedFlags> groups) {
  std::set<std::string_view> known;
  for (const CompanionFlag& flag : own)
    for (const std::string_view name : spellings(flag)) known.insert(name);
  for (const AcceptedFlags group : groups)
    for (const CompanionFlag& flag : flags_of(group)) {
      // A further spelling of a flag that the command has under another name stands for itself.
      for (const std::string_view name : spellings(flag)) {
        if (!known.insert(name).second) continue;
        own.push_back({name, flag.takes, flag.value_name, flag.help});
      }
    }
  return own;
}

void refuse_python(const Arguments& arguments) {
  for (const char* flag :
       {"--trt-network-postprocess-script", "--trt-npps", "--trt-config-script", "--trt-config-postprocess-script",
        "--trt-cpps", "--postprocess-func-script", "--compare-func-script"})
    if (arguments.has(flag))
      throw UsageError(fmt::format("{} names a script in Python, which is not run here", flag),
                       "hone trt-env -- polygraphy ... runs Polygraphy itself, with its scripts, on Hone's engines");
  for (const char* flag : {"--tf", "--pluginref"})
    if (arguments.has(flag))
      throw StatusError(ExitStatus::no_backend, fmt::format("{}: there is no such runner here", flag),
                        "--ref gives an independent second opinion, --onnxrt another");
}

}  // namespace hone
