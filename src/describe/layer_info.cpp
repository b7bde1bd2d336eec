// SPDX-License-Identifier: Apache-2.0
//
// Every layer becomes one JSON object with ordered members; the log's form is printed from the same object.
#include "describe/layer_info.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "plan/memory.h"
#include "report/text.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

int64_t size_at(const Dim& dim, const SymbolValues& symbols) { return dim.substitute(symbols).constant().value_or(-1); }

Json tensor_object(const BufferSlot& buffer, std::string_view location, const SymbolValues& symbols) {
  Json object;
  object["Name"] = buffer.name;
  object["Location"] = location;
  Json& dims = object["Dimensions"] = Json::array();
  for (const Dim& dim : buffer.type.shape) dims.push_back(size_at(dim, symbols));
  object["Format/Datatype"] = type_word(buffer.type.dtype);
  if (buffer.type.layout != Layout::linear) object["Layout"] = name_of(buffer.type.layout);
  return object;
}

Json value_object(const AttrValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, Tensor>)
          return Json{{"Type", type_word(held.dtype())}, {"Count", held.size()}};
        else if constexpr (std::is_same_v<Held, std::string>)
          return held.starts_with('{') ? Json::parse(held, nullptr, false) : Json(held);
        else return Json(held);
      },
      value);
}

/// Counts become objects with their type, as the original has them; what an engine without these features always says is added.
Attrs spelled_details(const Profile& profile, const Step& step) {
  Attrs details = step.details;
  const std::string type(
      step.inputs.empty() ? "Float" : type_word(profile.buffers[static_cast<size_t>(step.inputs[0])].type.dtype));
  for (const auto& [count, name] : {std::pair{"WeightsCount", "Weights"}, std::pair{"BiasCount", "Bias"}}) {
    if (!details.has(count)) continue;
    details.set(name, fmt::format(R"({{"Type": "{}", "Count": {}}})", type, details.integer(count)));
    details.erase(count);
  }
  if (step.kind != "Convolution") return details;
  for (const char* name : {"HasSparseWeights", "HasDynamicFilter", "HasDynamicBias"})
    if (!details.has(name)) details.set(name, int64_t{0});
  for (const char* name : {"ConvXAsActInputIdx", "BiasAsActInputIdx", "ResAsActInputIdx"})
    if (!details.has(name)) details.set(name, int64_t{-1});
  return details;
}

/// Members in the order of the original; what a layer has besides follows by name.
void add_details(Json& object, const Attrs& details) {
  static constexpr std::string_view kOrder[] = {"Kernel",
                                                "PoolingType",
                                                "WindowSize",
                                                "PaddingMode",
                                                "PrePadding",
                                                "PostPadding",
                                                "Stride",
                                                "Dilation",
                                                "OutMaps",
                                                "Groups",
                                                "Weights",
                                                "Bias",
                                                "HasBias",
                                                "HasReLU",
                                                "HasSparseWeights",
                                                "HasDynamicFilter",
                                                "HasDynamicBias",
                                                "HasResidual",
                                                "ConvXAsActInputIdx",
                                                "BiasAsActInputIdx",
                                                "ResAsActInputIdx",
                                                "Activation",
                                                "BlendFactor",
                                                "AverageCountExcludesPadding",
                                                "Origin"};
  for (const std::string_view name : kOrder)
    if (const AttrValue* value = details.find(name)) object[std::string(name)] = value_object(*value);
  for (const auto& [name, value] : details)
    if (std::ranges::find(kOrder, name) == std::end(kOrder)) object[name] = value_object(value);
}

/// "cpu" and "Convolution" give "CpuConvolution".
std::string layer_type(const Step& step) {
  if (step.code < 0) return "NoOp";
  if (step.kind == "Reformat" || step.source.empty()) return step.kind;
  std::string type = step.source;
  type[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(type[0])));
  return type + step.kind;
}

Json layer_object(const Plan& plan, const Profile& profile, const Step& step, const SymbolValues& symbols) {
  const std::string_view location = plan.meta.backend == "cuda" ? "Device" : "Host";
  Json object;
  object["Name"] = step.name;
  object["LayerType"] = layer_type(step);
  for (const auto& [key, ids] : {std::pair{"Inputs", &step.inputs}, std::pair{"Outputs", &step.outputs}}) {
    Json& tensors = object[key] = Json::array();
    for (const BufferId id : *ids) {
      const BufferSlot& slot = profile.buffers[static_cast<size_t>(id)];
      tensors.push_back(tensor_object(slot, slot.managed ? "Host" : location, symbols));
    }
  }
  if (step.code >= 0) {
    object["ParameterType"] = step.kind;
    add_details(object, spelled_details(profile, step));
    std::string params = step.tactic_params.print();
    std::erase(params, ' ');
    object["TacticName"] = params.empty() ? fmt::format("{}.{}", step.source, step.tactic)
                                          : fmt::format("{}.{}({})", step.source, step.tactic, params);
    object["TacticValue"] = fmt::format("0x{:016x}", hash64(tactic_text(plan, step)));
  }
  object["StreamId"] = 0;
  std::string metadata;
  for (const std::string& node : step.origin) metadata += fmt::format("[ONNX Layer: {}]", node);
  object["Metadata"] = metadata;
  return object;
}

/// Text without quotes; objects of tensors in braces; other values as JSON.
std::string line_value(const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (key != "Inputs" && key != "Outputs") {
    if (!value.is_object()) return dump(value);
    std::vector<std::string> members;
    for (const auto& [name, member] : value.items())
      members.push_back(fmt::format("{}: {}", json_text(name), dump(member)));
    return "{" + join(members, ", ") + "}";
  }
  std::vector<std::string> tensors;
  for (const Json& tensor : value) {
    std::vector<std::string> members;
    for (const auto& [name, member] : tensor.items()) members.push_back(name + ": " + line_value(name, member));
    tensors.push_back("{ " + join(members, ", ") + " }");
  }
  return "[ " + join(tensors, ", ") + "]";
}

std::string line_of(const Json& layer) {
  std::vector<std::string> members;
  for (const auto& [name, value] : layer.items()) members.push_back(name + ": " + line_value(name, value));
  return join(members, ", ");
}

/// Strings, objects or nothing, as the engine's verbosity says.
std::vector<Json> layers_of(const Plan& plan, size_t profile, const SymbolValues& symbols, std::string_view verbosity) {
  std::vector<Json> layers;
  if (verbosity == "none") return layers;
  const bool detailed = verbosity == "detailed";
  for (const Step& step : plan.profiles[profile].steps)
    layers.push_back(detailed ? layer_object(plan, plan.profiles[profile], step, symbols) : Json(step.name));
  return layers;
}

/// The model's nodes that no layer stands for: with the layers' metadata, all nodes that matter.
std::vector<Json> folded_nodes(const Plan& plan) {
  std::vector<Json> nodes;
  for (const FoldedNode& folded : plan.folded) nodes.push_back({{"Node", folded.node}, {"Pass", folded.pass}});
  return nodes;
}

/// Ends of stages: steps of one share an arena.
std::vector<size_t> stage_ends(const Profile& profile) {
  std::vector<size_t> ends;
  for (size_t i = 0; i < profile.steps.size(); ++i)
    if (i + 1 == profile.steps.size() || profile.steps[i].stage != profile.steps[i + 1].stage) ends.push_back(i + 1);
  return ends;
}

/// Bytes of a buffer at these sizes; nothing where they are not known before an inference.
std::optional<int64_t> bytes_of(const BufferSlot& slot, const SymbolValues& symbols) {
  if (is_object(slot.type.dtype) || !slot.type.ranked) return std::nullopt;
  Dims dims;
  for (const Dim& dim : slot.most.value_or(slot.type.shape)) dims.push_back(size_at(dim, symbols));
  if (std::ranges::any_of(dims, [](int64_t size) { return size < 0; })) return std::nullopt;
  return byte_size(slot.type.dtype, dims, slot.type.layout);
}

/// Where tensors lie in the memory that a context holds, as the runtime places them at these sizes, each from its first layer to its
/// last; what kernels work in comes behind. A stage with a size that is not known places nothing here.
std::vector<Json> memory_places(const Plan& plan, size_t number, const SymbolValues& symbols) {
  std::vector<Json> places;
  const Profile& profile = plan.profiles[number];
  size_t begin = 0;
  for (const size_t end : stage_ends(profile)) {
    Lifetimes live = lifetimes(profile, begin, end);
    std::vector<std::string> names(live.requests.size());
    bool known = true;
    for (size_t id = 0; id < profile.buffers.size(); ++id)
      if (const int32_t request = live.request_of_buffer[id]; request >= 0) {
        const std::optional<int64_t> bytes = bytes_of(profile.buffers[id], symbols);
        known = known && bytes;
        int64_t& most = live.requests[static_cast<size_t>(request)].bytes;
        most = std::max(most, bytes.value_or(0));
        if (names[static_cast<size_t>(request)].empty()) names[static_cast<size_t>(request)] = profile.buffers[id].name;
      }
    const MemoryPlan placed = plan_memory(live.requests);
    for (size_t i = 0; known && i < live.requests.size(); ++i) {
      const MemoryRequest& request = live.requests[i];
      const auto last =
          std::min(request.last, static_cast<int32_t>(end) - 1);  // what later stages read lives to the end of its own
      places.push_back({{"Tensor", names[i]},
                        {"Offset", placed.offsets[i]},
                        {"Bytes", request.bytes},
                        {"First", request.first},
                        {"Last", last}});
    }
    begin = end;
  }
  return places;
}

/// One record per line: people use grep.
std::string array_text(const std::vector<Json>& records) {
  std::vector<std::string> texts;
  for (const Json& record : records) texts.push_back(dump(record));
  return "[" + join(texts, "\n,") + (texts.empty() ? "]" : "\n]");
}

std::string info_json(const Plan& plan, size_t profile, const SymbolValues& symbols, std::string_view verbosity) {
  std::vector<Json> bindings;
  for (const IoTensor& io : plan.io) bindings.emplace_back(io.name);
  std::string more;
  if (verbosity == "detailed")
    more = fmt::format(",\n\"Folded\": {},\n\"Memory\": {}", array_text(folded_nodes(plan)),
                       array_text(memory_places(plan, profile, symbols)));
  return fmt::format("{{\"Layers\": {},\n\"Bindings\": {}{}}}\n",
                     array_text(layers_of(plan, profile, symbols, verbosity)), array_text(bindings), more);
}

}  // namespace

SymbolValues symbols_at(const Plan& plan, const std::map<std::string, Dims>& input_shapes) {
  SymbolValues symbols;
  for (const IoTensor& io : plan.io) {
    const auto found = input_shapes.find(io.name);
    if (!io.is_input || found == input_shapes.end() || found->second.size() != io.type.shape.rank()) continue;
    for (size_t axis = 0; axis < found->second.size(); ++axis) {
      std::set<std::string> names;
      io.type.shape[axis].collect_symbols(names);
      if (names.size() == 1 && io.type.shape[axis] == Dim::symbol(*names.begin()))
        symbols[*names.begin()] = found->second[axis];
    }
  }
  return symbols;
}

std::string layer_info_json(const Plan& plan, size_t profile, const SymbolValues& symbols) {
  return info_json(plan, profile, symbols, plan.meta.profiling_verbosity);
}
std::string detailed_layer_info_json(const Plan& plan, size_t profile, const SymbolValues& symbols) {
  return info_json(plan, profile, symbols, "detailed");
}

std::vector<std::string> layer_info_lines(const Plan& plan, size_t profile, const SymbolValues& symbols) {
  std::vector<std::string> lines;
  for (const Json& layer : layers_of(plan, profile, symbols, plan.meta.profiling_verbosity))
    lines.push_back(layer.is_string() ? layer.get<std::string>() : line_of(layer));
  lines.emplace_back("Bindings:");
  for (const IoTensor& io : plan.io) lines.push_back(io.name);
  return lines;
}

}  // namespace hone
