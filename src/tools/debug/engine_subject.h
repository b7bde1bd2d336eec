// SPDX-License-Identifier: Apache-2.0
//
// What `debug build` and `debug precision` build again and again: a model, a device, flags, and inputs that say its shapes.
#pragma once

#include "tools/compare/engine_build.h"
#include "tools/compare/run_flags.h"
#include "tools/debug/checker.h"

namespace hone {

/// Their flags: the check's, the engine's, the model's and --input-shapes, --cpu, --cuda.
std::vector<CompanionFlag> engine_subject_flags();

class EngineSubject {
 public:
  EngineSubject(const Arguments& arguments, const Narrator& narrator);

  const ModelFace& face() const { return face_; }
  const EngineRequest& request() const { return request_; }
  const hone_device& device() const { return *device_; }
  /// Builds and writes the engine to `path`.
  Owned<hone_plan> build(const EngineRequest& request, const std::string& path) const;

 private:
  const Narrator& narrator_;
  ModelFace face_;
  EngineRequest request_;
  Owned<hone_device> device_;
  std::vector<TensorList> samples_;
};

}  // namespace hone
