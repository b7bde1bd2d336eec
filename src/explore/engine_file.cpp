// SPDX-License-Identifier: Apache-2.0
#include "explore/engine_file.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

Json parsed(std::string_view text, std::string_view what) {
  if (nesting_of(text) > kMaxNesting)
    throw Error(fmt::format("the {} is nested more than {} deep", what, kMaxNesting), "it is none that trtexec writes");
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    throw Error(fmt::format("the {} is no JSON", what),
                "write it anew with trtexec; a run that was cut short leaves half a file");
  return json;
}

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

/// A time or a share; 0 for what is none. Those that are left can be added up and drawn.
double amount_at(const Json& object, const char* key) {
  constexpr double kLeast = 1e-15, kMost = 1e15;
  const double number = number_at(object, key);
  return number > kLeast && number < kMost ? number : 0;
}

/// A whole number that a 64-bit integer holds; 0 for anything else.
int64_t integer_of(const Json& value) {
  constexpr double kLimit = 9e18;
  if (value.is_number_integer() &&
      !(value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max()))
    return value.get<int64_t>();
  const double number = value.is_number() ? value.get<double>() : 0;
  return number > -kLimit && number < kLimit ? static_cast<int64_t>(number) : 0;
}

int64_t integer_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? 0 : integer_of(*found);
}

/// Record and unit separators stand between the parts of NVIDIA's names.
std::string joined_name(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return c == '\x1e' || c == '\x1f'; }, '+');
  return name;
}

TensorRow tensor_of(const Json& object) {
  TensorRow row{joined_name(text_at(object, "Name")), text_at(object, "Format/Datatype"), {}, {}};
  if (row.format.empty()) row.format = text_at(object, "Format");
  row.element = element_word(row.format);
  if (const std::string layout = text_at(object, "Layout"); !layout.empty()) row.format += ", " + layout;
  if (const auto dims = object.find("Dimensions"); dims != object.end() && dims->is_array())
    for (const Json& size : *dims) row.dims.push_back(integer_of(size));
  return row;
}

std::vector<TensorRow> tensors_at(const Json& object, const char* key) {
  std::vector<TensorRow> rows;
  if (const auto found = object.find(key); found != object.end() && found->is_array())
    for (const Json& tensor : *found)
      if (tensor.is_object()) rows.push_back(tensor_of(tensor));
  return rows;
}

/// "[ONNX Layer: a][ONNX Layer: b]", and NVIDIA's form with the unit separator between.
std::vector<std::string> nodes_in(std::string_view metadata) {
  constexpr std::string_view kMark = "[ONNX Layer: ";
  std::vector<std::string> nodes;
  for (size_t at = metadata.find(kMark); at != std::string_view::npos; at = metadata.find(kMark, at)) {
    at += kMark.size();
    const size_t next = metadata.find(kMark, at), end = metadata.substr(0, next).rfind(']');
    if (end != std::string_view::npos && end >= at) nodes.emplace_back(metadata.substr(at, end - at));
  }
  return nodes;
}

/// Of the largest input that is no index: a Gather's table counts, not its indices.
std::string precision_of(const LayerRow& row) {
  const TensorRow* chosen = nullptr;
  for (const std::vector<TensorRow>* side : {&row.inputs, &row.outputs})
    for (const TensorRow& tensor : *side)
      if (!is_index(tensor.element) && (chosen == nullptr || tensor.bytes() > chosen->bytes()) &&
          (side == &row.inputs || chosen == nullptr))
        chosen = &tensor;
  if (chosen != nullptr) return chosen->element.name;
  return row.inputs.empty() ? (row.outputs.empty() ? "" : row.outputs[0].element.name) : row.inputs[0].element.name;
}

/// As Hone says it, else by the counts that NVIDIA's files have.
int64_t weight_bytes_of(const Json& object) {
  int64_t bytes = std::max<int64_t>(integer_at(object, "WeightBytes"), 0);
  if (bytes > 0) return bytes;
  for (const char* key : {"Weights", "Bias"})
    if (const auto found = object.find(key); found != object.end() && found->is_object())
      bytes += (integer_at(*found, "Count") * element_word(text_at(*found, "Type")).bits + 7) / 8;
  return bytes;
}

/// Multiplications and additions; 0 where the kind of the layer does not say.
int64_t flops_of(const Json& object, const LayerRow& row) {
  if (object.contains("Flops")) return integer_at(object, "Flops");
  if (row.outputs.empty() || row.inputs.empty()) return 0;
  const std::vector<int64_t>&in = row.inputs[0].dims, &out = row.outputs[0].dims;
  if (row.type == "Convolution" || row.type == "Deconvolution") {
    const auto kernel = object.find("Kernel");
    if (kernel == object.end() || !kernel->is_array() || in.size() < 2) return 0;
    double taps = 1;
    for (const Json& size : *kernel) taps *= static_cast<double>(integer_of(size));
    const auto groups = static_cast<double>(row.groups);
    const bool forward = row.type == "Convolution";
    const TensorRow& moved = forward ? row.outputs[0] : row.inputs[0];
    const double channels = static_cast<double>(forward ? in[1] : out.size() < 2 ? 0 : out[1]) / groups;
    return integer_of(2 * static_cast<double>(moved.count()) * channels * taps);
  }
  const bool matmul = row.type == "MatrixMultiply" || row.type == "gemm" || row.type == "MatMul";
  return matmul && !in.empty()
             ? integer_of(2 * static_cast<double>(row.outputs[0].count()) * static_cast<double>(in.back()))
             : 0;
}

LayerRow layer_of(const Json& object) {
  LayerRow row;
  row.name = joined_name(text_at(object, "Name"));
  row.type = text_at(object, "ParameterType");
  if (row.type.empty()) row.type = text_at(object, "LayerType");
  if (text_at(object, "LayerType") == "CaskDeconvolutionV2") row.type = "Deconvolution";
  row.tactic = text_at(object, "TacticName");
  if (row.tactic.empty()) row.tactic = "TensorRT";
  row.origin = text_at(object, "Origin");
  row.nodes = nodes_in(text_at(object, "Metadata"));
  row.inputs = tensors_at(object, "Inputs");
  row.outputs = tensors_at(object, "Outputs");
  row.precision = precision_of(row);
  row.weight_bytes = weight_bytes_of(object);
  for (const std::vector<TensorRow>* side : {&row.inputs, &row.outputs})
    for (const TensorRow& tensor : *side) row.activation_bytes += tensor.bytes();
  row.groups = std::max<int64_t>(integer_at(object, "Groups"), 1);
  row.flops = flops_of(object, row);
  row.attributes = object.dump(-1, ' ', false, Json::error_handler_t::replace);
  return row;
}

/// What launches nothing of its own: marks of streams, constants, and layers of other profiles than the first.
bool is_left_out(const LayerRow& row) {
  static constexpr std::string_view kTypes[] = {"signal", "wait", "shape_call", "Constant", "NoOp"};
  const size_t profile = row.name.rfind("[profile ");
  const bool other = profile != std::string::npos && !row.name.substr(profile).starts_with("[profile 0]");
  return other || std::ranges::find(kTypes, row.type) != std::end(kTypes);
}

void name_apart(std::vector<LayerRow>& layers) {
  std::map<std::string, int> seen;
  for (LayerRow& row : layers)
    if (const int earlier = seen[row.name]++; earlier > 0) row.name += fmt::format("_{}", earlier);
}

void add_layer(EngineRows& engine, LayerRow row) {
  if (row.type == "NoOp" && row.inputs.size() == 1)
    for (const TensorRow& tensor : row.outputs) engine.views[tensor.name] = row.inputs[0].name;
  if (!is_left_out(row)) engine.layers.push_back(std::move(row));
}

/// Layers of the file are numbered with those that were left out; `before` says how many of ours stand before each.
void read_memory(const Json& graph, const std::vector<size_t>& before, EngineRows& engine) {
  const auto list = graph.find("Memory");
  if (list == graph.end() || !list->is_array() || engine.layers.empty()) return;
  const auto ours = [&](int64_t number) {
    const size_t at = std::min(static_cast<size_t>(std::max<int64_t>(number, 0)), before.size() - 1);
    return std::min(before[at], engine.layers.size() - 1);
  };
  for (const Json& each : *list) {
    if (!each.is_object()) continue;
    MemoryPlace place{text_at(each, "Tensor"), integer_at(each, "Offset"), integer_at(each, "Bytes"),
                      ours(integer_at(each, "First")), ours(integer_at(each, "Last"))};
    if (place.offset >= 0 && place.bytes > 0 && place.first <= place.last) engine.memory.push_back(std::move(place));
  }
}

void read_layers(const Json& graph, EngineRows& engine) {
  const auto list = graph.is_object() ? graph.find("Layers") : graph.end();
  if (!graph.is_object() || list == graph.end() || !list->is_array())
    throw Error("the layer information has no list \"Layers\"", "it is what trtexec writes with --exportLayerInfo");
  std::vector<size_t> before;
  for (const Json& layer : *list) {
    before.push_back(engine.layers.size());
    if (layer.is_string())
      throw Error("the layer information holds names alone",
                  "build the engine with --profilingVerbosity=detailed and export it again");
    if (!layer.is_object())
      throw Error(fmt::format("layer {} of the layer information is no object", engine.layers.size()));
    add_layer(engine, layer_of(layer));
  }
  name_apart(engine.layers);
  read_memory(graph, before, engine);
}

struct ProfileRow {
  std::string name;
  double average_ms, median_ms, share;
};

std::vector<ProfileRow> profile_rows(const Json& json) {
  std::vector<ProfileRow> rows;
  std::map<std::string, int> seen;
  for (const Json& each : json) {
    if (!each.is_object() || !each.contains("name")) continue;
    ProfileRow row{joined_name(text_at(each, "name")), amount_at(each, "averageMs"), amount_at(each, "medianMs"),
                   amount_at(each, "percentage")};
    if (const int earlier = seen[row.name]++; earlier > 0) row.name += fmt::format("_{}", earlier);
    rows.push_back(std::move(row));
  }
  return rows;
}

/// By name; where not all names are known but the counts agree, by place, as NVIDIA's tools do.
void add_times(std::vector<LayerRow>& layers, const std::vector<ProfileRow>& rows) {
  std::map<std::string, const ProfileRow*> by_name;
  for (const ProfileRow& row : rows) by_name[row.name] = &row;
  const auto is_known = [&](const LayerRow& layer) { return by_name.contains(layer.name); };
  const bool by_place = rows.size() == layers.size() && !std::ranges::all_of(layers, is_known);
  if (!by_place && !layers.empty() && std::ranges::none_of(layers, is_known))
    throw Error(fmt::format("the profile has {} layers and none of the {} names of the layer information", rows.size(),
                            layers.size()),
                "give files of the same engine");
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!by_place && !is_known(layers[i])) continue;
    const ProfileRow& row = by_place ? rows[i] : *by_name.at(layers[i].name);
    layers[i].average_ms = row.average_ms;
    layers[i].median_ms = row.median_ms > 0 ? row.median_ms : row.average_ms;
    layers[i].share = row.share;
  }
}

void read_profile(std::string_view text, EngineRows& engine) {
  const Json json = parsed(text, "profile");
  if (!json.is_array()) throw Error("the profile is no list", "it is what trtexec writes with --exportProfile");
  add_times(engine.layers, profile_rows(json));
  engine.profiled = true;
  if (!json.empty() && json[0].is_object()) engine.rounds = std::max<int64_t>(integer_at(json[0], "count"), 0);
}

void read_times(std::string_view text, EngineRows& engine) {
  const Json json = parsed(text, "list of times");
  if (!json.is_array()) throw Error("the times are no list", "they are what trtexec writes with --exportTimes");
  double begin = std::numeric_limits<double>::infinity(), end = 0;
  for (const Json& each : json) {
    if (!each.is_object() || !each.contains("latencyMs")) continue;
    engine.latencies.push_back(amount_at(each, "latencyMs"));
    begin = std::min(begin, amount_at(each, "startH2dMs"));
    end = std::max(end, amount_at(each, "endD2hMs"));
  }
  if (end > begin) engine.queries_per_second = static_cast<double>(engine.latencies.size()) / (end - begin) * 1e3;
}

}  // namespace

double EngineRows::total_ms() const {
  return std::accumulate(layers.begin(), layers.end(), 0.0,
                         [](double sum, const LayerRow& row) { return sum + row.average_ms; });
}

EngineRows read_engine(std::string title, std::string_view graph, std::string_view profile, std::string_view times) {
  EngineRows engine;
  engine.title = std::move(title);
  const Json json = parsed(graph, "layer information");
  read_layers(json, engine);
  std::map<std::string, TensorRow> known;
  for (const LayerRow& row : engine.layers)
    for (const std::vector<TensorRow>* side : {&row.inputs, &row.outputs})
      for (const TensorRow& tensor : *side) known.emplace(tensor.name, tensor);
  if (const auto bindings = json.find("Bindings"); bindings != json.end() && bindings->is_array())
    for (const Json& binding : *bindings)
      if (binding.is_string()) {
        const std::string name = binding.get<std::string>();
        const auto found = known.find(name);
        engine.bindings.push_back(found == known.end() ? TensorRow{name, "", {}, {}} : found->second);
      }
  if (!profile.empty()) read_profile(profile, engine);
  if (!times.empty()) read_times(times, engine);
  return engine;
}

}  // namespace hone
