// SPDX-License-Identifier: Apache-2.0
//
// Models and the devices of their instances.
#include "triton/model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hone/tools.h"
#include "triton/plan_file.h"

namespace hone::triton {
namespace {

using Json = nlohmann::ordered_json;

std::string config_of(TRITONBACKEND_Model* model) {
  TRITONSERVER_Message* message = nullptr;
  ask(TRITONBACKEND_ModelConfig(model, 1, &message));
  return text_of(message);
}

void set_config(TRITONBACKEND_Model* model, const std::string& config) {
  TRITONSERVER_Message* message = nullptr;
  ask(TRITONSERVER_MessageNewFromSerializedJson(&message, config.data(), config.size()));
  TRITONSERVER_Error* failed = TRITONBACKEND_ModelSetConfig(model, 1, message);
  tell(TRITONSERVER_MessageDelete(message));
  ask(failed);
}

}  // namespace

ServedModel::ServedModel(TRITONBACKEND_Model* model) : config_(config_of(model)) {
  const char *name = nullptr, *folder = nullptr;
  uint64_t version = 0;
  bool complete = false;
  auto kind = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  ask(TRITONBACKEND_ModelName(model, &name));
  ask(TRITONBACKEND_ModelVersion(model, &version));
  ask(TRITONBACKEND_ModelRepository(model, &kind, &folder));
  ask(TRITONBACKEND_ModelAutoCompleteConfig(model, &complete));
  name_ = std::string(name) + ":" + std::to_string(version);
  const Json config = Json::parse(config_);
  const Log log = log_of(name_);
  plan_ = plan_of({std::string(folder) + "/" + std::to_string(version), config.value("default_model_filename", ""),
                   parameter("flags"), first_device(), config.value("max_batch_size", int64_t{0})},
                  log);
  interface_ = interface_of(plan_->plan);
  if (complete) {
    config_ = completed(config_, interface_);
    set_config(model, config_);
  }
  most_rows_ = checked_batch(config_, interface_);
  tell_throughput();
}

/// What `hone bench --throughput` found. The server takes no instances from a backend, only from the configuration.
void ServedModel::tell_throughput() const {
  auto found = detail::sized<hone_throughput>();
  check(hone_plan_throughput(plan_->plan.get(), &found));
  if (found.streams == 0 || found.streams == instances("")) return;
  log(TRITONSERVER_LOG_INFO, name_ + ": most rows a second were measured with " + std::to_string(found.streams) +
                                 " instances of " + std::to_string(found.workers) +
                                 " workers: instance_group { count: " + std::to_string(found.streams) +
                                 " kind: KIND_CPU }");
}

std::string ServedModel::parameter(const std::string& key) const {
  const Json config = Json::parse(config_);
  const auto parameters = config.find("parameters");
  if (parameters == config.end() || !parameters->contains(key)) return {};
  return (*parameters)[key].value("string_value", "");
}

std::string ServedModel::first_device() const {
  const Json config = Json::parse(config_);
  for (const Json& group : config.value("instance_group", Json::array())) {
    const Json gpus = group.value("gpus", Json::array());
    return device_of(group.value("kind", "") == "KIND_GPU", gpus.empty() ? 0 : gpus[0].get<int>(), "{}");
  }
  return device_of(false, 0, "{}");
}

/// How many instances compute on the processor, or on those of its cores that a host policy names.
int64_t ServedModel::instances(const std::string& policy) const {
  const Json config = Json::parse(config_);
  int64_t count = 0;
  for (const Json& group : config.value("instance_group", Json::array())) {
    const std::string own = group.value("host_policy", "");
    if (group.value("kind", "") != "KIND_GPU" && (policy.empty() || (own.empty() ? "cpu" : own) == policy))
      count += std::max<int64_t>(group.value("count", int64_t{1}), 1);
  }
  return std::max<int64_t>(count, 1);
}

/// The device of one of so many instances that share these cores ("cpu", "cpu@0-3").
std::string ServedModel::share_of(const std::string& cores, int64_t instances) const {
  if (instances == 1) return cores;
  const int64_t workers = Device(cores).info().workers;
  return cores + "/" + std::to_string(std::max<int64_t>(workers / instances, 1));
}

std::string ServedModel::device_of(bool on_gpu, int gpu, const std::string& policy) const {
  if (std::string device = parameter("device"); !device.empty()) return device;
  if (on_gpu) return "cuda:" + std::to_string(gpu);
  const Json policies = policy.empty() ? Json::object() : Json::parse(policy);
  for (const auto& [name, settings] : policies.items())
    if (const std::string cores = settings.value("cpu-cores", ""); !cores.empty())
      return share_of("cpu@" + cores, instances(name));
  return share_of("cpu", instances(""));
}

std::shared_ptr<const Loaded> ServedModel::loaded(const std::string& device) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const Loaded>& place = loaded_[device];
  if (auto there = place.lock()) return there;
  const Log log = log_of(name_);
  Device opened(device);
  const std::string kind = opened.info().kind, needed = plan_->plan.info().device_kind;
  if (kind != needed)
    throw Error(HONE_ERROR, "the plan is for " + needed + ", the instance for " + kind,
                needed == "cpu" ? "set instance_group { kind: KIND_CPU }, or build with --device=0"
                                : "set instance_group { kind: KIND_GPU }, or build without --device");
  Engine engine(plan_->plan, opened, log);
  auto made = std::make_shared<const Loaded>(Loaded{plan_, std::move(opened), std::move(engine)});
  place = made;
  return made;
}

}  // namespace hone::triton
