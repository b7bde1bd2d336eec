// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/engine_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "options/parse.h"
#include "tools/common/plan_view.h"
#include "tools/common/session.h"
#include "tools/compare/tactics.h"
#include "tools/model/handles.h"
#include "tools/model/prepare.h"

namespace hone {
namespace {

void tell(void* logger, hone_severity severity, const char* text) {
  static_cast<const Logger*>(logger)->write(static_cast<Severity>(severity), text);
}

/// Profiles that were given, else one from the smallest to the largest shape that comes.
std::vector<ProfileOptions> profiles_of(const EngineRequest& request, const std::vector<TensorList>& samples) {
  std::vector<ProfileOptions> result;
  for (const ShapeTriple& triple : request.profiles) {
    ProfileOptions profile;
    for (const auto& [input, opt] : triple.opt) {
      const auto side = [&input = input, &opt = opt](const std::map<std::string, Dims>& shapes) {
        const auto found = shapes.find(input);
        return found == shapes.end() ? opt : found->second;
      };
      profile[input] = {side(triple.min), opt, side(triple.max)};
    }
    for (const auto& shapes : {triple.min, triple.max})
      for (const auto& [input, dims] : shapes) profile.try_emplace(input, ShapeRange{dims, dims, dims});
    result.push_back(std::move(profile));
  }
  if (!result.empty()) return result;
  ProfileOptions profile;
  for (const TensorList& sample : samples)
    for (const NamedTensor& each : sample) {
      const Dims& dims = each.tensor.dims();
      const auto [at, fresh] = profile.try_emplace(each.name, ShapeRange{dims, dims, dims});
      for (size_t i = 0; !fresh && i < std::min(dims.size(), at->second.min.size()); ++i) {
        at->second.min[i] = std::min(at->second.min[i], dims[i]);
        at->second.max[i] = std::max(at->second.max[i], dims[i]);
      }
    }
  return {profile};
}

/// Inputs whose sizes are fixed need none.
void keep_dynamic(std::vector<ProfileOptions>& profiles, const hone_model* model) {
  const std::vector<NetworkTensor> network = tensors_of(model);
  for (ProfileOptions& profile : profiles)
    std::erase_if(profile, [&](const auto& entry) {
      const auto found = std::ranges::find(network, entry.first, &NetworkTensor::name);
      if (found == network.end())
        throw UsageError(fmt::format("a profile names {}, which is no input of the model", entry.first));
      return found->is_static();
    });
}

void check_replay(const hone_plan* plan, const std::string& path, const Narrator& narrator) {
  const TacticReplay wanted = read_replay(path), found = replay_of(plan);
  for (const auto& [layer, tactic] : found)
    if (const auto at = wanted.find(layer); at == wanted.end() || !(at->second == tactic))
      throw Error(fmt::format("the tactics of {} do not fit: layer {} has {}", path, layer, tactic.text()),
                  "the model, the flags, the device and the version have to be those that it was saved with");
  narrator.info("Tactics of {} layers are those of {}", found.size(), path);
}

/// Times that the build shall use, and a place for those that it takes where they are to be kept.
Owned<hone_timing_cache> cache_of(const EngineRequest& request, const Narrator& narrator) {
  if (!request.load_tactics.empty()) return replay_times(request.load_tactics);
  if (request.load_cache.empty() && request.save_cache.empty() && request.save_tactics.empty()) return nullptr;
  if (request.load_cache.empty()) return make<hone_timing_cache>(hone_timing_cache_create, nullptr, size_t{0});
  need_file(request.load_cache);
  size_t skipped = 0;
  auto cache = make<hone_timing_cache>(hone_timing_cache_create_from_file, request.load_cache.c_str(), &skipped);
  if (skipped > 0)
    narrator.warning("{}: {} line(s) are no times, or of another version, and are left out", request.load_cache,
                     skipped);
  return cache;
}

}  // namespace

Owned<hone_device> open_device_named(const std::string& name) {
  try {
    return make_device(name);
  } catch (const Error& error) {
    throw StatusError(ExitStatus::no_backend, fmt::format("there is no device {}: {}", name, error.message()),
                      error.hint());
  }
}

hone_log engine_log(const Narrator& narrator) {
  return {.size = sizeof(hone_log),
          .threshold = static_cast<hone_severity>(narrator.engine_log().threshold()),
          .write = tell,
          .user = const_cast<Logger*>(&narrator.engine_log())};
}

Owned<hone_model> model_of(const ModelFace& face, const Narrator& narrator) {
  const hone_log log = engine_log(narrator);
  const std::span<const std::byte> bytes = face.bytes.bytes();
  const std::string own = std::filesystem::path(face.path).parent_path().string();
  const bool as_it_stands = !face.marked && face.folder == (own.empty() ? "." : own);
  return !as_it_stands ? make<hone_model>(hone_model_create_from_memory, static_cast<const void*>(bytes.data()),
                                          bytes.size(), face.folder.c_str(), &log)
                       : make<hone_model>(hone_model_create_from_file, face.path.c_str(), &log);
}

Owned<hone_plan> build_plan(const ModelFace& face, const EngineRequest& request, const hone_device& device,
                            const std::vector<TensorList>& samples, const Narrator& narrator) {
  const hone_log log = engine_log(narrator);
  const auto model = model_of(face, narrator);
  std::vector<std::string> flags{"--onnx=" + face.path};
  flags.insert(flags.end(), request.flags.begin(), request.flags.end());
  CommandLine line = parse_command_line(flags);
  if (!line.errors.empty()) {
    const Error error = parse_error(line.errors.front());
    throw UsageError(error.message(), error.hint());
  }
  line.options.build.profiles = profiles_of(request, samples);
  keep_dynamic(line.options.build.profiles, model.get());
  const auto options = prepare_build(*model, device, line.options, narrator.engine_log());
  const auto own_cache = request.cache == nullptr ? cache_of(request, narrator) : nullptr;
  hone_timing_cache* const cache = request.cache != nullptr ? request.cache : own_cache.get();
  if (cache != nullptr) check(hone_options_set_timing_cache(options.get(), cache));
  auto plan = make<hone_plan>(hone_plan_create_from_model, model.get(), &device, options.get(), &log);
  if (cache != nullptr && !request.save_cache.empty()) {
    size_t written = 0;
    check(hone_timing_cache_save(cache, request.save_cache.c_str(), &written));
  }
  if (!request.load_tactics.empty()) check_replay(plan.get(), request.load_tactics, narrator);
  if (!request.save_tactics.empty()) {
    narrator.info("Saving tactics to {}", request.save_tactics);
    write_file(request.save_tactics, tactics_json(plan.get(), cache));
  }
  if (!request.save_engine.empty()) {
    narrator.info("Saving engine to {}", request.save_engine);
    check(hone_plan_save(plan.get(), request.save_engine.c_str()));
  }
  return plan;
}

}  // namespace hone
