// SPDX-License-Identifier: Apache-2.0
#include "tools/common/calibration.h"

#include "base/text.h"
#include "tools/common/input_data.h"
#include "tools/common/progress.h"

namespace hone {
namespace {

/// A network in f32 whose tensors stay readable. Nothing is timed for it.
class ObservedNetwork {
 public:
  ObservedNetwork(const hone_model& model, const hone_device& device, const std::set<std::string>& tensors,
                  const std::map<std::string, Dims>& shapes) {
    hone_options options{.build = {.optimization_level = 0}};
    ProfileOptions& profile = options.build.profiles.emplace_back();
    for (const Value* input : model.graph.inputs())
      if (!input->type.shape.is_static())
        profile[input->name] = {shapes.at(input->name), shapes.at(input->name), shapes.at(input->name)};
    for (const std::string& tensor : tensors) (shapes.contains(tensor) ? inputs_ : computed_).push_back(tensor);
    options.build.debug_tensors = computed_;
    const hone_log* const quiet = nullptr;
    const auto plan = make<hone_plan>(hone_build, &model, &device, static_cast<const hone_options*>(&options), quiet);
    engine_ = make<hone_engine>(hone_engine_create, static_cast<const hone_plan*>(plan.get()), &device, quiet);
    context_ = make<hone_context>(hone_context_create, static_cast<const hone_engine*>(engine_.get()), 0);
    for (const auto& [name, dims] : shapes)
      check(hone_context_set_shape(context_.get(), name.c_str(), dims.data(), static_cast<int>(dims.size())));
    for (const IoTensor& io : engine_->engine->plan().io) bind(io);
  }

  /// One inference on what `fill` writes to the inputs' memory.
  void run(const std::function<void(const IoTensor&, const Dims&, std::span<std::byte>)>& fill, const Visit& visit) {
    for (const IoTensor& io : engine_->engine->plan().io)
      if (io.is_input) fill(io, context_->context->shape(io.name), memory_of(io.name));
    check(hone_context_run(context_.get()));
    for (const std::string& name : inputs_) show(name, context_->context->shape(name), memory_of(name), visit);
    for (const std::string& name : computed_) {
      const auto value =
          make<hone_value>(hone_context_debug_value, static_cast<const hone_context*>(context_.get()), name.c_str());
      show(name, value->tensor.dims(), value->tensor.bytes(), visit);
    }
  }

 private:
  void bind(const IoTensor& io) {
    if (engine_->engine->by_value(io.name)) return;
    AlignedBuffer& buffer = memory_[io.name];
    int64_t bytes = 0;
    check(hone_context_bytes(context_.get(), io.name.c_str(), &bytes));
    buffer = AlignedBuffer(static_cast<size_t>(std::max<int64_t>(bytes, 1)));
    sizes_[io.name] = static_cast<size_t>(bytes);
    check(hone_context_bind(context_.get(), io.name.c_str(), buffer.data()));
  }
  std::span<std::byte> memory_of(const std::string& name) { return {memory_.at(name).data(), sizes_.at(name)}; }

  static void show(const std::string& name, const Dims& dims, std::span<const std::byte> bytes, const Visit& visit) {
    with_note([&] { return "reading what tensor " + name + " holds"; },
              [&] {
                visit(name, dims, {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)});
              });
  }

  Owned<hone_engine> engine_;
  Owned<hone_context> context_;
  std::vector<std::string> inputs_, computed_;
  std::map<std::string, AlignedBuffer> memory_;
  std::map<std::string, size_t> sizes_;
};

/// Those of the profile, and the static ones.
std::map<std::string, Dims> shapes_of(const Graph& graph, const ProfileOptions& profile) {
  std::map<std::string, Dims> shapes;
  for (const Value* input : graph.inputs()) {
    const auto range = profile.find(input->name);
    shapes[input->name] = range != profile.end() ? range->second.opt : input->type.shape.values();
  }
  return shapes;
}

std::set<std::string> names_of(const Placement& placement) {
  std::set<std::string> names;
  for (const PlacedTensor& tensor : placement.tensors) names.insert(tensor.value->name);
  return names;
}

}  // namespace

void observe(const hone_model& model, const hone_device& device, const std::set<std::string>& tensors, DataSet& data,
             const Visit& visit) {
  ObservedNetwork network(model, device, tensors, data.shapes());
  Progress progress;
  for (size_t batch = 0; batch < data.batches(); ++batch) {
    with_note([&] { return fmt::format("calibrating on batch {} of {}", batch, data.batches()); },
              [&] {
                network.run([&](const IoTensor& input, const Dims&,
                                std::span<std::byte> memory) { data.load(batch, input.name, memory); },
                            visit);
              });
    progress.advanced(batch + 1, data.batches(), "batches seen");
  }
}

Histograms histograms_over(const hone_model& model, const hone_device& device, const Placement& placement,
                           DataSet& data) {
  Histograms seen;
  observe(model, device, names_of(placement), data,
          [&](const std::string& tensor, const Dims&, std::span<const float> values) { seen[tensor].add(values); });
  return seen;
}

Histograms random_histograms(const hone_model& model, const hone_device& device, const Placement& placement,
                             const ProfileOptions& profile) {
  ObservedNetwork network(model, device, names_of(placement), shapes_of(model.graph, profile));
  Histograms seen;
  network.run(
      [](const IoTensor& input, const Dims& dims, std::span<std::byte> memory) { fill_random(input, dims, memory); },
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
