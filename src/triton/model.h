// SPDX-License-Identifier: Apache-2.0
//
// One version of a served model: its plan, read or built from ONNX, and engines of it, one for each device that instances ask for.
// A plan is read into memory: what is done to its file later does not reach the server.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "triton/config.h"

namespace hone::triton {

struct PlanInMemory;

/// A plan on a device. Contexts keep it.
struct Loaded {
  std::shared_ptr<const PlanInMemory> plan;
  Device device;
  Engine engine;
};

class ServedModel {
 public:
  /// Completes the server's configuration of the model where it is asked for.
  explicit ServedModel(TRITONBACKEND_Model* model);

  const std::string& name() const noexcept { return name_; }
  const Interface& interface() const noexcept { return interface_; }
  bool has_rows() const noexcept { return most_rows_ > 0; }
  /// For a device by name: "cpu/2", "cuda:0".
  std::shared_ptr<const Loaded> loaded(const std::string& device);
  /// The device of an instance; `policy` is its host policy as the server says it.
  std::string device_of(bool on_gpu, int gpu, const std::string& policy) const;

 private:
  std::string parameter(const std::string& key) const;
  std::string first_device() const;
  std::string share_of(const std::string& cores, int64_t instances) const;
  int64_t instances(const std::string& policy) const;
  void tell_throughput() const;

  std::string name_, config_;
  std::shared_ptr<const PlanInMemory> plan_;
  Interface interface_;
  int64_t most_rows_ = 0;  // 0: requests come one by one
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const Loaded>> loaded_;
};

}  // namespace hone::triton
