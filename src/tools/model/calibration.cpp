// SPDX-License-Identifier: Apache-2.0
#include "tools/model/calibration.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "builder/prepare/io_formats.h"
#include "builder/prepare/quantize.h"
#include "quantize/fold_weights.h"
#include "quantize/read_scales.h"
#include "tools/common/observed_network.h"
#include "tools/common/progress.h"

namespace hone {
namespace {

/// Those of the profile, and the static ones.
std::map<std::string, Dims> shapes_of(const Graph& graph, const ProfileOptions& profile) {
  std::map<std::string, Dims> shapes;
  for (const Value* input : graph.inputs()) {
    const auto range = profile.find(input->name);
    shapes[input->name] = range != profile.end() ? range->second.opt : input->type.shape.values();
  }
  return shapes;
}

std::set<std::string> names_of(const Placement& placement, const std::set<std::string>& others) {
  std::set<std::string> names = others;
  for (const PlacedTensor& tensor : placement.tensors) names.insert(tensor.value->name);
  return names;
}

Histograms observed(const hone_model& model, const hone_device& device, const Placement& placement,
                    const std::set<std::string>& others, const std::string& path, const Clipping& clipping,
                    const Logger& log) {
  const double start = now_ms();
  DataSet data(path, model.graph);
  Histograms seen = histograms_over(model, device, placement, data, others);
  log.info("Calibrated {} tensors on {} samples by {} in {:.3g} sec.", seen.size(), data.samples() - data.left_over(),
           text_of(clipping), seconds_since(start));
  if (data.left_over() > 0) log.warning("{} samples of {} fill no batch and were left out.", data.left_over(), path);
  return seen;
}

/// Empty where the network does not run on values drawn at random.
Histograms random_ranges(const hone_model& model, const hone_device& device, const Placement& placement,
                         const std::set<std::string>& others, std::span<const ProfileOptions> profiles,
                         const Logger& log) {
  log.warning(
      "INT8 ranges are random: they were taken from one inference on random values, so the results mean nothing. Give "
      "samples with --calibData or a calibration cache with --calib.");
  try {
    return random_histograms(model, device, placement, profiles.empty() ? ProfileOptions() : profiles[0], others);
  } catch (const Error& error) {
    log.warning("The network does not run on random values ({}); it is computed in floating point.", error.message());
    return {};
  }
}

TensorScales all_scales(const BuildOptions& build) {
  TensorScales all = build.scales;
  all.insert(build.other_scales.begin(), build.other_scales.end());
  return all;
}

}  // namespace

void observe(const hone_model& model, const hone_device& device, const std::set<std::string>& tensors, DataSet& data,
             const Visit& visit) {
  ObservedNetwork network(model, device, tensors, data.shapes());
  Progress progress;
  for (size_t batch = 0; batch < data.batches(); ++batch) {
    with_note([&] { return fmt::format("calibrating on batch {} of {}", batch, data.batches()); },
              [&] {
                network.run([&](const NetworkTensor& input, const Dims&,
                                std::span<std::byte> memory) { data.load(batch, input.name, memory); },
                            visit);
              });
    progress.advanced(batch + 1, data.batches(), "batches seen");
  }
}

Histograms histograms_over(const hone_model& model, const hone_device& device, const Placement& placement,
                           DataSet& data, const std::set<std::string>& others) {
  Histograms seen;
  observe(model, device, names_of(placement, others), data,
          [&](const std::string& tensor, const Dims&, std::span<const float> values) { seen[tensor].add(values); });
  return seen;
}

Histograms random_histograms(const hone_model& model, const hone_device& device, const Placement& placement,
                             const ProfileOptions& profile, const std::set<std::string>& others) {
  ObservedNetwork network(model, device, names_of(placement, others), shapes_of(model.graph, profile));
  Histograms seen;
  network.run([](const NetworkTensor& input, const Dims& dims,
                 std::span<std::byte> memory) { fill_random(input.random_input(), dims, memory); },
              [&](const std::string& tensor, const Dims&, std::span<const float> values) { seen[tensor].add(values); });
  return seen;
}

Moments moments_over(const hone_model& model, const hone_device& device, const Placement& placement,
                     bool keeps_products, DataSet& data) {
  std::set<std::string> tensors;
  for (const PlacedWeights& weights : placement.weights) tensors.insert(weights.uses.front().node->input(0)->name);
  Moments moments;
  observe(model, device, tensors, data,
          [&](const std::string& tensor, const Dims& dims, std::span<const float> values) {
            moments.try_emplace(tensor, static_cast<size_t>(dims.back()), keeps_products).first->second.add(values);
          });
  return moments;
}

ClippedRange clipped(const Histogram& histogram, const Clipping& clipping, Codes codes) {
  if (codes == Codes::f8e4m3 && clipping.method == ClippingMethod::entropy) return {histogram.min(), histogram.max()};
  const bool one_sided = histogram.min() >= 0 || histogram.max() <= 0;
  const float magnitude = clip_magnitude(histogram, clipping, codes == Codes::asymmetric && one_sided ? 255 : 127);
  return {std::max(histogram.min(), -magnitude), std::min(histogram.max(), magnitude)};
}

TensorScales scales_of(const Placement& placement, const Histograms& histograms, const Clipping& clipping,
                       Codes codes) {
  return scales_of(placement, codes, [&](const PlacedTensor& tensor) {
    return clipped(histograms.at(tensor.value->name), clipping, codes);
  });
}

void calibrate(const hone_model& model, const hone_device& device, const ToolOptions& tool, BuildOptions& build,
               const Logger& log) {
  const Clipping clipping = read_clipping("--calibMethod", tool.calibration_method);
  const bool has_data = !tool.calibration_data.empty(), has_cache = !build.calibration_file.empty();
  if (!build.int8 && has_cache) (void)read_calibration_cache(build.calibration_file);
  if (tool.calibration_asymmetric && has_cache)
    throw Error("calibration caches have symmetric scales", "leave --calibAsymmetric or --calib out");
  if (!build.int8 || (!has_data && has_cache)) return;
  const bool own = is_quantized(model.graph), writes = has_data && has_cache;
  const bool quantises = !own && (device.device->info().has_integers() || writes) && (has_data || !build.best);
  hone_model folded(model.graph.clone());
  if (quantises) fold_weights(folded.graph);
  std::set<std::string> others = edges_without_scale(folded.graph, build);
  others.merge(results_without_scale(folded.graph, build));
  if (!quantises && has_data)
    log.warning("--calibData is not used{}: {}", others.empty() ? "" : " but for inputs and outputs",
                own ? "the network has quantised tensors of its own" : "this device has no kernels for 8-bit integers");
  if (!quantises && writes) build.calibration_file.clear();  // it may not be there yet
  const Placement placement = quantises ? place_quantization(folded.graph, {}) : Placement();
  if (quantises && placement.nodes == 0) log.info("INT8: nothing in the network can be quantised.");
  if (placement.nodes == 0 && others.empty()) return;
  const Histograms seen = has_data ? observed(folded, device, placement, others, tool.calibration_data, clipping, log)
                                   : random_ranges(folded, device, placement, others, build.profiles, log);
  if (seen.empty()) return;
  build.codes = tool.calibration_asymmetric ? Codes::asymmetric : Codes::symmetric;
  build.scales = scales_of(placement, seen, clipping, build.codes);
  for (const std::string& tensor : others)
    if (!build.scales.contains(tensor))
      build.other_scales[tensor] = scale_of(clipped(seen.at(tensor), clipping, build.codes), build.codes);
  if (!writes) return;
  write_file(build.calibration_file, format_calibration_cache(cache_of(all_scales(build), clipping)));
  log.info("Calibration cache written to {}", build.calibration_file);
}

CalibrationCache cache_of(const TensorScales& scales, const Clipping& clipping) {
  const bool clips = clipping.method != ClippingMethod::minmax;
  CalibrationCache cache{fmt::format("TRT-101600-{}", clips ? "EntropyCalibration2" : "MinMaxCalibration"), {}};
  for (const auto& [tensor, scale] : scales) cache.scales[tensor] = scale.scale;
  return cache;
}

Clipping read_clipping(std::string_view flag, const std::string& value) {
  const std::optional<Clipping> clipping = parse_clipping(value);
  if (clipping) return *clipping;
  throw Error(fmt::format("{} takes a method of calibration, not '{}'", flag, value),
              "one of entropy, minmax, mse, percentile, percentile=99.9");
}

}  // namespace hone
