// SPDX-License-Identifier: Apache-2.0
//
// What trtexec's reports say of a plan, as texts.
#include "base/text.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/tensor.h"
#include "capi/tools/profile.h"
#include "describe/explain.h"
#include "describe/layer_info.h"
#include "describe/precision.h"

using hone::capi::ArgumentError;
using hone::capi::fill;
using hone::capi::guarded;
using hone::capi::profile_of;
using hone::capi::require;
using hone::capi::require_index;

namespace {

std::map<std::string, hone::Dims> shapes_of(const hone_shape* shapes, size_t count) {
  std::map<std::string, hone::Dims> result;
  if (count == 0) return result;
  require(shapes, "shapes");
  const auto* at = reinterpret_cast<const std::byte*>(shapes);
  for (size_t i = 0; i < count; ++i, at += shapes->size) {
    const hone_shape shape = hone::capi::taken(reinterpret_cast<const hone_shape*>(at), "shapes");
    require(shape.input, "shapes->input");
    result[shape.input] = hone::capi::dims_of(shape.dims, shape.rank);
  }
  return result;
}

std::string layers_text(const hone::Plan& plan, size_t profile, const hone::SymbolValues& symbols,
                        hone_layers_form form) {
  if (form == HONE_LAYERS_JSON) return hone::layer_info_json(plan, profile, symbols);
  if (form == HONE_LAYERS_JSON_DETAILED) return hone::detailed_layer_info_json(plan, profile, symbols);
  return hone::join(hone::layer_info_lines(plan, profile, symbols), "\n");
}

}  // namespace

hone_status hone_plan_layers_text(const hone_plan* plan, int profile, const hone_shape* shapes, size_t count,
                                  hone_layers_form form, const char** text) {
  return guarded([&] {
    profile_of(plan, profile);
    require(text, "text");
    if (form < HONE_LAYERS_JSON || form > HONE_LAYERS_LINES)
      throw ArgumentError(fmt::format("there is no form {}", static_cast<int>(form)));
    const hone::SymbolValues symbols = hone::symbols_at(*plan->plan, shapes_of(shapes, count));
    std::string key = fmt::format("layers {} {}", profile, static_cast<int>(form));
    for (const auto& [symbol, value] : symbols) key += fmt::format(" {}={}", symbol, value);
    *text =
        plan->texts->kept(key, [&] { return layers_text(*plan->plan, static_cast<size_t>(profile), symbols, form); });
  });
}

hone_status hone_plan_explain(const hone_plan* plan, const char* layer, const char** text) {
  return guarded([&] {
    require(plan, "plan");
    require(text, "text");
    const std::string of = layer == nullptr ? "" : layer;
    *text = plan->texts->kept("explain " + of, [&] { return hone::join(hone::explain_lines(*plan->plan, of), "\n"); });
  });
}

hone_status hone_plan_profile(const hone_plan* plan, int profile, hone_profile* info) {
  return guarded([&] {
    const hone::Profile& of = profile_of(plan, profile);
    fill(info, "info",
         hone_profile{.precision = plan->texts->kept(fmt::format("precision {}", profile),
                                                     [&] { return hone::precision_text(of); }),
                      .memory_bytes = of.arena_bytes,
                      .ranges = of.ranges.size()});
  });
}

hone_status hone_plan_range(const hone_plan* plan, int profile, size_t index, hone_range* range) {
  return guarded([&] {
    const hone::Profile& of = profile_of(plan, profile);
    require_index(index, of.ranges.size(), "range");
    const hone::ProfileRange& known = of.ranges[index];
    hone_range result{.input = known.tensor.c_str()};
    hone::capi::copy_dims(known.min, result.min, &result.rank);
    hone::capi::copy_dims(known.opt, result.opt, &result.rank);
    hone::capi::copy_dims(known.max, result.max, &result.rank);
    fill(range, "range", result);
  });
}

const char* hone_plan_note(const hone_plan* plan, const char* key) {
  const char* note = nullptr;
  guarded([&] {
    require(plan, "plan");
    require(key, "key");
    const auto& notes = plan->plan->meta.notes;
    if (const auto found = notes.find(key); found != notes.end()) note = found->second.c_str();
  });
  return note;
}

hone_status hone_plan_throughput(const hone_plan* plan, hone_throughput* found) {
  return guarded([&] {
    require(plan, "plan");
    const hone::PlanThroughput known = plan->plan->throughput.value_or(hone::PlanThroughput{.streams = 0, .rows = 0});
    fill(found, "found",
         hone_throughput{.streams = known.streams,
                         .workers = known.workers,
                         .rows = known.rows,
                         .rows_per_second = known.rows_per_second,
                         .median_ms = known.median_ms,
                         .p99_ms = known.p99_ms});
  });
}

hone_status hone_plan_create_with_throughput(const hone_plan* plan, const hone_throughput* found, hone_plan** made) {
  return guarded([&] {
    require(plan, "plan");
    require(made, "made");
    const hone_throughput given = hone::capi::taken(found, "found");
    hone::Plan copy = *plan->plan;
    copy.throughput = hone::PlanThroughput{.streams = given.streams,
                                           .workers = given.workers,
                                           .rows = given.rows,
                                           .rows_per_second = given.rows_per_second,
                                           .median_ms = given.median_ms,
                                           .p99_ms = given.p99_ms};
    hone::verify(copy);
    *made = new hone_plan(std::move(copy));
  });
}

hone_status hone_plan_layers_json(const hone_plan* plan, int profile, const char** json) {
  return guarded([&] {
    require(json, "json");
    if (hone_plan_layers_text(plan, profile, nullptr, 0, HONE_LAYERS_JSON, json) != HONE_OK)
      throw hone::capi::last_failure();
  });
}
