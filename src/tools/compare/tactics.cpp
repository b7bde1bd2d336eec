// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/tactics.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/file.h"
#include "base/text.h"
#include "tools/common/plan_view.h"
#include "tools/companion/exit_status.h"

namespace hone {
namespace {

/// TensorRT's word, which Polygraphy writes; nothing for types that TensorRT does not have.
std::string_view tensorrt_word(DType type) {
  constexpr std::pair<DType, std::string_view> kWords[] = {
      {DType::f32, "FLOAT"},  {DType::f16, "HALF"},    {DType::bf16, "BF16"},    {DType::f8e4m3fn, "FP8"},
      {DType::f4e2m1, "FP4"}, {DType::f8e8m0, "E8M0"}, {DType::i8, "INT8"},      {DType::u8, "UINT8"},
      {DType::i32, "INT32"},  {DType::i64, "INT64"},   {DType::boolean, "BOOL"}, {DType::i4, "INT4"}};
  const auto* found = std::ranges::find(kWords, type, &std::pair<DType, std::string_view>::first);
  return found == std::end(kWords) ? std::string_view() : found->second;
}

/// Polygraphy's TensorInfo: a type, and strides where all sizes are known.
Json info_of(const hone_tensor& tensor) {
  const auto type = static_cast<DType>(tensor.dtype);
  const std::string_view word = tensorrt_word(type);
  if (word.empty()) return std::string(name_of(type));
  std::vector<int64_t> strides;
  const std::span dims(tensor.dims, static_cast<size_t>(tensor.rank));
  if (std::ranges::all_of(dims, [](int64_t size) { return size >= 0; })) {
    strides.assign(dims.size(), 1);
    for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  }
  return {{"dtype", fmt::format("DataType.{}", word)},
          {"strides", strides},
          {"vectorized_dim", nullptr},
          {"components_per_element", nullptr},
          {"polygraphy_class", "TensorInfo"}};
}

Json algorithm_of(const hone_plan* plan, size_t index, const hone_layer& layer) {
  Json inputs = Json::array(), outputs = Json::array();
  for (size_t k = 0; k < layer.inputs + layer.outputs; ++k)
    (k < layer.inputs ? inputs : outputs)
        .push_back(info_of(ask<hone_tensor>(hone_plan_layer_tensor, plan, 0, index, k)));
  return {{"implementation", layer.source},
          {"tactic", fmt::format("{} {}", layer.tactic, layer.parameters)},
          {"inputs", inputs},
          {"outputs", outputs},
          {"polygraphy_class", "Algorithm"}};
}

Json algorithms_of(const hone_plan* plan) {
  Json algorithms = Json::object();
  for (size_t i = 0; i < hone_plan_layers(plan, 0); ++i)
    if (const auto layer = ask<hone_layer>(hone_plan_layer, plan, 0, i); layer.is_view == 0)
      algorithms[layer.name] = algorithm_of(plan, i, layer);
  return algorithms;
}

std::string text_of(const Json& json) { return json.is_string() ? json.get<std::string>() : json.dump(); }

std::string info_text(const Json& info) {
  if (!info.is_object() || !info.contains("dtype") || !info["dtype"].is_string() || !info.contains("strides"))
    return text_of(info);
  return fmt::format("{}{}", info["dtype"].get<std::string>(), info["strides"].dump());
}

std::vector<std::string> texts_of(const Json& list) {
  std::vector<std::string> texts;
  if (list.is_array())
    for (const Json& each : list) texts.push_back(info_text(each));
  return texts;
}

TacticReplay replay_from(const Json& algorithms) {
  TacticReplay replay;
  for (const auto& [layer, entry] : algorithms.items()) {
    if (!entry.is_object()) continue;
    const auto text = [&entry = entry](const char* name) {
      return entry.contains(name) ? text_of(entry[name]) : std::string("?");
    };
    const auto list = [&entry = entry](const char* name) {
      return entry.contains(name) ? texts_of(entry[name]) : std::vector<std::string>();
    };
    replay[layer] = {text("implementation"), text("tactic"), list("inputs"), list("outputs")};
  }
  return replay;
}

Json read(const std::string& path) {
  need_file(path);
  try {
    Json json = parse_json(read_file(path), path);
    if (!member(json, "replay").is_object()) throw Error("'replay' is no object");
    return json;
  } catch (const Error& error) {
    throw StatusError(ExitStatus::no_file, fmt::format("{} is no tactic replay: {}", path, error.message()),
                      "hone run or hone debug build write one with --save-tactics");
  }
}

}  // namespace

std::string LayerTactic::text() const {
  return fmt::format("(Implementation: {}, Tactic: {}) | Inputs: ({}) | Outputs: ({})", implementation, tactic,
                     join(inputs, ", "), join(outputs, ", "));
}

TacticReplay replay_of(const hone_plan* plan) { return replay_from(algorithms_of(plan)); }

std::string tactics_json(const hone_plan* plan, hone_timing_cache* cache) {
  Json json{{"replay", algorithms_of(plan)}, {"polygraphy_class", "TacticReplayData"}};
  if (cache != nullptr) {
    const void* bytes = nullptr;
    size_t size = 0;
    check(hone_timing_cache_bytes(cache, &bytes, &size));
    json["times"] = std::string(static_cast<const char*>(bytes), size);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Owned<hone_timing_cache> replay_times(const std::string& path) {
  const Json json = read(path);
  if (!json.contains("times"))
    throw StatusError(ExitStatus::no_file, fmt::format("{} names tactics and holds no times to choose them by", path),
                      "a replay that hone wrote can be followed; those of other builders can be inspected alone");
  const std::string text = text_member(json, "times");
  return make<hone_timing_cache>(hone_timing_cache_create, static_cast<const void*>(text.data()), text.size());
}

TacticReplay read_replay(const std::string& path) { return replay_from(read(path)["replay"]); }

}  // namespace hone
