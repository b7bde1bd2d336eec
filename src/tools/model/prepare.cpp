// SPDX-License-Identifier: Apache-2.0
#include "tools/model/prepare.h"

#include <algorithm>

#include "options/flag.h"
#include "tools/common/model_shapes.h"
#include "tools/common/plan_view.h"
#include "tools/model/calibration.h"
#include "tools/model/data_set.h"
#include "tools/model/handles.h"
#include "tools/model/layer_flags.h"
#include "tools/model/sparsity.h"
#include "tools/trtexec/routes.h"

namespace hone {
namespace {

bool multiplies(const hone_device_info& device, hone_dtype type) { return (device.multiplied_types >> type & 1u) != 0; }

/// What the device cannot compute in is said once; allowing it is no error.
void explain_precision(const BuildOptions& options, const hone_device_info& device, const Logger& log) {
  if (options.best || std::string_view(device.kind) != "cpu" || !(options.fp16 || options.bf16 || options.int8)) return;
  if (options.int8 && multiplies(device, HONE_I8) && !(options.fp16 || options.bf16)) return;
  if (options.bf16 && multiplies(device, HONE_BF16))
    return log.info(
        "Convolutions and what stands between them are BF16, other matmuls may round their operands to it; sums and "
        "everything else are FP32.");
  const bool halves = options.fp16 || options.bf16;
  log.warning("Reduced precision is allowed, not required: {}",
              halves ? "small-batch matmuls may keep their weights in 16 bits; this CPU computes in FP32."
                     : "the CPU device has FP32 kernels, and these are used.");
}

/// Whether any tensor or weight of the model is of such a type.
bool has_tensor(const Graph& graph, bool (*is_of)(DType)) {
  const auto fits = [&](const Value* value) { return value != nullptr && is_of(value->type.dtype); };
  return std::ranges::any_of(graph.inputs(), fits) || std::ranges::any_of(graph.nodes(), [&](const Node* node) {
           return std::ranges::any_of(node->inputs, fits) || std::ranges::any_of(node->outputs, fits);
         });
}

/// FP8 and INT4 are the model's: nothing is rounded to them here.
void explain_small_types(const Graph& graph, const ToolOptions& tool, const Logger& log) {
  const auto is_fp8 = [](DType type) { return type >= DType::f8e4m3fn && type <= DType::f8e5m2fnuz; };
  const auto is_int4 = [](DType type) { return type == DType::i4 || type == DType::u4; };
  if (tool.fp8 && has_tensor(graph, is_fp8))
    log.info("FP8: tensors of the model in float8 stay so; products of them are computed in FP32, as the model says.");
  else if (tool.fp8)
    log.warning(
        "--fp8: the model has no float8 tensors, so nothing is computed in FP8. hone quantize {} -o OUT.onnx --mode "
        "fp8 "
        "--data=... makes some.",
        tool.onnx);
  if (tool.int4 && has_tensor(graph, is_int4)) log.info("INT4: weights of the model in 4 bits stay so.");
  else if (tool.int4)
    log.warning(
        "--int4: the model has no weights in 4 bits, so none are used. hone quantize {} -o OUT.onnx --mode int4 makes "
        "them.",
        tool.onnx);
}

/// With prefer a type is given where a device gains by it; that it does not is said once.
void explain_preferences(const ToolOptions& tool, const hone_device_info& device, const Logger& log) {
  if (tool.precision_constraints != "prefer" || device.whole_networks != 0) return;
  for (const std::string_view type : {"fp16", "bf16"}) {
    const bool asked =
        std::ranges::any_of(tool.layer_precisions, [&](const auto& entry) { return entry.second == type; });
    if (asked && !(type == "bf16" && multiplies(device, HONE_BF16)))
      log.warning(
          "--layerPrecisions prefers {} for some layers, and this device has no kernels in it: they are computed in "
          "FP32. --precisionConstraints=obey rounds what they read and give to it.",
          type);
  }
}

/// Those flags that say how to build. A calibration cache that is not to be read is left out.
Owned<hone_options> options_of_flags(const Options& options, const BuildOptions& build) {
  std::vector<const char*> flags;
  for (const std::string& argument : options.arguments) {
    const Flag* flag = find_flag(argument.substr(0, argument.find('=')));
    if (flag == nullptr || flag->name == "--onnx" || flag->name == "--loadEngine") continue;
    if (flag->name == "--calib" && build.calibration_file.empty()) continue;
    flags.push_back(argument.c_str());
  }
  return make<hone_options>(hone_options_create, flags.data(), flags.size());
}

void give_profiles(hone_options* options, const std::vector<ProfileOptions>& profiles) {
  for (const ProfileOptions& profile : profiles) {
    const int number = ask<int>(hone_options_add_profile, options);
    for (const auto& [input, range] : profile)
      check(hone_options_set_range(options, number, input.c_str(), range.min.data(), range.opt.data(), range.max.data(),
                                   static_cast<int>(range.opt.size())));
  }
}

void give_scales(hone_options* options, const TensorScales& scales, Codes codes, bool edge) {
  for (const auto& [tensor, each] : scales) {
    const hone_scale scale{.size = sizeof(hone_scale),
                           .tensor = tensor.c_str(),
                           .scale = each.scale,
                           .zero = each.zero,
                           .asymmetric = codes == Codes::asymmetric,
                           .edge = edge};
    check(hone_options_set_scale(options, &scale));
  }
}

void give_sample(hone_options* options, const std::map<std::string, Tensor>& sample) {
  for (const auto& [input, tensor] : sample) {
    const hone_value value(tensor);
    check(hone_options_set_sample(options, input.c_str(), &value));
  }
}

}  // namespace

Owned<hone_options> prepare_build(hone_model& model, const hone_device& device, const Options& options,
                                  const Logger& log) {
  const ToolOptions& tool = options.tool;
  check_layer_flags(model.graph, options, log);
  apply_sparsity(model.graph, tool.sparsity, log);
  BuildOptions build = options.build;
  build.profiles = model_profiles(tensors_of(&model), build.profiles, tool.shape_arguments, log);
  calibrate(model, device, tool, build, log);
  auto given = options_of_flags(options, build);
  give_profiles(given.get(), build.profiles.empty() ? std::vector<ProfileOptions>(1) : build.profiles);
  give_scales(given.get(), build.scales, build.codes, false);
  give_scales(given.get(), build.other_scales, build.codes, true);
  if (build.best && !tool.calibration_data.empty())
    give_sample(given.get(), DataSet(tool.calibration_data, model.graph).values(0));
  if (!tool.tuning.route.empty())
    for (const auto& [knob, value] : parse_route(tool.tuning.route))
      check(hone_options_set_knob(given.get(), knob.c_str(), value.c_str()));
  const hone_device_info info = info_of(&device);
  explain_precision(build, info, log);
  explain_small_types(model.graph, tool, log);
  explain_preferences(tool, info, log);
  return given;
}

}  // namespace hone
