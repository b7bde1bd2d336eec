// SPDX-License-Identifier: Apache-2.0
//
// The C interface's build options: flags, profiles, constraints, progress, timing caches.
#include <algorithm>
#include <array>

#include "base/error_text.h"
#include "capi/build_handles.h"
#include "capi/guard.h"
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

void hone_timing_cache_destroy(hone_timing_cache* cache) { hone::capi::destroy(cache, "cache"); }
