// SPDX-License-Identifier: Apache-2.0
#include "tools/surgeon/shard_hints.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "tensor/json.h"
#include "tools/companion/exit_status.h"

namespace hone {
namespace {

constexpr std::string_view kReductions[] = {"sum", "prod", "min", "max", "avg"};

Json number_json(const std::optional<int64_t>& number) { return number ? Json(*number) : Json(nullptr); }

Json tensors_json(const std::vector<edit::ShardedTensor>& tensors) {
  Json list = Json::array();
  for (const edit::ShardedTensor& each : tensors)
    list.push_back({{"name", each.name},
                    {"seq_len_idx", each.axis},
                    {"rank", number_json(each.rank)},
                    {"polygraphy_class", "ShardTensor"}});
  return list;
}

Json fused_json(const std::optional<edit::FusedAttention>& fused) {
  if (!fused) return nullptr;
  const auto order = [](const std::vector<int64_t>& shuffle) {
    return shuffle.empty() ? Json(nullptr) : Json(shuffle);
  };
  return {{"is_causal", fused->causal},
          {"q_shuffle", order(fused->q_shuffle)},
          {"k_shuffle", order(fused->k_shuffle)},
          {"v_shuffle", order(fused->v_shuffle)},
          {"nb_rank", fused->ranks},
          {"polygraphy_class", "FusedAttention"}};
}

bool given(const Json& object, std::string_view name) { return object.contains(name) && !object[name].is_null(); }

std::optional<int64_t> number_of(const Json& object, std::string_view name) {
  return given(object, name) ? std::optional(integer_member(object, name)) : std::nullopt;
}
bool flag_of(const Json& object, std::string_view name) {
  const Json& flag = member(object, name);
  if (!flag.is_boolean()) throw Error(fmt::format("'{}' is neither true nor false", name));
  return flag.get<bool>();
}
std::vector<int64_t> numbers_of(const Json& object, std::string_view name) {
  std::vector<int64_t> numbers;
  if (!given(object, name)) return numbers;
  for (const Json& each : list_member(object, name)) {
    if (!each.is_number_integer()) throw Error(fmt::format("'{}' holds what is no integer", name));
    numbers.push_back(each.get<int64_t>());
  }
  return numbers;
}

std::vector<edit::ShardedTensor> tensors_of(const Json& object, std::string_view name) {
  std::vector<edit::ShardedTensor> tensors;
  for (const Json& each : list_member(object, name))
    tensors.push_back({text_member(each, "name"), integer_member(each, "seq_len_idx"), number_of(each, "rank")});
  return tensors;
}

edit::ShardedAttention layer_of(const Json& json) {
  edit::ShardedAttention layer{text_member(json, "q"), flag_of(json, "gather_kv"), flag_of(json, "gather_q"), {}};
  if (!given(json, "replace")) return layer;
  const Json& fused = json["replace"];
  layer.replace =
      edit::FusedAttention{flag_of(fused, "is_causal"), numbers_of(fused, "q_shuffle"), numbers_of(fused, "k_shuffle"),
                           numbers_of(fused, "v_shuffle"), number_of(fused, "nb_rank").value_or(1)};
  return layer;
}

edit::ShardHints hints_of(const Json& json) {
  if (const std::string parallelism = text_member(json, "parallelism"); parallelism != "CP")
    throw UsageError(fmt::format("the hints ask for {} parallelism, which is not built", parallelism),
                     "CP, context parallelism, is");
  const Json& with = member(json, "dist_collectives");
  edit::ShardHints hints;
  for (const Json& layer : list_member(json, "attention_layers")) hints.layers.push_back(layer_of(layer));
  hints.collective = {integer_member(with, "group_size"), integer_member(with, "root"), integer_member(with, "nb_rank"),
                      numbers_of(with, "groups"), text_member(with, "reduce_op")};
  check_reduction(hints.collective.reduce);
  hints.inputs = tensors_of(json, "inputs");
  hints.outputs = tensors_of(json, "outputs");
  hints.k_axis = integer_member(json, "k_seq_len_idx");
  hints.v_axis = integer_member(json, "v_seq_len_idx");
  hints.kv_rank = number_of(json, "kv_rank");
  return hints;
}

}  // namespace

void check_reduction(const std::string& word) {
  if (std::ranges::find(kReductions, word) == std::end(kReductions))
    throw UsageError(fmt::format("there is no reduction called {}", word), join(kReductions, ", "));
}

std::string hints_text(const edit::ShardHints& hints) {
  Json layers = Json::array();
  for (const edit::ShardedAttention& layer : hints.layers)
    layers.push_back({{"q", layer.q},
                      {"gather_kv", layer.gather_kv},
                      {"gather_q", layer.gather_q},
                      {"replace", fused_json(layer.replace)},
                      {"polygraphy_class", "AttentionLayerHint"}});
  const edit::Collective& with = hints.collective;
  const Json json{{"parallelism", "CP"},
                  {"attention_layers", layers},
                  {"dist_collectives",
                   {{"group_size", with.group_size},
                    {"root", with.root},
                    {"nb_rank", with.ranks},
                    {"reduce_op", with.reduce},
                    {"groups", with.groups},
                    {"polygraphy_class", "DistCollective"}}},
                  {"inputs", tensors_json(hints.inputs)},
                  {"outputs", tensors_json(hints.outputs)},
                  {"k_seq_len_idx", hints.k_axis},
                  {"v_seq_len_idx", hints.v_axis},
                  {"kv_rank", number_json(hints.kv_rank)},
                  {"polygraphy_class", "ShardHints"}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

edit::ShardHints read_hints(const std::string& path) {
  need_file(path);
  try {
    return hints_of(parse_json(read_file(path), path));
  } catch (const StatusError&) {
    throw;
  } catch (const Error& error) {
    throw StatusError(ExitStatus::no_file, fmt::format("{} holds no hints: {}", path, error.message()),
                      "hone template shard-hints writes them");
  }
}

}  // namespace hone
