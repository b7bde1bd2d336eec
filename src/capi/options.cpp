// SPDX-License-Identifier: Apache-2.0
//
// The C interface's build options: flags, profiles, constraints, progress, timing caches.
#include <algorithm>
#include <array>

#include "base/error_text.h"
#include "builder/knobs.h"
#include "capi/build_handles.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/tensor.h"
#include "options/parse.h"

using hone::capi::ArgumentError;
using hone::capi::dims_of;
using hone::capi::guarded;
using hone::capi::require;

namespace {

hone::BuildOptions parse_options(const char* const* arguments, size_t count) {
  std::vector<std::string> texts{"--onnx=model"};
  for (size_t i = 0; i < count; ++i) {
    require(arguments[i], "an argument");
    texts.emplace_back(arguments[i]);
  }
  hone::CommandLine line = hone::parse_command_line(texts);
  if (!line.errors.empty()) throw hone::parse_error(line.errors.front());
  return std::move(line.options.build);
}

}  // namespace

hone_status hone_options_create(const char* const* arguments, size_t count, hone_options** options) {
  return guarded([&] {
    require(options, "options");
    if (count > 0) require(arguments, "arguments");
    auto made = std::make_unique<hone_options>();
    made->build = parse_options(arguments, count);
    *options = made.release();
  });
}

hone_status hone_options_add_profile(hone_options* options, int* profile) {
  return guarded([&] {
    require(options, "options");
    require(profile, "profile");
    std::vector<hone::ProfileOptions>& profiles = options->build.profiles;
    if (!std::exchange(options->own_profiles, true)) profiles.clear();
    *profile = static_cast<int>(profiles.size());
    profiles.emplace_back();
  });
}

hone_status hone_options_set_range(hone_options* options, int profile, const char* input, const int64_t* min,
                                   const int64_t* opt, const int64_t* max, int rank) {
  return guarded([&] {
    require(options, "options");
    require(input, "input");
    require(min, "min");
    require(opt, "opt");
    require(max, "max");
    const int count = options->own_profiles ? static_cast<int>(options->build.profiles.size()) : 0;
    if (profile < 0 || profile >= count)
      throw ArgumentError(fmt::format("profile is {}, {} have been added", profile, count),
                          "hone_options_add_profile() adds one");
    const hone::ShapeRange range{dims_of(min, rank), dims_of(opt, rank), dims_of(max, rank)};
    for (size_t axis = 0; axis < range.min.size(); ++axis)
      HONE_CHECK(range.min[axis] <= range.opt[axis] && range.opt[axis] <= range.max[axis],
                 "axis {} of input {}: min {}, opt {} and max {} do not ascend", axis, input, range.min[axis],
                 range.opt[axis], range.max[axis]);
    options->build.profiles[static_cast<size_t>(profile)][input] = range;
  });
}

hone_status hone_options_set_layer_type(hone_options* options, const char* node, const char* type) {
  return guarded([&] {
    require(options, "options");
    require(node, "node");
    require(type, "type");
    constexpr std::array<std::string_view, 4> kTypes = {"fp32", "fp16", "bf16", "int8"};
    if (std::ranges::find(kTypes, std::string_view(type)) == kTypes.end())
      throw hone::Error(fmt::format("layers compute in no type {}", type), "fp32, fp16, bf16 or int8");
    options->build.layer_types.emplace_back(node, type);
  });
}

hone_status hone_options_set_format(hone_options* options, const char* tensor, const char* format) {
  return guarded([&] {
    require(options, "options");
    require(tensor, "tensor");
    require(format, "format");
    const std::string flag = std::string("--inputIOFormats=") + format;
    const char* const flags[] = {flag.c_str()};
    const std::vector<hone::IoFormat> read = parse_options(flags, 1).input_formats;
    if (read.size() != 1)
      throw hone::Error(fmt::format("'{}' is not the format of one tensor", format), "fp16:hwc is one");
    options->formats[tensor] = read.front();
  });
}

hone_status hone_options_set_timing_cache(hone_options* options, hone_timing_cache* cache) {
  return guarded([&] {
    require(options, "options");
    if (cache != nullptr) require(cache, "cache");
    options->cache = cache == nullptr ? nullptr : cache->cache;
  });
}

hone_status hone_options_set_progress(hone_options* options, const hone_progress* progress) {
  return guarded([&] {
    require(options, "options");
    options->progress = progress == nullptr ? hone_progress{} : hone::capi::taken(progress, "progress");
  });
}

hone_status hone_options_set_timed_function(hone_options* options, hone_timed_fn function, void* user) {
  return guarded([&] {
    require(options, "options");
    options->timed = function;
    options->timed_user = user;
  });
}

size_t hone_knobs(void) { return hone::build_knobs().size(); }

hone_status hone_knob_describe(size_t index, hone_knob* knob) {
  return guarded([&] {
    const std::vector<hone::Knob>& knobs = hone::build_knobs();
    hone::capi::require_index(index, knobs.size(), "knob");
    static const std::vector<std::vector<const char*>> kValues = [] {
      std::vector<std::vector<const char*>> all;
      for (const hone::Knob& each : hone::build_knobs())
        for (const std::string& value : (all.emplace_back(), each.values)) all.back().push_back(value.c_str());
      return all;
    }();
    hone::capi::fill(knob, "knob",
                     hone_knob{.name = knobs[index].name.c_str(),
                               .values = kValues[index].data(),
                               .value_count = kValues[index].size(),
                               .standard = knobs[index].standard.c_str(),
                               .help = knobs[index].help.c_str()});
  });
}

hone_status hone_options_set_knob(hone_options* options, const char* knob, const char* value) {
  return guarded([&] {
    require(options, "options");
    require(knob, "knob");
    require(value, "value");
    hone::turn_knob(options->build, knob, value);
  });
}

hone_status hone_options_mark_debug(hone_options* options, const char* tensor) {
  return guarded([&] {
    require(options, "options");
    require(tensor, "tensor");
    options->build.debug_tensors.emplace_back(tensor);
  });
}

hone_status hone_options_set_note(hone_options* options, const char* key, const char* text) {
  return guarded([&] {
    require(options, "options");
    require(key, "key");
    require(text, "text");
    options->notes.insert_or_assign(key, text);
  });
}

hone_status hone_options_set_sample(hone_options* options, const char* input, const hone_value* value) {
  return guarded([&] {
    require(options, "options");
    require(input, "input");
    require(value, "value");
    options->sample.insert_or_assign(input, value->tensor);
  });
}

hone_status hone_options_set_scale(hone_options* options, const hone_scale* scale) {
  return guarded([&] {
    require(options, "options");
    const hone_scale given = hone::capi::taken(scale, "scale");
    require(given.tensor, "scale->tensor");
    if (!(given.scale > 0)) throw ArgumentError(fmt::format("scale->scale is {}, not more than 0", given.scale));
    if (given.asymmetric == 0 && given.zero != 0)
      throw ArgumentError(fmt::format("scale->zero is {}, of signed codes it is 0", given.zero));
    options->build.codes = given.asymmetric != 0 ? hone::Codes::asymmetric : hone::Codes::symmetric;
    (given.edge != 0 ? options->build.other_scales : options->build.scales)[given.tensor] = {given.scale, given.zero};
  });
}

void hone_options_destroy(hone_options* options) { hone::capi::destroy(options, "options"); }

hone_status hone_timing_cache_create(const void* bytes, size_t size, hone_timing_cache** cache) {
  return guarded([&] {
    require(cache, "cache");
    if (size > 0) require(bytes, "bytes");
    auto made = std::make_unique<hone_timing_cache>();
    if (size > 0) *made->cache = hone::TimingCache::parse({static_cast<const char*>(bytes), size});
    *cache = made.release();
  });
}

hone_status hone_timing_cache_merge(hone_timing_cache* cache, const hone_timing_cache* other) {
  return guarded([&] {
    require(cache, "cache");
    require(other, "other");
    cache->cache->merge(*other->cache);
  });
}

size_t hone_timing_cache_entries(const hone_timing_cache* cache) {
  size_t entries = 0;
  guarded([&] {
    require(cache, "cache");
    entries = cache->cache->entries();
  });
  return entries;
}

hone_status hone_timing_cache_bytes(hone_timing_cache* cache, const void** bytes, size_t* size) {
  return guarded([&] {
    require(cache, "cache");
    require(bytes, "bytes");
    require(size, "size");
    cache->text = cache->cache->text();
    *bytes = cache->text.data();
    *size = cache->text.size();
  });
}

hone_status hone_timing_cache_create_from_file(const char* path, size_t* skipped, hone_timing_cache** cache) {
  return guarded([&] {
    require(path, "path");
    require(cache, "cache");
    auto made = std::make_unique<hone_timing_cache>();
    size_t bytes = 0, left_out = 0;
    *made->cache = hone::with_note([&] { return fmt::format("reading the timing cache {}", path); },
                                   [&] { return hone::load_timing_cache(path, &bytes, &left_out); });
    if (skipped != nullptr) *skipped = left_out;
    *cache = made.release();
  });
}

hone_status hone_timing_cache_save(const hone_timing_cache* cache, const char* path, size_t* bytes) {
  return guarded([&] {
    require(cache, "cache");
    require(path, "path");
    const size_t written = hone::save_timing_cache(*cache->cache, path);
    if (bytes != nullptr) *bytes = written;
  });
}

void hone_timing_cache_destroy(hone_timing_cache* cache) { hone::capi::destroy(cache, "cache"); }
