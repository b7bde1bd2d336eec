// SPDX-License-Identifier: Apache-2.0
//
// What the C interface tells of a plan: layers, tactics, candidates, weights.
#include <algorithm>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/tensor.h"
#include "capi/tools/profile.h"
#include "plan/size.h"
#include "tensor/json.h"

using hone::capi::fill;
using hone::capi::guarded;
using hone::capi::profile_of;
using hone::capi::require;
using hone::capi::require_index;

namespace {

const hone::Step& step_of(const hone_plan* plan, int profile, size_t layer) {
  const hone::Profile& of = profile_of(plan, profile);
  require_index(layer, of.steps.size(), "layer");
  return of.steps[layer];
}

/// Null where the plan keeps none. The records of all profiles stand behind each other, and reformats have none, so that a layer of a
/// later profile is found behind those of the earlier ones.
const hone::LayerRecord* record_of(const hone_plan& plan, int profile, size_t layer) {
  const hone::Plan& of = *plan.plan;
  int passed = 0;
  const std::string& wanted = of.profiles[static_cast<size_t>(profile)].steps[layer].name;
  for (const hone::LayerRecord& record : of.log)
    if (record.layer == wanted && passed++ == profile) return &record;
  return nullptr;
}

int64_t weight_bytes(const hone::Plan& plan) {
  int64_t bytes = 0;
  for (const hone::Tensor& constant : plan.constants) bytes += static_cast<int64_t>(constant.bytes().size());
  return bytes;
}

}  // namespace

hone_status hone_plan_describe(const hone_plan* plan, hone_plan_info* info) {
  return guarded([&] {
    require(plan, "plan");
    const hone::Plan& of = *plan->plan;
    std::call_once(plan->size_found, [&] {
      plan->file_bytes = plan->bytes_read != 0 ? plan->bytes_read : static_cast<int64_t>(hone::plan_file_bytes(of));
    });
    fill(info, "info",
         hone_plan_info{.version = of.meta.hone_version.c_str(),
                        .device_kind = of.meta.backend.c_str(),
                        .device = of.meta.device.c_str(),
                        .architecture = of.meta.architecture.c_str(),
                        .model = of.meta.model.c_str(),
                        .precision = of.meta.precision.c_str(),
                        .options = of.meta.options.c_str(),
                        .profiles = of.profiles.size(),
                        .refittable = of.refit.has_value(),
                        .has_weights = of.weights != hone::WeightStorage::nowhere,
                        .weight_bytes = weight_bytes(of),
                        .file_bytes = plan->file_bytes,
                        .saves_weights = of.weights == hone::WeightStorage::everywhere,
                        .portable = of.portable.has_value()});
  });
}

size_t hone_plan_layers(const hone_plan* plan, int profile) {
  size_t count = 0;
  guarded([&] { count = profile_of(plan, profile).steps.size(); });
  return count;
}

hone_status hone_plan_layer(const hone_plan* plan, int profile, size_t index, hone_layer* layer) {
  return guarded([&] {
    const hone::Step& step = step_of(plan, profile, index);
    const hone::LayerRecord* record = record_of(*plan, profile, index);
    const std::string key = fmt::format("{} {} ", profile, index);
    fill(layer, "layer",
         hone_layer{.name = step.name.c_str(),
                    .kind = step.kind.c_str(),
                    .source = step.source.c_str(),
                    .tactic = step.tactic.c_str(),
                    .parameters =
                        plan->texts->kept(key + "parameters", [&] { return hone::to_json(step.tactic_params).dump(); }),
                    .details = plan->texts->kept(key + "details", [&] { return hone::to_json(step.details).dump(); }),
                    .is_view = step.code < 0,
                    .tuned_ms = step.tuned_ms,
                    .nodes = step.origin.size(),
                    .inputs = step.inputs.size(),
                    .outputs = step.outputs.size(),
                    .candidates = record == nullptr ? 0 : record->candidates.size(),
                    .flops = step.details.integer_or("Flops", 0),
                    .bytes = step.details.integer_or("Bytes", 0)});
  });
}

hone_status hone_plan_layer_node(const hone_plan* plan, int profile, size_t layer, size_t index, const char** node) {
  return guarded([&] {
    const hone::Step& step = step_of(plan, profile, layer);
    require(node, "node");
    require_index(index, step.origin.size(), "node");
    *node = step.origin[index].c_str();
  });
}

hone_status hone_plan_layer_tensor(const hone_plan* plan, int profile, size_t layer, size_t index,
                                   hone_tensor* tensor) {
  return guarded([&] {
    const hone::Step& step = step_of(plan, profile, layer);
    require_index(index, step.inputs.size() + step.outputs.size(), "tensor");
    const bool is_input = index < step.inputs.size();
    const hone::BufferId id = is_input ? step.inputs[index] : step.outputs[index - step.inputs.size()];
    const hone::BufferSlot& slot = profile_of(plan, profile).buffers[static_cast<size_t>(id)];
    hone::capi::describe(slot.name, slot.type, is_input, slot.managed, tensor);
  });
}

hone_status hone_plan_layer_candidate(const hone_plan* plan, int profile, size_t layer, size_t index,
                                      hone_candidate* candidate) {
  return guarded([&] {
    step_of(plan, profile, layer);
    const hone::LayerRecord* record = record_of(*plan, profile, layer);
    require_index(index, record == nullptr ? 0 : record->candidates.size(), "candidate");
    const hone::CandidateRecord& known = record->candidates[index];
    fill(candidate, "candidate",
         hone_candidate{.tactic = known.tactic.c_str(),
                        .ms = known.ms,
                        .spread = known.spread,
                        .note = known.note.c_str(),
                        .chosen = known.tactic == record->chosen});
  });
}

size_t hone_plan_folded_nodes(const hone_plan* plan) {
  size_t count = 0;
  guarded([&] {
    require(plan, "plan");
    count = plan->plan->folded.size();
  });
  return count;
}

hone_status hone_plan_folded_node(const hone_plan* plan, size_t index, const char** node, const char** pass) {
  return guarded([&] {
    require(plan, "plan");
    require(node, "node");
    require(pass, "pass");
    require_index(index, plan->plan->folded.size(), "folded node");
    *node = plan->plan->folded[index].node.c_str();
    *pass = plan->plan->folded[index].pass.c_str();
  });
}

size_t hone_plan_weights(const hone_plan* plan) {
  size_t count = 0;
  guarded([&] {
    require(plan, "plan");
    count = plan->plan->refit ? plan->plan->refit->list.size() : 0;
  });
  return count;
}

hone_status hone_plan_weight(const hone_plan* plan, size_t index, const char** node, const char** role) {
  return guarded([&] {
    require(plan, "plan");
    require(node, "node");
    require(role, "role");
    require_index(index, hone_plan_weights(plan), "weight");
    *node = plan->plan->refit->list[index].layer.c_str();
    *role = plan->plan->refit->list[index].role.c_str();
  });
}
